"""The table of large models in docs/guides/plan.md is what `python -m bench.plan --large` writes."""

import pytest
from bench.plan import LARGE_CASES, PLAN_PAGE, LargeCase, forecast_large, format_large, read_large

QUICK = LARGE_CASES[0]  # a few CPU-seconds; the others are as slow or slower


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case == QUICK else pytest.mark.slow) for case in LARGE_CASES],
    ids=lambda case: f"{case.model}-{case.ranks}-{case.layout}",
)
def test_row_of_a_large_model_is_not_stale(case: LargeCase) -> None:
    rows = read_large(PLAN_PAGE.read_text(encoding="utf-8"))
    assert rows[case] == format_large(case, forecast_large(case))
