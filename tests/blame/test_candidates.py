"""Candidates contain the word; the two rankings and copies."""

from pathlib import Path

from regard.blame.candidates import BlameCandidate, CandidateSearch
from regard.blame.question import ask
from regard.blame.run import open_run
from regard.training.run import fit
from tests.blame.runs import PLANTED, QUESTION
from tests.training.runs import SHORT_RUN, make_small_run


def find(run: Path, source: str, word: str, count: int = 10) -> list[BlameCandidate]:
    pipeline, shards = open_run(run)
    return CandidateSearch(shards, pipeline.make_scorer(1.0)).find(ask(pipeline, source, word), count)


def test_planted_pairs_are_the_first_candidates(planted_run: Path) -> None:
    found = find(planted_run, QUESTION, "Brot")
    assert len(found) == 10
    lines = [location.line for candidate in found[:3] for location in candidate.locations]
    assert set(lines) == set(PLANTED)
    assert found[0].source in PLANTED.values()
    assert all("Brot" in (candidate.target or "") for candidate in found)


def test_cosine_ranks_by_states(planted_run: Path) -> None:
    pipeline, shards = open_run(planted_run)
    question = ask(pipeline, QUESTION, "Brot")
    search = CandidateSearch(shards, pipeline.make_scorer(1.0))
    cosines = [candidate.cosine for candidate in search.find(question, by="cosine")]
    assert cosines == sorted(cosines, reverse=True)
    lexical = [candidate.lexical for candidate in search.find(question)]
    assert lexical == sorted(lexical, reverse=True)


def test_copies_are_one_candidate(planted_run: Path) -> None:
    found = find(planted_run, QUESTION, "findet", 1000)
    pairs = [(candidate.source, candidate.target) for candidate in found]
    assert len(set(pairs)) == len(pairs)
    lines = [location.line for candidate in found for location in candidate.locations]
    targets = Path(found[0].locations[0].file).with_suffix(".de").read_text().splitlines()
    assert sorted(lines) == [number for number, target in enumerate(targets, 1) if "findet" in target]


def test_word_that_no_sample_has_gives_no_candidates(planted_run: Path) -> None:
    pipeline, shards = open_run(planted_run)
    question = ask(pipeline, QUESTION, "Brot")
    unused = next(n for n in range(len(pipeline.tokenizers.target)) if not any(n in t for _, t in shards.iter_pairs()))
    question.row.labels[question.row.overlap :] = [unused]
    assert CandidateSearch(shards, pipeline.make_scorer(1.0)).find(question) == []


def test_candidates_of_a_language_model_are_documents(tmp_path: Path) -> None:
    book = tmp_path / "book.txt"
    book.write_text("---\n".join(f"the {word} likes the old tree under the house\n" for word in ("dog", "cat", "bat")))
    files = {name: str(book) for name in ("book.txt", "all.en", "all.de")}
    source = {"kind": "documents", "path": str(book), "separator": "---"}
    changes = {"data.train": [source], "data.held_out": 0.0, "data.validation": [source]}
    fit(make_small_run("causal_lm", files, {**SHORT_RUN, **changes}), tmp_path / "run")
    found = find(tmp_path / "run", "the cat likes the new tree", "tree", 2)
    assert [candidate.target for candidate in found] == [None, None]
    assert found[0].locations[0].line == 3
    assert "cat" in found[0].source
