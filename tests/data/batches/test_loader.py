import json
import random
from collections import Counter
from dataclasses import asdict, replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.base.errors import RegardError
from regard.base.labels import IGNORE_INDEX
from regard.config.codec import preset
from regard.config.sources import TableConfig
from regard.data.batches.batch import Batch
from regard.data.batches.loader import Loader
from regard.data.batches.order import DataPosition, Order, OrderSettings, Window
from regard.data.batches.rows import RowMaker
from regard.data.corpus import Corpus
from regard.data.example import Defects, Location
from regard.data.shards.prepare import prepare_in_memory
from regard.data.shards.shard import Shards
from regard.models.build import build
from regard.tasks.causal_lm.rows import CausalLMRows
from regard.tasks.masked_lm import MaskedLMRows
from regard.tasks.span_corruption import SpanCorruptionRows
from regard.tasks.tagging import TaggingRows
from regard.tasks.text_classification import ClassificationRows
from regard.tasks.translation.rows import TranslationRows
from tests.data.factories import SPECIALS as S
from tests.data.factories import make_random_shards, make_shard
from tests.data.shards.factories import TOKENIZERS

SETTINGS = OrderSettings(seed=1, max_tokens=200, max_length=48, window_size=2, pool_size=64)
PACKED = replace(SETTINGS, packs_sequences=True)
COUNTS = [60, 45, 80]


def sample_number(tokens: torch.Tensor) -> int:
    """Return the number that a generated sample begins with."""
    return int(tokens[0]) * 80 + int(tokens[1])


def check_batch(batch: Batch) -> None:
    assert batch.source is not None
    assert batch.target is not None
    assert max(batch.source.numel(), batch.target.numel()) <= SETTINGS.max_tokens
    if batch.number is not None:
        for row, sample in enumerate(batch.samples.tolist()):
            assert sample_number(batch.source[row]) == sample_number(batch.labels[row]) == sample


def test_all_ranks_see_everything_once_through_stops() -> None:
    """20 passes over an epoch, each with some stops and another number of ranks after each stop."""
    corpus = make_random_shards(COUNTS)
    rng = random.Random(1)
    for _ in range(20):
        gradient_accumulation = rng.choice((1, 2, 4, 6))
        position, seen = None, Counter[int]()
        while position is None or position.epoch == 0:
            world_size = rng.choice((1, 2, 3, 4, 8))
            ranks = [
                Loader(
                    corpus,
                    TranslationRows(S, S),
                    SETTINGS,
                    rank=rank,
                    world_size=world_size,
                    gradient_accumulation=gradient_accumulation,
                ).steps(position)
                for rank in range(world_size)
            ]
            for _ in range(rng.randrange(1, 20)):
                steps = [next(rank) for rank in ranks]
                assert len({(len(step.batches), step.next_position) for step in steps}) == 1
                for step in steps:
                    for batch in step.batches:
                        check_batch(batch)
                        seen.update(batch.samples[batch.samples >= 0].tolist())
                position = DataPosition(**json.loads(json.dumps(asdict(steps[0].next_position))))
                if position.epoch:
                    break
        assert seen == Counter(range(sum(COUNTS)))


def test_epochs_continue_without_end() -> None:
    loader = Loader(make_random_shards([30]), TranslationRows(S, S), SETTINGS)
    length = sum(1 for _ in loader.iter_epoch())
    steps = list(islice(loader.steps(), 3 * length))
    assert [step.next_position.epoch for step in steps[length - 1 :: length]] == [1, 2, 3]
    assert steps[length - 1].next_position.next_global_batch == 0
    first = [step.batches[0].samples.tolist() for step in steps[:length]]
    assert first != [step.batches[0].samples.tolist() for step in steps[length : 2 * length]]
    again = next(loader.steps(steps[length - 1].next_position))
    assert torch.equal(again.batches[0].labels, steps[length].batches[0].labels)


