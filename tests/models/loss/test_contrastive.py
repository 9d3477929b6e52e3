"""Sentence embeddings: the loss is the plain formula, training makes partners find each other, the embedder agrees."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.base.errors import ConfigError, RegardError
from regard.base.labels import IGNORE_INDEX
from regard.config.run import RunConfig
from regard.config.sources import LinesConfig
from regard.measure.retrieval import retrieval_at_1
from regard.models.loss.contrastive import contrastive_loss, find_duplicates
from regard.store.run_folder import RunFolder
from regard.tasks.task import find_task
from regard.training.batches import make_loader
from regard.training.data import prepare_data
from regard.training.recipes.configure import configure
from regard.training.run import fit, resume
from tests.commands import run_command
from tests.training.factories import make_trainer
from tests.training.runs import compute_fingerprints, make_small_run, read_metrics, write_corpus

EMBED: dict[str, Any] = {"model.task": "embedding", "model.head": {"kind": "none"}, "train.label_smoothing": 0.0}


def make_embed_run(files: dict[str, str], changes: dict[str, Any] | None = None) -> RunConfig:
    source = {"kind": "lines", "source": files["all.en"], "target": files["all.de"]}
    return make_small_run("masked_lm", files, EMBED | {"data.train": [source]} | (changes or {}))


def compute_plainly(first: torch.Tensor, second: torch.Tensor, temperature: float) -> float:
    """The formula, one pair and one negative at a time."""

    def similarity(left: torch.Tensor, right: torch.Tensor) -> float:
        return float(left @ right / (left.norm() * right.norm())) / temperature

    total = 0.0
    for i in range(len(first)):
        own = math.exp(similarity(first[i], second[i]))
        forward = sum(math.exp(similarity(first[i], second[j])) for j in range(len(first)))
        backward = sum(math.exp(similarity(first[j], second[i])) for j in range(len(first)))
        total -= (math.log(own / forward) + math.log(own / backward)) / 2
    return total


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_the_loss_is_the_formula(temperature: float) -> None:
    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randn(7, 5, generator=generator) for _ in range(2))
    loss = contrastive_loss(first, second, torch.arange(7), temperature)
    assert float(loss.total) == pytest.approx(compute_plainly(first, second, temperature), rel=1e-5)
    vectors = (first / first.norm(dim=1, keepdim=True)) @ (second / second.norm(dim=1, keepdim=True)).t()
    assert int(loss.correct) == int((vectors.argmax(dim=1) == torch.arange(7)).sum())


def test_equal_texts_are_no_negatives() -> None:
    first = torch.tensor([[1, 2], [3, 0], [1, 2], [4, 4]])
    second = torch.tensor([[5, 6, 0], [7, 0, 0], [8, 0, 0], [7, 0, 0]])
    duplicates = find_duplicates(first, second)
    assert duplicates.nonzero().tolist() == [[0, 2], [1, 3], [2, 0], [3, 1]]
    chain = torch.tensor([[1, 2, 0], [5, 6, 0]]), torch.tensor([[5, 6, 9], [7, 8, 9]])  # (a, b) and (b, c)
    valid = chain[0] != 0, chain[1] != 9
    assert find_duplicates(*chain, *valid).nonzero().tolist() == [[1, 0]]
    assert not find_duplicates(*chain).any()
    vectors = torch.eye(4)[[0, 1, 0, 1]]  # pairs 0 and 2, and pairs 1 and 3, have equal vectors
    masked = contrastive_loss(vectors, vectors, torch.arange(4), 0.1, duplicates)
    assert float(masked.total) < 0.01 < float(contrastive_loss(vectors, vectors, torch.arange(4), 0.1).total)


def test_an_empty_batch_adds_nothing() -> None:
    vectors = torch.randn(1, 5, requires_grad=True)
    loss = contrastive_loss(vectors, vectors, torch.tensor([IGNORE_INDEX]), 0.05)
    loss.total.backward()
    assert loss.total.item() == loss.correct.item() == 0
    assert vectors.grad is not None
    assert not vectors.grad.any()


def test_both_texts_are_read_by_themselves(tmp_path: Path) -> None:
    run = make_embed_run(write_corpus(tmp_path / "corpus"))
    (tmp_path / "run").mkdir()
    run_data = prepare_data(run, RunFolder(tmp_path / "run"), lambda _: None)
    tokenizer = run_data.tokenizers.source
    lines = [(tmp_path / "corpus" / f"all.{side}").read_text().splitlines() for side in ("en", "de")]
    batch = next(iter(make_loader(run, run_data.train, run_data.tokenizers).iter_epoch(0)))
    assert batch.labels.tolist() == list(range(len(batch.samples)))
    texts = []
    for tokens, valid in ((batch.source, batch.source_valid), (batch.target, batch.target_valid)):
        assert tokens is not None
        assert valid is not None
        rows = [row[: int(mask.sum())] for row, mask in zip(tokens.tolist(), valid, strict=True)]
        assert all((row[0], row[-1]) == (tokenizer.specials.cls, tokenizer.specials.sep) for row in rows)
        texts.append([tokenizer.decode(row) for row in rows])
        assert tokens.numel() <= 128  # each side is within the token budget
    assert set(zip(*texts, strict=True)) <= set(zip(*lines, strict=True))
    assert batch.source_valid is not None
    assert batch.target_valid is not None
    assert batch.input_count == int(batch.source_valid.sum()) + int(batch.target_valid.sum())


def test_a_run_learns_to_find_partners(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus", 600)
    changes: dict[str, Any] = {
        "train.steps": 120,
        "train.save_every": 60,
        "validation.every_steps": 60,
        "train.average": 1,
        "model.d_model": 32,
    }
    changes |= {"data.batch_tokens": 512, "train.step_tokens": 512, "validation.metric": "retrieval_at_1"}
    run = make_embed_run(files, changes | {"train.ema": 0.0, "task_options.temperature": 0.1})
    fit(run, tmp_path / "run")
    lines = read_metrics(tmp_path / "run")
    scores = [line["validation"]["retrieval_at_1"] for line in lines if "validation" in line]
    assert scores[-1] > 0.6  # chance: 1 of about 60 pairs
    document = json.loads((tmp_path / "run" / "best" / "embedding.json").read_text())
    assert document == {"format": 1, "pool": "mean", "normalize": True, "max_length": None}
    embedder = regard.load_embedder(tmp_path / "run")
    examples = RunFolder(tmp_path / "run").examples.read_text().splitlines()
    pairs = [json.loads(line)[:2] for line in examples]
    vectors = [embedder.embed([pair[side] for pair in pairs]) for side in (0, 1)]
    assert retrieval_at_1(*vectors) == pytest.approx(max(scores), abs=0.02)
    (tmp_path / "test.tsv").write_text("".join(f"{first}\t{second}\n" for first, second in pairs))
    for option in (["--json"], ["--search", str(tmp_path / "test.tsv")]):
        refused = run_command("embed", str(tmp_path / "run"), "a text", "--output", str(tmp_path / "a.npy"), *option)
        assert (refused.code, f"{option[0]} has no effect with --output" in refused.errors) == (1, True)
    done = run_command("evaluate", str(tmp_path / "run"), "--data", str(tmp_path / "test.tsv"), "--json")
    assert done.code == 0, done.errors
    assert json.loads(done.output)["scores"]["retrieval_at_1"]["value"] == pytest.approx(100 * retrieval_at_1(*vectors))


def test_a_stopped_run_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    run = make_embed_run(write_corpus(tmp_path / "corpus"), {"train.steps": 8, "train.save_every": 3})
    fit(run, tmp_path / "whole")
    fit(run, tmp_path / "stopped", pause_at=4)
    resume(tmp_path / "stopped")
    assert compute_fingerprints(tmp_path / "stopped") == compute_fingerprints(tmp_path / "whole")


def test_a_batch_is_not_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = {"kind": "lines", "source": str(tmp_path / "corpus/all.en"), "target": str(tmp_path / "corpus/all.de")}
    trainer = make_trainer("masked_lm", tmp_path, EMBED | {"data.train": [source]})

    def run_out_of_memory(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(trainer.step_runner.objective, "forward", run_out_of_memory)
    step = next(trainer.loader.steps())
    with pytest.raises(RegardError, match="cannot be split"):
        trainer.step_runner.compute_gradients(step.batches, 0)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"train.label_smoothing": 0.1}, "train.label_smoothing: is set, but the contrastive loss"),
        ({"validation.metric": "perplexity"}, "Use loss or retrieval_at_1"),
        ({"task_options.temperature": 0.0}, "task_options.temperature: is 0.0"),
        (
            {"model.task": "masked_lm", "model.head": {"kind": "mlm"}, "task_options": {"temperature": 1.0}},
            "task_options.temperature: is not a key",
        ),
    ],
)
def test_what_does_not_apply_is_refused(changes: dict[str, Any], fault: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=fault):
        make_embed_run(write_corpus(tmp_path, 10), changes)


@pytest.mark.parametrize("options", [{"preset": "encoder-tiny"}, {"changes": {"model.task": "embedding"}}])
def test_an_encoder_on_pairs_learns_embeddings(options: dict[str, Any], tmp_path: Path) -> None:
    files = write_corpus(tmp_path)
    auto_run = configure(LinesConfig(source=files["all.en"], target=files["all.de"]), **options)
    run = auto_run.run
    assert (run.model.task, run.model.head.kind, run.validation.metric) == ("embedding", "none", "retrieval_at_1")
    assert run.gradient_accumulation == 1  # as many negatives as fit
    assert any(reason.startswith("Task: sentence embeddings from pairs") for reason in auto_run.reasons)
    batch = find_task(run.model.task).synthetic_batch(run, 3, 5)
    assert batch.labels.tolist() == [0, 1, 2]
    assert batch.target is not None
