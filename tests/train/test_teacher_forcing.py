"""Teacher forcing: what must come out is what the decoder reads, one token ahead, and nobody sees what is to come."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from examples.causal_mask.run import Size, compute_loss_floor, compute_stepwise_loss, make_held_out, train_both
from torch import Tensor

from regard.data.batch import Batch
from regard.data.rows import IGNORE_INDEX
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.masks import no_mask
from regard.text.vocabularies import TokenizerPair
from regard.train.trainer import Trainer
from tests.train.made import trainer
from tests.train.runs import sentences, translated

TASKS = ("translate", "continue")
Piece = tuple[int, list[int], list[int]]  # a document's number, what is read of it, what must come out


def made(task: str, folder: Path) -> Trainer:
    """A trainer over pairs, or over documents of which some share a row and some fill several."""
    if task == "translate":
        return trainer(task, folder)
    documents = [" ".join(sentences(size, seed=size)) for size in (1, 2, 9, 1, 1, 5, 1, 12)]
    (folder / "documents.txt").write_text("\n***\n".join(documents) + "\n")
    source = {"kind": "documents", "path": str(folder / "documents.txt"), "separator": "***"}
    return trainer(task, folder, {"data.train": [source], "data.held_out": 0.0})


@pytest.fixture(params=TASKS)
def ready(request: pytest.FixtureRequest, tmp_path: Path) -> Trainer:
    """A trainer whose model does not drop anything."""
    found = made(request.param, tmp_path)
    found.model.eval()
    return found


def batches(of: Trainer, count: int | None = None) -> Iterator[Batch]:
    return islice(of.loader.iter_epoch(), count)


def target(batch: Batch) -> Tensor:
    assert batch.target is not None
    return batch.target


def pieces(batch: Batch) -> Iterator[Piece]:
    """The stretches of one document in each row."""
    assert batch.documents is not None
    for row, reads, writes in zip(batch.documents, target(batch), batch.labels, strict=True):
        for document in row.unique().tolist():
            if document >= 0:
                inside = row == document
                yield int(batch.samples[document]), reads[inside].tolist(), writes[inside].tolist()


def logits(of: Trainer, batch: Batch) -> Tensor:
    with torch.no_grad():
        if isinstance(of.model, EncoderDecoder):
            assert batch.source is not None
            return of.model(batch.source, target(batch), batch.source_valid)
        assert isinstance(of.model, DecoderOnly)
        return of.model(target(batch), positions=batch.positions, documents=batch.documents)


def test_a_translation_is_read_without_its_last_token_and_written_without_its_first(tmp_path: Path) -> None:
    of = made("translate", tmp_path)
    vocabulary, seen = TokenizerPair.load(of.folder.vocabulary).target, Counter[str]()
    begin, end, pad = vocabulary.specials.bos, vocabulary.specials.eos, vocabulary.specials.pad
    for batch in batches(of):
        assert batch.source is not None
        for source, reads, writes in zip(batch.source.tolist(), target(batch).tolist(), batch.labels, strict=True):
            sentence = vocabulary.decode(source[: source.index(end)])
            size = reads.index(pad) if pad in reads else len(reads)
            whole = [*reads[:size], end]
            assert whole[0] == begin
            assert vocabulary.decode(whole[1:-1]) == translated(sentence)  # cut by chance, so only its text is known
            assert writes.tolist() == whole[1:] + [IGNORE_INDEX] * (len(reads) - size)
            assert set(reads[size:]) <= {pad}
            seen[sentence] += 1
    assert seen <= Counter(sentences(200))
    assert seen.total() == len(of.loader.shards) > 150


def test_running_text_is_read_without_its_last_token_and_written_without_its_first(tmp_path: Path) -> None:
    of = made("continue", tmp_path)
    vocabulary, (shard,) = TokenizerPair.load(of.folder.vocabulary).source, of.loader.shards.shards
    stored, begins = of.loader.shards.load_tokens(0), shard.offsets()
    wholes = {
        number: [
            vocabulary.specials.bos,
            *stored[int(begins[number]) : int(begins[number]) + length].tolist(),
            vocabulary.specials.eos,
        ]
        for number, length in enumerate(shard.lengths[0].tolist())
    }
    found = [piece for batch in batches(of) for piece in pieces(batch)]
    for number, reads, writes in found:
        whole, size = wholes[number], len(reads)
        places = range(len(whole) - size)
        assert any(reads == whole[at : at + size] and writes == whole[at + 1 : at + size + 1] for at in places)
    for number, whole in wholes.items():
        mine = [piece for piece in found if piece[0] == number]
        assert Counter(token for _, reads, _ in mine for token in reads) == Counter(whole[:-1])
        assert Counter(token for _, _, writes in mine for token in writes) == Counter(whole[1:])
    assert max(Counter(number for number, *_ in found).values()) > 1  # a document over several rows
    rows = [row for batch in batches(of) if batch.documents is not None for row in batch.documents]
    assert any(len(set(row.tolist()) - {-1}) > 1 for row in rows)  # several documents in a row


def test_no_place_depends_on_a_later_token(ready: Trainer) -> None:
    draw = torch.Generator().manual_seed(0)
    for batch in batches(ready, 2):
        before, read = logits(ready, batch), target(batch)
        for place in range(read.size(1) - 1):
            others = torch.randint(5, before.size(-1), read.shape, generator=draw)
            future = torch.arange(read.size(1)) > place
            after = logits(ready, replace(batch, target=torch.where(future, others, read)))
            torch.testing.assert_close(after[:, : place + 1], before[:, : place + 1], rtol=0, atol=1e-6)
            assert not torch.allclose(after[:, place + 1], before[:, place + 1], atol=1e-3)  # and the present counts


def test_the_loss_is_what_writing_token_after_token_costs(ready: Trainer) -> None:
    model = ready.model
    for batch in batches(ready, 4):
        with torch.no_grad():
            loss = ready.objective(batch).negative_log_likelihood.item()
            if isinstance(model, EncoderDecoder):
                written = compute_stepwise_loss(model, batch)
            else:
                assert isinstance(model, DecoderOnly)
                written = sum(cost(model, reads, writes) for _, reads, writes in pieces(batch))
        assert loss == pytest.approx(written, rel=1e-5)


def cost(model: DecoderOnly, reads: list[int], writes: list[int]) -> float:
    """Of writing one text alone, without what shares a row with it."""
    state, total = model.start(capacity=len(reads)), 0.0
    for read, write in zip(reads, writes, strict=True):
        total -= model.step(torch.tensor([[read]]), state)[0, 0].log_softmax(dim=-1)[write].item()
    return total


@pytest.mark.parametrize("task", TASKS)
def test_without_the_mask_the_future_leaks(task: str, tmp_path: Path) -> None:
    of = made(task, tmp_path)
    of.model.eval()
    if isinstance(of.model, EncoderDecoder):
        of.model.decoder_mask = no_mask()
    else:
        assert isinstance(of.model, DecoderOnly)
        of.model.mask = no_mask()
    batch = next(batches(of))
    last = target(batch).clone()
    last[:, -1] = 5 + (last[:, -1] + 1) % 100
    changed = (logits(of, replace(batch, target=last)) - logits(of, batch)).abs().amax(dim=(0, 2))  # (T)
    assert bool((changed[:-1] > 1e-4).all())


def test_a_model_without_the_mask_copies_what_it_sees_and_cannot_write(tmp_path: Path) -> None:
    size = replace(Size(), words=6, longest=4, pairs=2000, held_out=40)
    size = replace(size, width=32, layers=1, batch_tokens=256, updates=200, peak=0.01)
    honest, cheat = train_both(tmp_path, size)
    least = compute_loss_floor(make_held_out(size))
    assert cheat.losses[-1] < 0.05 < 0.9 * least < honest.losses[-1] < 1.3 * least
    assert least < honest.parallel_loss < 1.2 * least
    assert honest.stepwise_loss == pytest.approx(honest.parallel_loss, rel=1e-4)
    assert cheat.stepwise_loss > 3.0
    assert honest.accuracy > 0.8
    assert cheat.accuracy < 0.2
