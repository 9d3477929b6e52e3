"""docs/results.md: every kept prediction has the score that the table states, and README quotes only the table."""

import re
from pathlib import Path

import pytest
from scripts import results

DATA = results.ROOT.parent / "shared/data"


def test_every_kept_prediction_has_the_score_of_the_table() -> None:
    table = results.read_results()
    assert list(results.find_faults(table, DATA)) == []
    assert sum(bool(result.predictions) for result in table) >= 7


def test_the_page_shows_the_table() -> None:
    page = results.PAGE.read_text(encoding="utf-8")
    assert results.replace_table(page, results.format_table(results.read_results())) == page


@pytest.mark.parametrize("change", [{"value": 88.7}, {"page": "README.md"}, {"predictions": ("no/such/file",)}])
def test_a_wrong_row_is_found(change: dict[str, object]) -> None:
    row = next(result for result in results.read_results() if result.value == 82.15)
    assert list(results.find_faults([row], DATA)) == []
    assert len(list(results.find_faults([row.model_copy(update=change)], DATA))) >= 1


def test_readme_quotes_only_figures_of_the_table() -> None:
    page = results.PAGE.read_text(encoding="utf-8")
    readme = (results.ROOT / "README.md").read_text(encoding="utf-8")
    strengths = readme[readme.index("## Strengths") : readme.index("## Is it for you?")]
    quoted = re.findall(r"(?<![\w.])\d+\.\d+(?! million)(?!\w)", strengths)
    assert len(quoted) >= 4
    assert [figure for figure in quoted if figure not in page] == []


def test_gold_files_have_as_many_lines_as_predictions() -> None:
    for result in results.read_results():
        if result.predictions and not result.gold.startswith("data:"):
            expected = len(results.read_lines(results.ROOT / result.gold))
            for path in result.predictions:
                assert len(results.read_lines(results.ROOT / Path(path))) == expected
