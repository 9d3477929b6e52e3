"""The site of the lectures: files, blocks, verdicts, and the controls' probes."""

import json
import re
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.lectures.blocks import Control, Lecture, LookFrame
from regard.lectures.load import load_lecture
from regard.lectures.site import LOOK_PAGES, load_lectures, write_site
from tests.commands import run_command


@pytest.fixture(scope="module")
def lectures() -> list[Lecture]:
    return load_lectures()


def test_stations_have_unique_names_one_right_option_and_probes(lectures: list[Lecture]) -> None:
    stations = [station for lecture in lectures for station in lecture.stations]
    names = [station.name for station in stations]
    assert len(set(names)) == len(names)
    for station in stations:
        assert re.fullmatch(r"[a-z0-9-]+", station.name)
        assert sum(option.is_right for option in station.predict.options) >= 1, station.name
        assert len(station.predict.options) >= 2, station.name
        assert station.claim, station.name
        assert station.change, station.name
        assert re.search(r"\d", station.verdict.text), f"{station.name}: no number"
        for block in station.blocks:
            if isinstance(block, Control):
                assert block.probes, station.name
            if isinstance(block, LookFrame):
                assert block.name in LOOK_PAGES, station.name


def test_the_site_is_written_and_small(lectures: list[Lecture], tmp_path: Path) -> None:
    paths = write_site(tmp_path, lectures)
    assert {path.name for path in paths} >= {"index.html", *(f"lecture-{number}.html" for number in range(1, 6))}
    assert sum(path.stat().st_size for path in paths) < 6e6
    text = (tmp_path / "lecture-1.html").read_text(encoding="utf-8")
    start = text.index('id="document">') + len('id="document">')
    document = json.loads(text[start : text.index("</script>", start)])
    assert document["lecture"]["number"] == 1
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_number_without_a_lecture_is_refused() -> None:
    with pytest.raises(RegardError, match="no lecture 6"):
        load_lecture(6)


def test_command_saves_the_site_and_lists_the_subjects(
    lectures: list[Lecture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.lectures.site.load_lectures", lambda: lectures)  # web/test runs the whole command
    saved = run_command("lectures", "--save", str(tmp_path / "site"))
    assert saved.code == 0, saved.errors
    assert (tmp_path / "site" / "index.html").is_file()
    listed = run_command("lectures", "show")
    assert "Thinking Machines" in listed.output
    refused = run_command("lectures", "show", "nothing")
    assert refused.code == 1
    assert "lookup" in refused.errors


def test_claims_have_experiments_and_verdicts(lectures: list[Lecture], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.lectures.load.load_lecture", lambda number: lectures[number - 1])
    listed = run_command("lectures", "claims")
    stations = [station for lecture in lectures for station in lecture.stations]
    for name in ("Claim", "Experiment"):
        assert listed.output.count(f"\n    {name}: ") == len(stations)
    assert all(f"    {one.verdict.judgment.capitalize()}: {one.verdict.text}\n" in listed.output for one in stations)
    assert "Experiment: `regard lectures show variance`\n" in listed.output
    assert "Experiment: `python examples/before/run.py length` (" in listed.output


def test_the_page_for_teachers_names_stations_in_their_order(lectures: list[Lecture]) -> None:
    page = (Path(__file__).parents[2] / "docs/lectures/teach.md").read_text(encoding="utf-8")
    for lecture in lectures:
        section = page.split(f"## Lecture {lecture.number}: ")[1]
        stops = re.findall(r"^\| ([a-z0-9-]+) \|", section.split("\n## ")[0], re.MULTILINE)[1:]
        names = [station.name for station in lecture.stations]
        assert [name for name in names if name in stops] == stops
        assert len(stops) == 10