def test_resuming_plans_the_window_of_the_position_only(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = list[int]()
    plan_window = Order.plan_window

    def count(order: Order, epoch: int, index: int) -> Window:
        planned.append(index)
        return plan_window(order, epoch, index)

    monkeypatch.setattr(Order, "plan_window", count)
    corpus = make_random_shards([20] * 12)
    steps = list(islice(Loader(corpus, TranslationRows(S, S), SETTINGS).steps(), 40))
    assert len({step.next_position.window for step in steps}) == 6
    for before, after in pairwise(steps):
        planned.clear()
        again = next(Loader(corpus, TranslationRows(S, S), SETTINGS).steps(before.next_position))
        assert [batch.samples.tolist() for batch in again.batches] == [
            batch.samples.tolist() for batch in after.batches
        ]
        assert planned[0] == before.next_position.window
        assert len(planned) <= 2  # the next window, if the step is the last one of its window
    old = replace(steps[20].next_position, window=0, window_start=0)  # of an earlier version
    again = next(Loader(corpus, TranslationRows(S, S), SETTINGS).steps(old))
    assert again.batches[0].samples.tolist() == steps[21].batches[0].samples.tolist()
    with pytest.raises(RegardError, match="an epoch has 6"):
        next(Loader(corpus, TranslationRows(S, S), SETTINGS).steps(replace(old, window=6)))


def test_a_position_of_another_corpus_is_rejected() -> None:
    position = Loader(make_random_shards([30]), TranslationRows(S, S), SETTINGS).order.start
    for other_loader in (
        Loader(make_random_shards([30], seed=1), TranslationRows(S, S), SETTINGS),
        Loader(make_random_shards([30]), TranslationRows(S, S, language_tags=(7,)), SETTINGS),
        Loader(make_random_shards([30]), TranslationRows(S, S), replace(SETTINGS, max_tokens=201)),
    ):
        with pytest.raises(RegardError, match="have changed"):
            next(other_loader.steps(position))


def test_every_packed_token_is_a_label_once_and_in_order() -> None:
    corpus = make_random_shards(COUNTS)
    labels_by_sample: dict[int, list[int]] = {number: [] for number in range(sum(COUNTS))}
    for batch in Loader(corpus, CausalLMRows(S), PACKED).iter_epoch(1):
        assert batch.target is not None
        assert batch.documents is not None
        assert batch.positions is not None
        assert batch.target.numel() <= PACKED.max_tokens
        for piece, sample in enumerate(batch.samples.tolist()):
            mask = batch.documents == piece
            inputs, labels = batch.target[mask].tolist(), batch.labels[mask].tolist()
            assert batch.positions[mask].tolist() == list(range(len(inputs)))
            assert inputs[1:] == labels[:-1]
            labels_by_sample[sample] += labels
        padding = batch.documents < 0
        assert (batch.labels[padding] == IGNORE_INDEX).all()
        assert (batch.target[padding] == S.pad).all()
    for number in range(sum(COUNTS)):
        assert Counter(labels_by_sample[number]) == Counter([*source_tokens(corpus, number), S.eos])


def source_tokens(corpus: Shards, number: int) -> list[int]:
    index = int(np.searchsorted(corpus.sample_offsets, number, side="right")) - 1
    shard, local = corpus.shards[index], number - int(corpus.sample_offsets[index])
    begin = shard.offsets()[local]
    return shard.tokens[begin : begin + shard.lengths[0, local]].tolist()


def test_weights_repeat_samples_with_fresh_noise() -> None:
    corpus = make_random_shards([40, 30], weights={"s1": 2.0})
    loader = Loader(corpus, MaskedLMRows(S, seed=1, text_ids=np.arange(80)), replace(SETTINGS, max_length=60))
    labels: dict[int, list[tuple[int, ...]]] = {}
    for batch in loader.iter_epoch():
        for row, sample in enumerate(batch.samples.tolist()):
            labels.setdefault(sample, []).append(tuple(batch.labels[row].tolist()))
    assert all(len(rows) == 1 + (sample >= 40) for sample, rows in labels.items())
    assert len(labels) == 70
    twice = [rows for rows in labels.values() if len(rows) == 2]
    masked_places = [
        [{place for place, label in enumerate(row) if label != IGNORE_INDEX} for row in rows] for rows in twice
    ]
    assert sum(first != second for first, second in masked_places) > 25


def test_too_long_samples_are_counted_and_named(tmp_path: Path) -> None:
    corpus = Shards([make_shard([([1] * 5, [2] * 3), ([1] * 3, [2] * 60), ([1] * 90, [2])])])
    loader = Loader(corpus, TranslationRows(S, S), SETTINGS)
    assert [(number, location, length) for number, location, length in loader.too_long.samples] == [
        (1, Location("made.txt", 2), 61),
        (2, Location("made.txt", 3), 91),
    ]
    assert str(loader.too_long).startswith("2 samples have more than 48 tokens and are excluded; the first")
    loader.too_long.save(tmp_path / "aside.tsv")
    assert (tmp_path / "aside.tsv").read_text().startswith("made.txt:2\t61 tokens, more than 48\nmade.txt:3\t91")
    assert [batch.samples.tolist() for batch in loader.iter_epoch()] == [[0]]
    only_long = Loader(Shards([make_shard([([1] * 90, [2])])]), TranslationRows(S, S), SETTINGS)
    with pytest.raises(RegardError, match="too small for one batch"):
        next(only_long.steps())


def test_long_texts_are_truncated_and_named() -> None:
    first = make_shard([([1] * 5,), ([2] * 90,)], ("source",), name="1", labels=("good",), label=[1, 1])
    second = make_shard([([3] * 47,)], ("source",), name="2", labels=("bad",), label=[1])
    loader = Loader(Shards([first, second]), ClassificationRows(S, max_length=48), SETTINGS)
    assert len(loader.too_long) == 0
    assert loader.truncated.samples == ((1, Location("made.txt", 2), 92), (2, Location("made.txt", 1), 49))
    assert str(loader.truncated).startswith("2 samples have more than 48 tokens and are truncated; the first")
    seen = {sample: batch.source.shape[1] for batch in loader.iter_epoch() for sample in batch.samples.tolist()}  # type: ignore[union-attr]
    assert set(seen) == {0, 1, 2}
    assert max(seen.values()) == 48
    assert len(Loader(Shards([first]), ClassificationRows(S), SETTINGS).truncated) == 0


def test_languages_and_labels_have_the_corpus_numbers() -> None:
    first_pair = make_shard([([1], [2])], name="1", languages=(("en", "fr"),))
    second_pair = make_shard([([3], [4])], name="2", languages=(("en", "de"),))
    corpus = Shards([first_pair, second_pair])
    assert corpus.languages == (("en", "de"), ("en", "fr"))
    numbers = {int(s): int(n) for b in Loader(corpus, TranslationRows(S, S), SETTINGS).iter_epoch()
             for s, n in zip(b.samples, b.languages, strict=True)}  # fmt: skip
    assert numbers == {0: 1, 1: 0}

    first = make_shard([([1],), ([2],)], ("source",), name="1", labels=("good",), label=[1, 0])
    second = make_shard([([3],)], ("source",), name="2", labels=("bad",), label=[1])
    corpus = Shards([first, second])
    numbers = {int(s): int(n) for b in Loader(corpus, ClassificationRows(S), SETTINGS).iter_epoch()
             for s, n in zip(b.samples, b.labels, strict=True)}  # fmt: skip
    assert (corpus.labels, numbers) == (("bad", "good"), {0: 1, 1: IGNORE_INDEX, 2: 0})

    first = make_shard([([1, 2], [1, 0])], ("source", "tags"), name="1", labels=("N",))
    second = make_shard([([3, 4, 5], [1, 0, 2])], ("source", "tags"), name="2", labels=("A", "V"))
    (batch,) = Loader(Shards([first, second]), TaggingRows(S), SETTINGS).iter_epoch()
    labels = {int(sample): row.tolist() for sample, row in zip(batch.samples, batch.labels, strict=True)}
    assert labels == {
        0: [IGNORE_INDEX, 1, IGNORE_INDEX, IGNORE_INDEX, IGNORE_INDEX],
        1: [IGNORE_INDEX, 0, IGNORE_INDEX, 2, IGNORE_INDEX],
    }


def test_a_task_rejects_a_corpus_without_its_streams() -> None:
    lines = Shards([make_shard([([1],)], ("source",))])
    with pytest.raises(RegardError, match="needs source and target; the corpus has source"):
        Loader(lines, TranslationRows(S, S), SETTINGS)
    with pytest.raises(RegardError, match="both be packed"):
        Loader(lines, CausalLMRows(S), SETTINGS)


TASKS: list[RowMaker] = [
    TranslationRows(S, S),
    CausalLMRows(S),
    MaskedLMRows(S, seed=1, text_ids=np.arange(80)),
    SpanCorruptionRows(S, (97, 98, 99), seed=1),
    ClassificationRows(S),
    TaggingRows(S),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_an_empty_batch_runs_and_has_no_gradient(task: RowMaker) -> None:
    streams = ("source", task.needs[-1]) if len(task.needs) == 2 else ("source",)
    corpus = Shards([make_shard([([1], [1])[: len(streams)]], streams, labels=("x",))])
    settings = replace(SETTINGS, packs_sequences=task.packs_sequences)
    rank = Loader(corpus, task, settings, rank=1, world_size=2)
    (batch,) = next(rank.steps()).batches
    assert (batch.number, batch.samples.tolist(), batch.label_count) == (None, [-1], 0)
    inputs = [tensor for tensor in (batch.source, batch.target) if tensor is not None]
    assert inputs
    assert all(tensor.size(0) == 1 and tensor.size(1) >= 1 for tensor in inputs)
    if batch.source_valid is not None:
        assert batch.source_valid.all()  # a row that sees nothing would answer NaN


def test_models_accept_batches() -> None:
    small = {"d_model": 16, "tokens.vocabulary": 100}
    decoder = {**small, "decoder.layers": 1, "decoder.attention.heads": 2, "decoder.position.length": 64}
    decoder |= {"decoder.feedforward.d_ff": 32}
    model = build(preset("gpt2", decoder), seed=0).eval()
    corpus = make_random_shards([20])
    batch = next(iter(Loader(corpus, CausalLMRows(S), PACKED).iter_epoch()))
    assert batch.documents is not None
    assert batch.target is not None
    logits = model(batch.target, positions=batch.positions, documents=batch.documents)
    assert logits.shape == (*batch.labels.shape, 100)
    # a document answers alike alone and packed: it sees only itself, from position 0
    piece = batch.documents[0] == batch.documents[0, -1]
    alone = model(batch.target[:1, piece])
    torch.testing.assert_close(alone[0], logits[0, piece], atol=1e-4, rtol=1e-4)


def test_a_batch_moves_as_a_whole() -> None:
    batch = next(iter(Loader(make_random_shards([20]), TranslationRows(S, S), SETTINGS).iter_epoch()))
    moved = batch.to("meta")
    assert moved.source is not None
    assert moved.number == batch.number
    assert {moved.source.device.type, moved.labels.device.type, moved.samples.device.type} == {"meta"}


def test_an_empty_label_is_a_label(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("".join(f"text {n}\t{label}\n" for n, label in enumerate(["good", "", "good"])))
    defects = Defects()
    shards = prepare_in_memory(Corpus([TableConfig(path=str(tmp_path / "rows.tsv"), label=2)]), TOKENIZERS, defects)
    assert shards.labels == ("", "good")
    (batch,) = Loader(shards, ClassificationRows(TOKENIZERS.source.specials), OrderSettings(1, 640, 64)).iter_epoch(0)
    assert sorted(batch.labels.flatten().tolist()) == [0, 1, 1]
    assert "empty label: 1, first at" in str(defects)
