import json
import random
from collections import Counter
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch

from regard.base.errors import RegardError
from regard.config.codec import preset
from regard.config.run import Table
from regard.data.batch import Batch
from regard.data.corpus import Corpus
from regard.data.example import Defects, Where
from regard.data.loader import Loader
from regard.data.order import Position, Rules
from regard.data.prepare import in_memory
from regard.data.rows import IGNORED
from regard.data.shards import Shards
from regard.data.tasks import Classify, Continue, Fill, Restore, Tag, Task, Translate, task_for
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from tests.data.made import SPECIALS as S
from tests.data.made import random_shards, shard
from tests.data.test_prepare import VOCABULARIES

RULES = Rules(seed=1, budget=200, longest=48, window=2, pool=64)
PACKED = replace(RULES, packed=True)
COUNTS = [60, 45, 80]


def own_number(tokens: torch.Tensor) -> int:
    """The number that a made sample begins with."""
    return int(tokens[0]) * 80 + int(tokens[1])


def check(batch: Batch) -> None:
    assert batch.source is not None
    assert batch.target is not None
    assert max(batch.source.numel(), batch.target.numel()) <= RULES.budget
    if batch.number is not None:
        for row, sample in enumerate(batch.samples.tolist()):
            assert own_number(batch.source[row]) == own_number(batch.labels[row]) == sample


def test_all_ranks_together_see_everything_once_through_stops() -> None:
    """20 runs over an epoch, each with some stops and another number of ranks after each."""
    corpus = random_shards(COUNTS)
    draw = random.Random(1)
    for _ in range(20):
        together = draw.choice((1, 2, 4, 6))
        position, seen = None, Counter[int]()
        while position is None or position.epoch == 0:
            world = draw.choice((1, 2, 3, 4, 8))
            ranks = [
                Loader(corpus, Translate(S, S), RULES, rank=rank, world=world, together=together).updates(position)
                for rank in range(world)
            ]
            for _ in range(draw.randrange(1, 20)):
                updates = [next(rank) for rank in ranks]
                assert len({(len(update.batches), update.after) for update in updates}) == 1
                for update in updates:
                    for batch in update.batches:
                        check(batch)
                        seen.update(batch.samples[batch.samples >= 0].tolist())
                position = Position(**json.loads(json.dumps(asdict(updates[0].after))))
                if position.epoch:
                    break
        assert seen == Counter(range(sum(COUNTS)))


def test_epochs_go_on_without_end() -> None:
    loader = Loader(random_shards([30]), Translate(S, S), RULES)
    length = sum(1 for _ in loader.epoch())
    updates = list(islice(loader.updates(), 3 * length))
    assert [update.after.epoch for update in updates[length - 1 :: length]] == [1, 2, 3]
    assert updates[length - 1].after.next_global_batch == 0
    first = [update.batches[0].samples.tolist() for update in updates[:length]]
    assert first != [update.batches[0].samples.tolist() for update in updates[length : 2 * length]]
    again = next(loader.updates(updates[length - 1].after))
    assert torch.equal(again.batches[0].labels, updates[length].batches[0].labels)


def test_a_position_of_another_corpus_is_refused() -> None:
    position = Loader(random_shards([30]), Translate(S, S), RULES).order.start
    for other in (
        Loader(random_shards([30], seed=1), Translate(S, S), RULES),
        Loader(random_shards([30]), Translate(S, S, tags=(7,)), RULES),
        Loader(random_shards([30]), Translate(S, S), replace(RULES, budget=201)),
    ):
        with pytest.raises(RegardError, match="have changed"):
            next(other.updates(position))


def test_packed_text_comes_out_once_and_in_order() -> None:
    corpus = random_shards(COUNTS)
    written: dict[int, list[int]] = {number: [] for number in range(sum(COUNTS))}
    for batch in Loader(corpus, Continue(S), PACKED).epoch(1):
        assert batch.target is not None
        assert batch.documents is not None
        assert batch.positions is not None
        assert batch.target.numel() <= PACKED.budget
        for piece, sample in enumerate(batch.samples.tolist()):
            places = batch.documents == piece
            reads, writes = batch.target[places].tolist(), batch.labels[places].tolist()
            assert batch.positions[places].tolist() == list(range(len(reads)))
            assert reads[1:] == writes[:-1]
            written[sample] += writes
        padding = batch.documents < 0
        assert (batch.labels[padding] == IGNORED).all()
        assert (batch.target[padding] == S.pad).all()
    for number in range(sum(COUNTS)):
        assert Counter(written[number]) == Counter([*text_of(corpus, number), S.eos])


