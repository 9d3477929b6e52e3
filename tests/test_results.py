"""docs/why/results.md and quoted figures: saved predictions have the stated scores, pages quote the stated figures."""

import re
from pathlib import Path

import pytest
from scripts import results

DATA = results.find_data()


@pytest.mark.parametrize("result", results.read_results(), ids=lambda result: result.key)
def test_result_has_the_score_of_the_table(result: results.Result) -> None:
    assert list(results.find_faults([result], DATA)) == []
    if not result.predictions:
        pytest.skip("not scored: no saved predictions")
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


def test_results_page_matches_the_table() -> None:
    assert results.PAGE.read_text(encoding="utf-8") == results.format_page(results.read_results())


def test_result_keys_are_unique() -> None:
    keys = [result.key for result in results.read_results()]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    "change", [{"value": 88.7}, {"page": "README.md"}, {"predictions": ("no/such/file",)}, {"metric": "bleu_13a"}]
)
def test_a_wrong_row_is_found(change: dict[str, object]) -> None:
    row = next(result for result in results.read_results() if result.value == 82.15)
    assert list(results.find_faults([row], DATA)) == []
    assert len(list(results.find_faults([row.model_copy(update=change)], DATA))) >= 1


def test_pages_quote_the_figures_of_the_table() -> None:
    quotes = results.read_quotes()
    assert len(quotes) >= 5
    assert list(results.find_wrong_quotes(quotes, results.read_results())) == []


def test_readme_scores_and_ratios_are_figures_of_the_table() -> None:
    text = re.sub(r"^```.*?^```$", "", (results.ROOT / "README.md").read_text(encoding="utf-8"), flags=re.M | re.S)
    quoted = re.findall(r"(?<![\w.])(?!3\.1\d)\d+\.(?:\d\d+(?![\w.])|\d+(?= times))", text)
    table = [number for result in results.read_results() for number in (f"{result.value:g}", result.anchor)]
    known = set(re.findall(r"\d+\.\d+", " ".join(table)))
    assert [figure for figure in quoted if figure not in known] == []


def test_readme_states_the_largest_attention_error_of_the_gallery() -> None:
    (stated,) = re.findall(
        r"reproduce its output within (\S+)", (results.ROOT / "README.md").read_text(encoding="utf-8")
    )
    errors = [
        float(number)
        for page in (results.ROOT / "docs/gallery").glob("*.html")
        for table in re.findall(r'"errors":(\[\[.*?\]\])', page.read_text(encoding="utf-8"))
        for number in re.findall(r"[\d.]+(?:e-?\d+)?", table)
    ]
    assert len(errors) > 50
    assert 0.9 * float(stated) < max(errors) <= float(stated)


MEASURED = re.compile(r"\d (?:ms|µs|CPU-s|CPU-min)")
MEASURED_HEADER = re.compile(r"CPU s\b|CPU-seconds|CPU time|\bms\b|tokens per")


def find_undated_tables(text: str) -> list[str]:
    """Return the headings of sections with a table of measured times or speeds but without a year."""
    sections = re.split(r"^(?=#)", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), flags=re.M)
    undated = []
    for section in sections:
        rows = [line for line in section.splitlines() if line.startswith("|")]
        is_measured = sum(bool(MEASURED.search(row)) for row in rows) > 1 or any(map(MEASURED_HEADER.search, rows[:1]))
        if is_measured and not re.search(r"\b20\d\d\b", section):
            undated.append(section.partition("\n")[0])
    return undated


def test_tables_of_measured_times_carry_a_date() -> None:
    generated = {"settings.md", "coverage.md"}
    pages = [page for page in (results.ROOT / "docs").glob("**/*.md") if page.name not in generated]
    faults = {page.name: find_undated_tables(page.read_text(encoding="utf-8")) for page in pages}
    assert {name: headings for name, headings in faults.items() if headings} == {}


def test_find_undated_tables_needs_a_year_in_the_section() -> None:
    table = "| model | CPU s |\n|---|---|\n| tiny | 3 |\n"
    assert find_undated_tables(f"# Page, 2026\n\n## Speed\n\n{table}") == ["## Speed"]
    assert find_undated_tables(f"## Speed\n\nNovember 2026\n\n{table}") == []


def test_find_wrong_quotes_finds_another_figure_and_a_missing_one() -> None:
    table = results.read_results()
    quote = results.read_quotes()[0]
    row = next(result for result in table if result.key == quote.key)
    (changed,) = results.find_wrong_quotes([quote], [row.model_copy(update={"value": row.value + 1})])
    assert changed.startswith(f"{quote.file} says ")
    (missing,) = results.find_wrong_quotes([quote.model_copy(update={"pattern": "no such (figure)"})], table)
    assert "no longer has" in missing
    (absent,) = results.find_wrong_quotes([quote.model_copy(update={"key": "", "evidence": "LICENSE"})], table)
    assert absent.endswith("LICENSE does not")


def test_gold_files_have_as_many_lines_as_predictions() -> None:
    for result in results.read_results():
        if result.predictions and not result.gold.startswith("data:"):
            expected = len(results.read_lines(results.ROOT / result.gold))
            for path in result.predictions:
                assert len(results.read_lines(results.ROOT / Path(path))) == expected
