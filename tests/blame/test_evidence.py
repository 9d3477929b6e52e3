"""Planted errors are found, proven by training without them, and nothing else is blamed."""

import json
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.blame.candidates import BlameCandidate, CandidateSearch
from regard.blame.evidence import MIN_SAMPLES, BlameResult, find_causes, halve
from regard.blame.question import WordQuestion, ask
from regard.blame.replays import Replays
from regard.blame.run import open_run
from regard.data.shards.shard import Shards
from regard.training.events import Event, StepFinished
from tests.blame.runs import PLANTED, QUESTION, STEPS
from tests.commands import run_command

Case = tuple[WordQuestion, list[BlameCandidate], Shards]
RANDOM = 3  # random replays


@pytest.fixture(scope="module")
def case(planted_run: Path) -> Case:
    pipeline, shards = open_run(planted_run)
    question = ask(pipeline, QUESTION, "Brot")
    return question, CandidateSearch(shards, pipeline.make_scorer(1.0)).find(question, 6), shards


def prove(run: Path, case: Case, events: list[Event], candidates: list[BlameCandidate] | None = None) -> BlameResult:
    question, found, shards = case
    replays = Replays(run, [events.append], RANDOM)
    (result,) = find_causes([question], [found if candidates is None else candidates], replays, shards)
    return result


def test_planted_pairs_are_proven_and_replays_are_kept(planted_run: Path, case: Case) -> None:
    events: list[Event] = []
    counts: list[int] = []
    question, found, shards = case
    (result,) = find_causes(
        [question],
        [found],
        Replays(planted_run, [events.append], RANDOM),
        shards,
        lambda count, _: counts.append(count),
    )
    assert result.before > 0
    assert result.after < result.before + result.limit
    lines = {place.line for number in result.group for place in found[number - 1].locations}
    assert lines
    assert lines <= set(PLANTED)
    assert max(map(abs, result.random_changes)) < abs(result.change)
    assert result.validation_after is not None
    trained = sum(isinstance(event, StepFinished) for event in events) // STEPS
    assert RANDOM < trained <= counts[0]
    events.clear()
    assert prove(planted_run, case, events) == result
    assert not events, "every replay is kept"


def test_innocent_pairs_are_not_blamed(planted_run: Path, case: Case) -> None:
    pipeline, shards = open_run(planted_run)
    found = CandidateSearch(shards, pipeline.make_scorer(1.0)).find(case[0], 8)
    innocent = [candidate for candidate in found if candidate.locations[0].line not in PLANTED]
    result = prove(planted_run, case, [], innocent)
    assert result.group == ()
    assert [trial.candidates for trial in result.trials] == [tuple(range(1, len(innocent) + 1))]


def test_stopped_replay_continues(planted_run: Path, case: Case) -> None:
    file = case[1][0].locations[0].file
    stops = iter([False] * 40 + [True])
    stopping = Replays(planted_run, [lambda event: isinstance(event, StepFinished) and next(stops, False)])
    with pytest.raises(RegardError, match="stopped after step"):
        stopping.train_without({file: [5]})
    events: list[Event] = []
    continued = Replays(planted_run, [events.append]).train_without({file: [5]})
    assert sum(isinstance(event, StepFinished) for event in events) < STEPS
    assert continued.validation_loss is not None
    assert not list((planted_run / "blame").glob("*.run")), "only the model is kept"


def test_small_corpus_is_refused(planted_run: Path, case: Case) -> None:
    question, found, shards = case
    few = type(shards)(shards.shards)
    few.sample_offsets = few.sample_offsets.clip(max=MIN_SAMPLES - 1)
    with pytest.raises(RegardError, match=f"a proof needs {MIN_SAMPLES}"):
        find_causes([question], [found], Replays(planted_run), few)


def test_halving_stops_where_no_half_is_a_cause() -> None:
    search = halve((0, 1, 2, 3))
    assert [next(search), search.send(True), search.send(False)] == [(0, 1, 2, 3), (0, 1), (2, 3)]
    with pytest.raises(StopIteration) as end:
        search.send(False)
    assert end.value.value == (0, 1, 2, 3)


def test_command_prints_candidates_and_json(planted_run: Path, tmp_path: Path) -> None:
    done = run_command("blame", str(planted_run), QUESTION, "--word", "Brot", "--candidates", "3", columns=200)
    assert done.code == 0
    assert "output: Hund findet Brot" in done.output
    assert done.output.count("all.en:") == 3
    questions = tmp_path / "questions.tsv"
    questions.write_text(f"{QUESTION}\tBrot\n{QUESTION}\tfindet\n")
    done = run_command("blame", str(planted_run), "--input", str(questions), "--json")
    words = [json.loads(line)["word"] for line in done.output.splitlines()]
    assert words == ["Brot", "findet"]
