"""Labeled pairs: the second text has token type 1 in batches, in the loss and in the classifier."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.config import codec
from regard.config.model import EncoderOnlyConfig
from regard.config.run import RunConfig
from regard.data.batches.batch import Batch
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from regard.nn.record import Record
from regard.store.run_folder import RunFolder
from regard.tasks.text_classification import Classifier
from regard.training.autotune import pick_typical_batch
from regard.training.batches import make_loader
from regard.training.data import RunData, prepare_data
from regard.training.objective import Objective
from regard.training.step import cut_rows
from tests.tasks.factories import perturb
from tests.training.runs import make_sentences

LABELS = ["no", "yes"]


def make_pair_run(path: Path, types: int, changes: dict[str, Any] | None = None) -> RunConfig:
    table = {
        "data": {
            "train": [{"kind": "table", "path": str(path), "source": 1, "target": 2, "label": 3}],
            "batch_tokens": 200,
            "max_length": 40,
        },
        "tokenizer": {"kind": "byte_bpe", "vocabulary": 300},
        "model": {"preset": "encoder-tiny"},
        "train": {"steps": 4, "step_tokens": 200, "schedule": {"kind": "constant", "lr": 0.01}},
        "device": {"name": "cpu", "threads": 1},
    }
    model = {
        "model.task": "text_classification",
        "model.head": {"kind": "classes", "labels": LABELS, "pool": "mean"},
        "model.source.types": types,
        "model.source.vocabulary": 300,
        "model.d_model": 16,
        "model.encoder.layers": 1,
        "model.encoder.attention.heads": 2,
    }
    return codec.RUN_FILES.parse(table, model | (changes or {}))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    lines = make_sentences(80)
    path.write_text("".join(f"{lines[i]}\t{lines[i + 1]}\t{LABELS[i % 4 == 0]}\n" for i in range(79)))
    return path


@pytest.fixture(scope="module")
def run_data(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> RunData:
    return prepare_data(make_pair_run(corpus, 2), RunFolder(tmp_path_factory.mktemp("run")), lambda _: None)


def read_batch(run: RunConfig, run_data: RunData) -> Batch:
    return next(iter(make_loader(run, run_data.train, run_data.tokenizers).iter_epoch(0)))


def make_model(run: RunConfig) -> tuple[EncoderOnly, EncoderOnlyConfig]:
    settings = run.model
    assert isinstance(settings, EncoderOnlyConfig)
    model = build(settings, seed=1)
    assert isinstance(model, EncoderOnly)
    return perturb(model, 1), settings


def test_the_second_text_has_type_1(corpus: Path, run_data: RunData) -> None:
    batch = read_batch(make_pair_run(corpus, 2), run_data)
    specials = run_data.tokenizers.source.specials
    assert batch.source is not None
    assert batch.types is not None
    assert batch.source_valid is not None
    for tokens, types, valid in zip(batch.source.tolist(), batch.types.tolist(), batch.source_valid, strict=True):
        length = int(valid.sum())
        first_sep = tokens.index(specials.sep)
        assert tokens[length - 1] == specials.sep
        assert types == [0] * (first_sep + 1) + [1] * (length - first_sep - 1) + [0] * (len(tokens) - length)


@pytest.mark.parametrize("types", [0, 1])
def test_models_without_a_second_type_get_none(corpus: Path, run_data: RunData, types: int) -> None:
    batch, other = (read_batch(make_pair_run(corpus, count), run_data) for count in (types, 2))
    assert batch.types is None
    assert batch.source is not None
    assert other.source is not None
    assert torch.equal(batch.source, other.source)


def test_truncated_pairs_keep_their_types(corpus: Path, run_data: RunData) -> None:
    batch = read_batch(make_pair_run(corpus, 2, {"data.max_length": 12}), run_data)
    assert batch.source is not None
    assert batch.types is not None
    specials = run_data.tokenizers.source.specials
    assert batch.source.size(1) <= 12
    is_sep = batch.source == specials.sep
    assert (batch.types[is_sep].reshape(-1, 2) == torch.tensor([0, 1])).all()


def test_the_loss_reads_the_types(corpus: Path, run_data: RunData) -> None:
    run = make_pair_run(corpus, 2)
    batch, (model, _) = read_batch(run, run_data), make_model(run)
    objective = Objective.from_run(model, run).eval()
    assert batch.source is not None
    with torch.no_grad():
        logits = model(batch.source, batch.source_valid, types=batch.types)
        expected = torch.nn.functional.cross_entropy(logits, batch.labels, reduction="sum")
        total = objective(batch).total
        assert total == pytest.approx(float(expected), rel=1e-5)
        assert total != pytest.approx(float(objective(replace(batch, types=None)).total), rel=1e-3)


def test_copies_and_parts_of_a_batch_keep_the_types(corpus: Path, run_data: RunData) -> None:
    run = make_pair_run(corpus, 2)
    batch = read_batch(run, run_data)
    assert batch.types is not None
    parts = [part.types for part in cut_rows(batch, 2) if part.types is not None]
    assert torch.equal(torch.cat(parts), batch.types)
    assert pick_typical_batch(run, run_data).types is not None


def test_the_classifier_reads_what_training_reads(corpus: Path, run_data: RunData) -> None:
    run = make_pair_run(corpus, 2)
    (model, settings), tokenizer = make_model(run), run_data.tokenizers.source
    classifier = Classifier(model, run_data.tokenizers, settings)
    pairs = [tuple(line.split("\t")[:2]) for line in corpus.read_text().splitlines()[:7]]
    results = classifier.classify([first for first, _ in pairs], [second for _, second in pairs])
    for (first, second), result in zip(pairs, results, strict=True):
        sides, record = tokenizer.encode_ids([first, second]), Record()
        row = [tokenizer.specials.cls, *sides[0], tokenizer.specials.sep, *sides[1], tokenizer.specials.sep]
        types = [0] * (2 + len(sides[0])) + [1] * (1 + len(sides[1]))
        with torch.no_grad():
            logits = model(torch.tensor([row]), types=torch.tensor([types]), record=record)[0]
        assert list(result.probabilities.values()) == pytest.approx(logits.softmax(dim=-1).tolist(), abs=1e-5)
        recorded = classifier.record(first, second)
        assert torch.allclose(recorded["encoder.0.self"], record.weights("encoder.0.self")[0])
