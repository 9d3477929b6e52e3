"""Toy worlds: what their sentences say, and the files that a training command reads."""

import random
import re
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config import codec
from regard.lectures.worlds import CUES, JOBS, OF_ANIMALS, WORLDS, Corpus, write_world
from tests.commands import run_command


def make(name: str) -> Corpus:
    return WORLDS[name].make(random.Random(1))


@pytest.mark.parametrize("name", WORLDS)
def test_no_validation_sentence_is_trained(name: str) -> None:
    train, validation = make(name)
    assert (len(train), len(validation)) == (2000, 120)
    assert not set(train) & set(validation)


def test_it_is_the_noun_of_the_adjective_and_validates_with_new_pairs() -> None:
    train, validation = make("it")
    pairs = []
    for part in (train, validation):
        pairs.append({tuple(words.split()[i] for i in (1, 6)) for words, _ in part})
        for words, tags in part:
            _, animal, *_, place, _, it, _, _, adjective = words.split()
            assert it == "it"
            assert tags.split()[8] == (animal if adjective in OF_ANIMALS else place)
            assert set(tags.split()) - {"O"} == {tags.split()[8]}
    assert not pairs[0] & pairs[1]
    assert ("animal", "street") in pairs[1]


def test_bank_has_the_sense_of_its_cue() -> None:
    for words, tags in make("bank")[0]:
        (sense,) = set(tags.split()) - {"O"}
        assert set(words.split()) & set(CUES[sense])


def test_order_has_the_item_of_its_entry() -> None:
    for words, tags in make("orders")[0]:
        *entries, query = words.split()
        assert dict(entry.split(":") for entry in entries)[query] == tags.split()[-1]


def test_dia_is_she_as_often_as_the_job_says() -> None:
    train, _ = make("dia")
    for job, (name, share) in JOBS.items():
        pronouns = [target.split()[0] for source, target in train if job in source.split()]
        assert {target.split()[3] for source, target in train if job in source.split()} == {name}
        assert pronouns.count("she") / len(pronouns) == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("name", WORLDS)
def test_a_run_file_names_a_valid_run(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    command = write_world(name, folder)
    assert command.removesuffix(" --force") == f"regard train {folder / 'run.toml'} --out {folder / 'model'}"
    run = codec.RUN_FILES.load(folder / "run.toml")
    pairs = name in ("copy", "dia")
    assert run.model.task == ("translation" if pairs else "tagging")
    named = re.findall(r'"(.*/(?:train|validation)\.\w+)"', (folder / "run.toml").read_text(encoding="utf-8"))
    assert len(named) == (4 if pairs else 2)
    assert all(Path(file).is_file() for file in named)
    with pytest.raises(RegardError, match="not empty"):
        write_world(name, folder)


def test_command_writes_a_world_with_its_trained_model(tmp_path: Path) -> None:
    written = run_command("lectures", "world", "it", "--out", str(tmp_path / "it"))
    assert written.code == 0, written.errors
    assert written.output.startswith("regard train ")
    assert (tmp_path / "it" / "trained" / "model.safetensors").stat().st_size < 200_000
    refused = run_command("lectures", "world", "nowhere", "--out", str(tmp_path / "nowhere"))
    assert refused.code == 1
    assert "orders" in refused.errors
