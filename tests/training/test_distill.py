"""Distillation: teachers translate the training part once, held-out sentences never, and a kill loses one chunk."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.base.errors import ConfigError, DamagedError, RegardError
from regard.base.files import write_manifest
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.held_out import train_validation_split
from regard.exchange import parity
from regard.store.export_folder import is_export
from regard.store.model_folder import read_model, write_model
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights
from regard.tasks.results import EMPTY, Translation
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair
from regard.training import distill as module
from regard.training.data import RunData, prepare_data
from regard.training.events import Event, Message, Stage
from regard.training.run import fit, resume
from tests.commands import run_command
from tests.training.runs import compute_fingerprints, make_small_run, write_corpus

FILES = {name: name for name in ("all.en", "all.de", "book.txt")}  # only named, never read
LANGUAGES = {"data.train.0.languages": ["en", "de"]}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a corpus and three teachers: a trained one, one with noise on its weights, one with another vocabulary."""
    folder = tmp_path_factory.mktemp("distill")
    write_corpus(folder / "corpus", 100)
    files = write_corpus(folder / "easy")  # a translation of two words is learned in seconds
    lines = Path(files["all.de"]).read_text().splitlines()
    Path(files["all.de"]).write_text("".join(" ".join(line.split()[-2:]) + "\n" for line in lines))
    easy = {"model.d_model": 32, "train.steps": 70, "train.schedule.lr": 0.02, "train.average": 1, **LANGUAGES}
    easy |= dict.fromkeys(("train.ema", "train.label_smoothing", "tokenizer.dropout"), 0.0)
    easy |= dict.fromkeys(("validation.every_steps", "train.save_every"), 70)
    easy |= {f"model.{side}.dropout": {} for side in ("encoder", "decoder")}
    fit(make_small_run("translation", files, easy), folder / "one")
    stored = read_model(folder / "one")
    generator = torch.Generator().manual_seed(2)
    weights = {
        name: weight + 0.05 * weight.std() * torch.randn(weight.shape, generator=generator)
        for name, weight in get_weights(stored.model).items()
    }
    content = stored.tokenizers.source.content
    assert b"<pad>" in content
    other_tokenizers = TokenizerPair.joint(Tokenizer(content.replace(b"<pad>", b"<nil>")))
    for name, tokenizers in (("two", stored.tokenizers), ("three", other_tokenizers)):
        write_model(folder / name, stored.settings, tokenizers, weights, "A teacher.")
    return folder


def make_student(world: Path, *teachers: str, changes: dict[str, Any] | None = None) -> RunConfig:
    """Return the small run with teachers; teachers may be names in `world` or paths."""
    folders = [str(world / name) for name in teachers]
    settings = {"distillation.teachers": folders, "distillation.beam_size": 2} if teachers else {}
    files = {name: str(world / "corpus" / name) for name in ("all.en", "all.de", "book.txt")}
    return make_small_run("translation", files, {**LANGUAGES, "train.steps": 8, **settings, **(changes or {})})


def read_data(run: RunConfig, folder: Path, emit: Callable[[Event], None] = lambda _: None) -> RunData:
    folder.mkdir(exist_ok=True)
    return prepare_data(run, RunFolder(folder), emit)


