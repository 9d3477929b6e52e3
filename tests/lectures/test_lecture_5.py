"""Five score functions of one query and three keys."""

import math

from regard.lectures.blocks import Control
from regard.lectures.lecture_5 import five_score_functions


def test_concat_equals_additive_and_scaled_dot_is_dot_over_root_two() -> None:
    control = five_score_functions().blocks["control"]
    assert isinstance(control, Control)
    scores = {(probe.inputs["kind"], probe.inputs["angle"]): probe.outputs for probe in control.probes}
    for angle in (30, 120):
        assert scores["concat", angle] == scores["additive", angle]
        assert math.isclose(
            scores["dot", angle]["score_0"], math.sqrt(2) * scores["scaled_dot", angle]["score_0"], rel_tol=1e-5
        )
    assert math.isclose(scores["dot", 30]["score_1"], 0.5, rel_tol=1e-5)