def text_of(corpus: Shards, number: int) -> list[int]:
    index = int(np.searchsorted(corpus.bases, number, side="right")) - 1
    shard, local = corpus.shards[index], number - int(corpus.bases[index])
    begin = shard.begins()[local]
    return shard.tokens[begin : begin + shard.lengths[0, local]].tolist()


def test_weights_repeat_samples_with_fresh_noise() -> None:
    corpus = random_shards([40, 30], weights={"s1": 2.0})
    loader = Loader(corpus, Fill(S, seed=1, ordinary=np.arange(80)), replace(RULES, longest=60))
    labels: dict[int, list[tuple[int, ...]]] = {}
    for batch in loader.epoch():
        for row, sample in enumerate(batch.samples.tolist()):
            labels.setdefault(sample, []).append(tuple(batch.labels[row].tolist()))
    assert all(len(found) == 1 + (sample >= 40) for sample, found in labels.items())
    assert len(labels) == 70
    twice = [found for found in labels.values() if len(found) == 2]
    asked = [[{place for place, label in enumerate(row) if label != IGNORED} for row in found] for found in twice]
    assert sum(first != second for first, second in asked) > 25


def test_too_long_samples_are_counted_and_named(tmp_path: Path) -> None:
    corpus = Shards([shard([([1] * 5, [2] * 3), ([1] * 3, [2] * 60), ([1] * 90, [2])])])
    loader = Loader(corpus, Translate(S, S), RULES)
    assert [(number, where, length) for number, where, length in loader.quarantine.samples] == [
        (1, Where("made.txt", 2), 61),
        (2, Where("made.txt", 3), 91),
    ]
    assert str(loader.quarantine).startswith("2 samples have more than 48 tokens and are set aside; the first")
    loader.quarantine.save(tmp_path / "aside.tsv")
    assert (tmp_path / "aside.tsv").read_text().startswith("made.txt:2\t61 tokens, more than 48\nmade.txt:3\t91")
    assert [batch.samples.tolist() for batch in loader.epoch()] == [[0]]
    only_long = Loader(Shards([shard([([1] * 90, [2])])]), Translate(S, S), RULES)
    with pytest.raises(RegardError, match="No batch can be made"):
        next(only_long.updates())


def test_long_texts_are_classified_by_their_beginning_and_named() -> None:
    first = shard([([1] * 5,), ([2] * 90,)], ("source",), name="1", labels=("good",), label=[1, 1])
    second = shard([([3] * 47,)], ("source",), name="2", labels=("bad",), label=[1])
    loader = Loader(Shards([first, second]), Classify(S, longest=48), RULES)
    assert len(loader.quarantine) == 0
    assert loader.in_part.samples == ((1, Where("made.txt", 2), 92), (2, Where("made.txt", 1), 49))
    assert str(loader.in_part).startswith("2 samples have more than 48 tokens and are read only to there; the first")
    seen = {sample: batch.source.shape[1] for batch in loader.epoch() for sample in batch.samples.tolist()}  # type: ignore[union-attr]
    assert set(seen) == {0, 1, 2}
    assert max(seen.values()) == 48
    assert len(Loader(Shards([first]), Classify(S), RULES).in_part) == 0


