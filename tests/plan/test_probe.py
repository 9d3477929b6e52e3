"""A short measurement of this machine."""

from regard.plan.probe import probe
from tests.plan.runs import make_run


def test_probe_measures_this_machine() -> None:
    measured = probe(make_run(), rows=2, length=16)
    assert measured.step > 0
    assert 0 < measured.batch < 60