def read_translations(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Return the records of each file of translations."""
    return {
        path.name: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted((folder / "distilled").glob("*.jsonl"))
    }


def split_sources(run: RunConfig) -> tuple[list[str], list[str]]:
    """Return the sources of the training part and of the held-out part."""
    parts = train_validation_split(Corpus(run.data.train), run.data.held_out, run.data.seed)
    train, held_out = ([example.source for _, example in part.examples(Defects())] for part in parts)
    return train, held_out


def test_teachers_translate_the_training_part_and_nothing_else(world: Path, tmp_path: Path) -> None:
    run = make_student(world, "one", "three")  # two vocabularies: text goes between the models
    events: list[Event] = []
    student = read_data(run, tmp_path / "student", events.append)
    alone = read_data(make_student(world), tmp_path / "alone")
    train, held_out = split_sources(run)
    files = read_translations(tmp_path / "student")
    assert list(files) == ["000-00.jsonl", "000-01.jsonl"]
    assert files["000-00.jsonl"] != files["000-01.jsonl"]
    left_out = student.distilled.record.left_out if student.distilled else {}
    for records in files.values():
        assert all(record["target"].strip() for record in records)
        sources = [record["source"] for record in records]
        assert sources == [source for source in train if source in set(sources)]  # in the order of the corpus
        assert not set(sources) & set(held_out)
    translations = sum(map(len, files.values()))
    assert translations + sum(left_out.values()) == 2 * len(train)
    assert translations > len(train)
    assert len(student.train) == len(train) + translations
    assert student.train.weights == (2.0, 1.0, 1.0)
    assert student.validation is not None
    assert alone.validation is not None
    assert student.examples == alone.examples
    assert len(student.validation) == len(alone.validation)
    assert [shard.made_from["text"] for shard in student.validation.shards] == [
        shard.made_from["text"] for shard in alone.validation.shards
    ]
    assert student.validation.weights == alone.validation.weights
    messages = [event.text for event in events if isinstance(event, Message)]
    assert any("sentences/s" in message for message in messages)
    assert any(message.startswith("Left out") for message in messages) == bool(left_out)


def test_a_killed_translation_continues_with_the_next_chunk(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_SENTENCES", 30)
    run = make_student(world, "one", "two")
    read_data(run, tmp_path / "whole")
    monkeypatch.setattr(module, "STAGE_SECONDS", 0.0)

    def interrupt(event: Event) -> None:
        if isinstance(event, Stage) and event.progress.startswith(("7", "8", "9")):
            raise KeyboardInterrupt  # after 60 translations, two chunks

    with pytest.raises(KeyboardInterrupt):
        read_data(run, tmp_path / "killed", interrupt)
    chunks = sorted((tmp_path / "killed" / "distilled-chunks").iterdir())
    assert len(chunks) == 2
    chunks[0].write_bytes(chunks[0].read_bytes()[:-1])  # damaged: translated again, never used
    events: list[Event] = []
    read_data(run, tmp_path / "killed", events.append)
    assert any("30 were finished before" in event.text for event in events if isinstance(event, Message))
    for path in (tmp_path / "whole" / "distilled").iterdir():
        assert (tmp_path / "killed" / "distilled" / path.name).read_bytes() == path.read_bytes()
    assert not (tmp_path / "killed" / "distilled-chunks").exists()


def test_a_student_resumes_without_its_teachers(world: Path, tmp_path: Path) -> None:
    shutil.copytree(world / "one" / "best", tmp_path / "teacher")
    run = make_student(world, str(tmp_path / "teacher"))
    fit(run, tmp_path / "whole")
    assert fit(run, tmp_path / "stopped", pause_at=4).reason == "stop requested"
    shutil.rmtree(tmp_path / "teacher")
    assert resume(tmp_path / "stopped").reason == "finished"
    assert compute_fingerprints(tmp_path / "stopped") == compute_fingerprints(tmp_path / "whole")
    assert RUN_FILES.load(tmp_path / "stopped" / "run.toml").distillation == run.distillation
    card = (tmp_path / "stopped" / "best" / "README.md").read_text()
    record = json.loads((tmp_path / "stopped" / "distilled" / "distillation.json").read_text())
    assert f"- teacher 1: {tmp_path / 'teacher'} (weights: sha256 {record['teachers'][0]['sha256']})" in card
    assert f"- distilled translations: {record['translations']}" in card
    assert "- search of the teachers: beam size 2" in card
    with pytest.raises(RegardError, match="tokenized with the old values"):
        resume(tmp_path / "stopped", changes={"distillation.beam_size": 3}, more=2, force=True)


def test_translations_can_replace_the_references(world: Path, tmp_path: Path) -> None:
    replace = {"distillation.mode": "replace"}
    held_out = read_data(make_student(world, "one", changes=replace), tmp_path / "held-out")
    (records,) = read_translations(tmp_path / "held-out").values()
    assert len(held_out.train) == len(records)
    assert held_out.train.weights == (1.0,)
    assert held_out.validation is not None
    assert held_out.examples == read_data(make_student(world), tmp_path / "alone").examples
    files = {"kind": "lines", "source": str(world / "corpus/all.en"), "target": str(world / "corpus/all.de")}
    own = {**replace, "data.held_out": 0.0, "data.validation": [files]}
    with_files = read_data(make_student(world, "one", changes=own), tmp_path / "files")
    (records,) = read_translations(tmp_path / "files").values()
    assert len(with_files.train) == len(records)
    assert with_files.validation is not None
    assert len(with_files.validation) == 100


def test_an_ensemble_makes_one_translation(world: Path, tmp_path: Path) -> None:
    ensemble = {"distillation.combine": "ensemble"}
    student = read_data(make_student(world, "one", "two", changes=ensemble), tmp_path / "run")
    assert list(read_translations(tmp_path / "run")) == ["000-00.jsonl"]
    assert student.distilled is not None
    assert "in an ensemble" in str(student.distilled.describe()["teacher 2"])
    with pytest.raises(RegardError, match="Model 2 and model 1 have different vocabularies"):
        read_data(make_student(world, "one", "three", changes=ensemble), tmp_path / "other")


def test_runs_share_a_cache(world: Path, tmp_path: Path) -> None:
    cache = {"distillation.cache": str(tmp_path / "cache")}
    read_data(make_student(world, "one", changes=cache), tmp_path / "first")
    events: list[Event] = []
    read_data(make_student(world, "one", changes={**cache, "seed": 5}), tmp_path / "second", events.append)
    assert any("made 0 translations" in event.text for event in events if isinstance(event, Message))
    assert read_translations(tmp_path / "first") == read_translations(tmp_path / "second")
    other = read_data(make_student(world, "two", changes=cache), tmp_path / "third")
    assert other.distilled is not None
    assert read_translations(tmp_path / "third") != read_translations(tmp_path / "first")


def test_unusable_translations_are_left_out_and_counted(world: Path, tmp_path: Path) -> None:
    """Sources above data.max_length are not translated; empty and cut-off translations are not trained on."""
    events: list[Event] = []
    student = read_data(make_student(world, "one", changes={"data.max_length": 12}), tmp_path / "run", events.append)
    assert student.distilled is not None
    train, _ = split_sources(make_student(world))
    left_out = student.distilled.record.left_out
    assert left_out["of sources that are too long"] > 0
    assert student.distilled.record.translations + sum(left_out.values()) == len(train)
    assert any("of sources that are too long" in event.text for event in events if isinstance(event, Message))
    assert module._find_fault(EMPTY) == "empty"
    assert module._find_fault(Translation(" \n", 0.0, (), (), ended=True)) == "empty"
    assert module._find_fault(Translation("a", 0.0, (), (), ended=False)) == "cut off at the maximum length"
    assert module._find_fault(Translation("a", 0.0, (), (), ended=True)) is None


def test_changed_translations_are_refused(world: Path, tmp_path: Path) -> None:
    run = make_student(world, "one")
    read_data(run, tmp_path / "run")
    path = tmp_path / "run" / "distilled" / "000-00.jsonl"
    path.write_bytes(path.read_bytes()[:-2] + b" }")
    with pytest.raises(DamagedError, match="does not match its manifest"):
        read_data(run, tmp_path / "run")
    record_path = path.with_name("distillation.json")
    record = json.loads(record_path.read_text())
    for change in ({"files": 3}, {"files": [{"name": "../../x", "source": 0, "teacher": "one"}]}, {"sentences": None}):
        record_path.write_text(json.dumps(record | change))
        write_manifest(path.parent)
        with pytest.raises(DamagedError, match="record of the translations is damaged"):
            read_data(run, tmp_path / "run")


def test_an_unsuitable_teacher_is_refused(world: Path, tmp_path: Path) -> None:
    other = {"data.train.0.languages": ["de", "en"]}
    with pytest.raises(RegardError, match="translates en to de, but the corpus is de to en"):
        read_data(make_student(world, "one", changes=other), tmp_path / "run")
    file_as_cache = {"distillation.cache": str(world / "corpus/all.en")}
    with pytest.raises(RegardError, match="cache cannot be created"):
        read_data(make_student(world, "one", changes=file_as_cache), tmp_path / "run")
    with pytest.raises(RegardError, match="no such folder"):
        read_data(make_student(world, "missing"), tmp_path / "run")
    with pytest.raises(RegardError, match="given twice"):
        read_data(make_student(world, "one", "one/best"), tmp_path / "run")
    language_model = make_small_run(
        "causal_lm", {"book.txt": str(world / "corpus/book.txt"), "all.en": "", "all.de": ""}
    )
    fit(RUN_FILES.change(language_model, {"train.steps": 1, "validation.every_steps": 1}), tmp_path / "lm")
    with pytest.raises(RegardError, match="its task is 'causal_lm'"):
        read_data(make_student(world, str(tmp_path / "lm")), tmp_path / "run")
    with pytest.raises(ConfigError, match="the task is 'causal_lm'"):
        RUN_FILES.change(language_model, {"distillation.teachers": [str(world / "one")]})
    with pytest.raises(ConfigError, match="teachers translate text"):
        make_student(world, "one", changes={"data.prepared": "shards", "data.held_out": 0.0})


def test_the_command_takes_teachers(world: Path, tmp_path: Path) -> None:
    """`regard train --teacher`: the plan names the composition of the corpus, and the run file holds the teachers."""
    pair = ("--source", str(world / "corpus/all.en"), "--target", str(world / "corpus/all.de"))
    teachers = ("--teacher", str(world / "one"), "--teacher", str(world / "two"))
    settings = [f"--set={setting}" for setting in ("model.d_model=16",)]
    plan = run_command("train", *pair, *teachers, *settings, "--dry-run", columns=200)
    assert plan.code == 0, plan.errors
    assert (
        "Training data: the pairs, each 2 times per epoch, and 2 translations of every training source" in plan.output
    )
    assert "[distillation]\nteachers = [" in plan.output
    for options, message, code in (
        (("--teacher", str(tmp_path)), "neither a model nor a run", 1),
        (("--teacher", str(world / "one"), "--languages", "en", "fr"), "en to de, but the corpus is en to fr", 1),
        (("--set", "distillation.beam_size=4"), "distillation.teachers: is missing", 1),
    ):
        done = run_command("train", *pair, *options, "--out", str(tmp_path / "run"))
        assert done.code == code
        assert message in done.errors
    text = run_command("train", "--text", str(world / "corpus/book.txt"), *teachers, "--out", str(tmp_path / "run"))
    assert (text.code, "--teacher cannot be combined with --text" in text.errors) == (2, True)
    resumed = run_command("train", "--resume", str(world / "one"), *teachers)
    assert (resumed.code, "--teacher cannot be given" in resumed.errors) == (2, True)
    assert not (tmp_path / "run").exists()


def test_python_takes_teachers(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`regard.train(teacher=[...])` trains as the command does; CTranslate2 runs a teacher that it can represent."""
    monkeypatch.setattr(parity, "TEXTS", 3)
    shutil.copytree(world / "one", tmp_path / "teacher")
    small = {"model.d_model": 16, "model.encoder.layers": 1, "model.decoder.layers": 1, "train.average": 1}
    finished = regard.train(
        world / "corpus/all.en",
        world / "corpus/all.de",
        teacher=[tmp_path / "teacher"],
        out=tmp_path / "run",
        steps=1,
        settings={**small, "device.threads": 1, "device.logit_rows": 0, "device.attention": "autocast"},
    )
    card = (finished.folder / "best" / "README.md").read_text()
    assert "- teacher 1: " in card
    assert "beam size 5, engine ctranslate2" in card
    assert is_export(tmp_path / "teacher" / ".best-ctranslate2" / "float32")
    assert "The teachers made" in (finished.folder / "log.txt").read_text()


def test_long_sources_make_short_chunks(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus(make_student(world).data.train)
    sentences = [example.source for _, example in corpus.examples(Defects())]
    monkeypatch.setattr(module, "CHUNK_CHARACTERS", 3 * max(map(len, sentences)))
    texts = [texts for _, texts in module._iter_texts(corpus)]
    assert [text for chunk in texts for text in chunk] == sentences
    sizes = [sum(map(len, chunk)) for chunk in texts]
    assert len(texts) > 2
    assert max(sizes) <= module.CHUNK_CHARACTERS
    assert all(size + len(after[0]) > module.CHUNK_CHARACTERS for size, after in zip(sizes, texts[1:], strict=False))


def test_distilled_sources_have_weight_and_languages_of_their_originals(tmp_path: Path) -> None:
    pair = {"kind": "lines", "source": "train.en", "target": "train.xx"}
    originals = [{**pair, "languages": ["en", "de"]}, {**pair, "weight": 3.0, "languages": ["en", "fr"]}]
    run = make_small_run("translation", FILES, {"data.train": originals})
    files = tuple(module.TranslationFile(f"{source:03}-00.jsonl", source, "one") for source in (1, 0))
    record = module.DistillationRecord(module.FORMAT, (), "each", 5, 2, 2, {}, files)
    sources = module.Distilled(tmp_path, record).sources(Corpus(run.data.train))
    assert [(source.weight, source.languages) for source in sources] == [(3.0, ("en", "fr")), (1.0, ("en", "de"))]