def test_languages_and_labels_have_the_corpus_numbers() -> None:
    one = shard([([1], [2])], name="1", languages=(("en", "fr"),))
    two = shard([([3], [4])], name="2", languages=(("en", "de"),))
    corpus = Shards([one, two])
    assert corpus.languages == (("en", "de"), ("en", "fr"))
    found = {int(s): int(n) for b in Loader(corpus, Translate(S, S), RULES).epoch()
             for s, n in zip(b.samples, b.languages, strict=True)}  # fmt: skip
    assert found == {0: 1, 1: 0}

    first = shard([([1],), ([2],)], ("source",), name="1", labels=("good",), label=[1, 0])
    second = shard([([3],)], ("source",), name="2", labels=("bad",), label=[1])
    corpus = Shards([first, second])
    found = {int(s): int(n) for b in Loader(corpus, Classify(S), RULES).epoch()
             for s, n in zip(b.samples, b.labels, strict=True)}  # fmt: skip
    assert (corpus.labels, found) == (("bad", "good"), {0: 1, 1: IGNORED, 2: 0})

    first = shard([([1, 2], [1, 0])], ("source", "tags"), name="1", labels=("N",))
    second = shard([([3, 4, 5], [1, 0, 2])], ("source", "tags"), name="2", labels=("A", "V"))
    (batch,) = Loader(Shards([first, second]), Tag(S), RULES).epoch()
    labels = {int(sample): row.tolist() for sample, row in zip(batch.samples, batch.labels, strict=True)}
    assert labels == {
        0: [IGNORED, 1, IGNORED, IGNORED, IGNORED],
        1: [IGNORED, 0, IGNORED, 2, IGNORED],
    }


def test_tasks_and_corpora_must_fit() -> None:
    lines = Shards([shard([([1],)], ("source",))])
    with pytest.raises(RegardError, match="needs source and target; the corpus has source"):
        Loader(lines, Translate(S, S), RULES)
    with pytest.raises(RegardError, match="both be packed"):
        Loader(lines, Continue(S), RULES)


TASKS: list[Task] = [
    Translate(S, S),
    Continue(S),
    Fill(S, seed=1, ordinary=np.arange(80)),
    Restore(S, (97, 98, 99), seed=1),
    Classify(S),
    Tag(S),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
def test_an_empty_batch_runs_and_teaches_nothing(task: Task) -> None:
    streams = ("source", task.needs[-1]) if len(task.needs) == 2 else ("source",)
    corpus = Shards([shard([([1], [1])[: len(streams)]], streams, labels=("x",))])
    rules = replace(RULES, packed=task.packed)
    rank = Loader(corpus, task, rules, rank=1, world=2)
    (batch,) = next(rank.updates()).batches
    assert (batch.number, batch.samples.tolist(), batch.count) == (None, [-1], 0)
    inputs = [tensor for tensor in (batch.source, batch.target) if tensor is not None]
    assert inputs
    assert all(tensor.size(0) == 1 and tensor.size(1) >= 1 for tensor in inputs)
    if batch.source_real is not None:
        assert batch.source_real.all()  # a row that sees nothing would answer NaN


def test_batches_fit_the_models() -> None:
    small = {"width": 16, "tokens.vocabulary": 100}
    decoder = {**small, "decoder.layers": 1, "decoder.attention.heads": 2, "decoder.position.length": 64}
    decoder |= {"decoder.feedforward.hidden": 32}
    model = cast(DecoderOnly, build(preset("gpt2", decoder), seed=0)).eval()
    corpus = random_shards([20])
    batch = next(iter(Loader(corpus, Continue(S), PACKED).epoch()))
    assert batch.documents is not None
    assert batch.target is not None
    logits = model(batch.target, positions=batch.positions, documents=batch.documents)
    assert logits.shape == (*batch.labels.shape, 100)
    # a document answers alike alone and packed: it sees only itself, from position 0
    piece = batch.documents[0] == batch.documents[0, -1]
    alone = model(batch.target[:1, piece])
    torch.testing.assert_close(alone[0], logits[0, piece], atol=1e-4, rtol=1e-4)


def test_a_batch_moves_as_a_whole() -> None:
    batch = next(iter(Loader(random_shards([20]), Translate(S, S), RULES).epoch()))
    moved = batch.to("meta")
    assert moved.source is not None
    assert moved.number == batch.number
    assert {moved.source.device.type, moved.labels.device.type, moved.samples.device.type} == {"meta"}


def test_an_empty_label_is_a_label(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("".join(f"text {n}\t{label}\n" for n, label in enumerate(["good", "", "good"])))
    defects = Defects()
    shards = in_memory(Corpus([Table(path=str(tmp_path / "rows.tsv"), label=2)]), VOCABULARIES, defects)
    assert shards.labels == ("", "good")
    (batch,) = Loader(shards, task_for("classify", VOCABULARIES, seed=1), Rules(1, 640, 64)).epoch(0)
    assert sorted(batch.labels.flatten().tolist()) == [0, 1, 1]
    assert "empty label: 1, first at" in str(defects)
