"""A removed sample keeps its place in the order, and nothing of it reaches the model."""

from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.labels import IGNORE_INDEX
from regard.config.run import RunConfig
from regard.data.batches.batch import Batch
from regard.data.batches.loader import Loader
from regard.data.shards.shard import Shard, Shards
from regard.models.build import build
from regard.training.batches import make_loader
from regard.training.data import RunData
from regard.training.objective import Objective
from tests.training.runs import make_small_run, read_data, write_corpus

TASKS = ["translation", "causal_lm", "masked_lm", "images", "pixels", "audio", "transcription", "captioning"]
STEPS = 8


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_corpus(tmp_path_factory.mktemp("corpus"), 60)


def load(task: str, files: dict[str, str], folder: Path) -> tuple[RunConfig, RunData]:
    run = make_small_run(task, files, {"tokenizer.dropout": 0.0} if task == "translation" else {})
    data = read_data(run, folder)
    if run.has_tokenizer and run.model.task != "image_generation":
        assert data.tokenizer_pair is not None
    return run, data


def pick_lines(shards: Shards, step: int) -> dict[str, list[int]]:
    """Return every `step`-th line of the corpus by file; step 1 removes everything."""
    removed: dict[str, list[int]] = {}
    for shard in shards.shards:
        for sample in range(0, len(shard), step):
            location = shard.locate(sample)
            removed.setdefault(location.file, []).append(location.line)
    return removed


def list_batches(loader: Loader) -> list[Batch]:
    return [batch for step in islice(loader.steps(), STEPS) for batch in step.batches]


def overwrite(shards: Shards, removed: dict[str, list[int]]) -> Shards:
    """Return the corpus with other content, and the same lengths, in the removed samples."""
    rng = np.random.default_rng(5)
    changed = []
    for shard in shards.shards:
        tokens, offsets = shard.tokens.copy(), shard.offsets()
        for sample in range(len(shard)):
            if shard.locate(sample).line in removed.get(shard.locate(sample).file, ()):
                part = tokens[offsets[sample] : offsets[sample + 1]]
                part[:] = rng.permutation(part)[::-1] if part.size > 1 else part
        values = {field.name: getattr(shard, field.name) for field in fields(Shard)}
        changed.append(Shard(**{**values, "tokens": tokens}))
    return Shards(changed)


@pytest.mark.parametrize("task", TASKS)
def test_removed_sample_leaves_no_content_and_moves_no_other(task: str, files: dict[str, str], tmp_path: Path) -> None:
    run, data = load(task, files, tmp_path)
    removed = pick_lines(data.train, 7)
    plain = list_batches(make_loader(run, data.train, data.tokenizer_pair))
    without = list_batches(make_loader(run, data.train, data.tokenizer_pair, removed=removed))
    other = list_batches(make_loader(run, overwrite(data.train, removed), data.tokenizer_pair, removed=removed))
    lost = 0
    for before, after, overwritten in zip(plain, without, other, strict=True):
        assert before.samples.tolist() == after.samples.tolist()
        assert before.labels.shape == after.labels.shape
        for field in fields(Batch):
            value: Any = getattr(after, field.name)
            if isinstance(value, Tensor):
                assert torch.equal(value, getattr(overwritten, field.name)), field.name
        kept = after.labels != IGNORE_INDEX
        assert torch.equal(before.labels[kept], after.labels[kept])
        lost += int((before.labels != after.labels).sum())
    assert lost > 0


@pytest.mark.parametrize("task", ["translation", "causal_lm"])
def test_two_ranks_read_the_batches_of_one(task: str, files: dict[str, str], tmp_path: Path) -> None:
    run, data = load(task, files, tmp_path)
    removed = pick_lines(data.train, 3)
    alone = make_loader(run, data.train, data.tokenizer_pair, removed=removed)
    one = {batch.number: batch.labels for batch in alone.iter_epoch()}
    plain = [batch.labels for batch in make_loader(run, data.train, data.tokenizer_pair).iter_epoch()]
    assert not all(torch.equal(*pair) for pair in zip(plain, one.values(), strict=True))
    both: dict[int | None, Tensor] = {}
    for rank in range(2):
        loader = make_loader(run, data.train, data.tokenizer_pair, rank=rank, world_size=2, removed=removed)
        both |= {batch.number: batch.labels for batch in loader.iter_epoch() if batch.number is not None}
    assert both.keys() == one.keys()
    assert all(torch.equal(labels, one[number]) for number, labels in both.items())


@pytest.mark.parametrize("task", TASKS)
def test_batch_of_removed_samples_has_no_gradient(task: str, files: dict[str, str], tmp_path: Path) -> None:
    run, data = load(task, files, tmp_path)
    loader = make_loader(run, data.train, data.tokenizer_pair, removed=pick_lines(data.train, 1))
    objective = Objective.from_run(build(run.model, seed=1), run)
    batch = list_batches(loader)[0]
    total = objective(batch).total
    assert (batch.label_count, total.item()) == (0, 0.0)
    if total.requires_grad:
        total.backward()
    assert all(weight.grad is None or not weight.grad.any() for weight in objective.parameters())


def test_line_without_a_sample_is_refused(files: dict[str, str], tmp_path: Path) -> None:
    run, data = load("translation", files, tmp_path)
    with pytest.raises(RegardError, match=r"no sample of these lines: .*all\.en:999"):
        make_loader(run, data.train, data.tokenizer_pair, removed={files["all.en"]: [999]})
