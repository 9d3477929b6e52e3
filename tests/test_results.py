"""docs/results.md: every kept prediction has the score that the table states, and README quotes only the table."""

import re
from pathlib import Path

import pytest
from scripts import results

DATA = results.ROOT.parent / "shared/data"


@pytest.mark.parametrize("result", results.read_results(), ids=lambda result: result.figure)
def test_result_has_the_score_of_the_table(result: results.Result) -> None:
    assert list(results.find_faults([result], DATA)) == []
    if not result.predictions:
        pytest.skip("not scored: no prediction was kept")
    if not results.can_score(result, DATA):
        pytest.skip(f"not scored: {DATA} has no {result.gold.removeprefix('data:')}")


@pytest.mark.parametrize("place", ["no corpora", "corpora"])
def test_as_many_figures_are_scored_as_the_table_states(place: str, tmp_path: Path) -> None:
    data = DATA if place == "corpora" else tmp_path / "none"
    if place == "corpora" and not data.is_dir():
        pytest.skip(f"{data} is not here")
    table, rescored = results.read_results(), results.read_rescored()
    assert list(results.find_missing_scores(table, data)) == []
    expected = rescored.with_corpora if place == "corpora" else rescored.bundled
    assert sum(results.can_score(result, data) for result in table) == expected
    scored = next(index for index, result in enumerate(table) if results.can_score(result, data))
    assert len(list(results.find_missing_scores(table[:scored] + table[scored + 1 :], data))) == 1


def test_the_page_shows_the_table() -> None:
    page = results.PAGE.read_text(encoding="utf-8")
    assert results.replace_table(page, results.format_table(results.read_results())) == page


@pytest.mark.parametrize(
    "change", [{"value": 88.7}, {"page": "README.md"}, {"predictions": ("no/such/file",)}, {"metric": "bleu_13a"}]
)
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


def test_readme_and_page_state_how_many_figures_are_scored() -> None:
    rescored, count = results.read_rescored(), len(results.read_results())
    for path in (results.PAGE, results.ROOT / "README.md"):
        text = path.read_text(encoding="utf-8")
        assert f"{rescored.bundled} of {count} figures" in text
        assert re.search(rf"\b{rescored.with_corpora} (if|with) the corpora", text)


def test_gold_files_have_as_many_lines_as_predictions() -> None:
    for result in results.read_results():
        if result.predictions and not result.gold.startswith("data:"):
            expected = len(results.read_lines(results.ROOT / result.gold))
            for path in result.predictions:
                assert len(results.read_lines(results.ROOT / Path(path))) == expected
