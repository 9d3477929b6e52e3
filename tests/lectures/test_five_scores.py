"""Five score functions of one query and three keys."""

import math

from regard.lectures.five_scores import make_probes


def test_concat_equals_additive_and_scaled_dot_is_dot_over_root_two() -> None:
    scores = {(probe.inputs["kind"], probe.inputs["angle"]): probe.outputs for probe in make_probes()}
    for angle in (30, 120):
        assert scores["concat", angle] == scores["additive", angle]
        assert math.isclose(
            scores["dot", angle]["score_0"], math.sqrt(2) * scores["scaled_dot", angle]["score_0"], rel_tol=1e-5
        )
    assert math.isclose(scores["dot", 30]["score_1"], 0.5, rel_tol=1e-5)
