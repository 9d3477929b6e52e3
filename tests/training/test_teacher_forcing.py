"""Teacher forcing: labels are the decoder inputs shifted by one token, and no position sees a later one."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from examples.causal_mask.run import Size, compute_loss_bound, compute_stepwise_loss, make_held_out, train_both
from torch import Tensor

from regard.base.labels import IGNORE_INDEX
from regard.data.batches.batch import Batch
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.masks import no_mask
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.trainer import Trainer
from tests.training.factories import make_trainer
from tests.training.runs import make_sentences, translate_sentence

TASKS = ("translation", "causal_lm")
Segment = tuple[int, list[int], list[int]]  # number of the document, input tokens, labels


def make_task_trainer(task: str, folder: Path) -> Trainer:
    """Return a trainer over pairs, or over documents, some of which share a row and some of which fill several."""
    if task == "translation":
        return make_trainer(task, folder)
    documents = [" ".join(make_sentences(count, seed=count)) for count in (1, 2, 9, 1, 1, 5, 1, 12)]
    (folder / "documents.txt").write_text("\n***\n".join(documents) + "\n")
    source = {"kind": "documents", "path": str(folder / "documents.txt"), "separator": "***"}
    return make_trainer(task, folder, {"data.train": [source], "data.held_out": 0.0})


@pytest.fixture(params=TASKS)
def eval_trainer(request: pytest.FixtureRequest, tmp_path: Path) -> Trainer:
    """A trainer with its model in evaluation mode: no dropout."""
    trainer = make_task_trainer(request.param, tmp_path)
    trainer.model.eval()
    return trainer


def iter_batches(trainer: Trainer, count: int | None = None) -> Iterator[Batch]:
    return islice(trainer.loader.iter_epoch(), count)


def require_target(batch: Batch) -> Tensor:
    assert batch.target is not None
    return batch.target


def iter_segments(batch: Batch) -> Iterator[Segment]:
    """Yield the segments of each document in each row."""
    assert batch.documents is not None
    for row, inputs, labels in zip(batch.documents, require_target(batch), batch.labels, strict=True):
        for document in row.unique().tolist():
            if document >= 0:
                inside = row == document
                yield int(batch.samples[document]), inputs[inside].tolist(), labels[inside].tolist()


def compute_logits(trainer: Trainer, batch: Batch) -> Tensor:
    with torch.no_grad():
        if isinstance(trainer.model, EncoderDecoder):
            assert batch.source is not None
            return trainer.model(batch.source, require_target(batch), batch.source_valid)
        assert isinstance(trainer.model, DecoderOnly)
        return trainer.model(require_target(batch), positions=batch.positions, documents=batch.documents)


def test_a_translation_is_read_without_its_last_token_and_written_without_its_first(tmp_path: Path) -> None:
    trainer = make_task_trainer("translation", tmp_path)
    tokenizer, counts = TokenizerPair.load(trainer.folder.tokenizer).target, Counter[str]()
    bos, eos, pad = tokenizer.specials.bos, tokenizer.specials.eos, tokenizer.specials.pad
    for batch in iter_batches(trainer):
        assert batch.source is not None
        for source, inputs, labels in zip(
            batch.source.tolist(), require_target(batch).tolist(), batch.labels, strict=True
        ):
            sentence = tokenizer.decode(source[: source.index(eos)])
            size = inputs.index(pad) if pad in inputs else len(inputs)
            full = [*inputs[:size], eos]
            assert full[0] == bos
            assert tokenizer.decode(full[1:-1]) == translate_sentence(
                sentence
            )  # segmented at random, so only the text can be compared
            assert labels.tolist() == full[1:] + [IGNORE_INDEX] * (len(inputs) - size)
            assert set(inputs[size:]) <= {pad}
            counts[sentence] += 1
    assert counts <= Counter(make_sentences(200))
    assert counts.total() == len(trainer.loader.shards) > 150


def test_running_text_is_read_without_its_last_token_and_written_without_its_first(tmp_path: Path) -> None:
    trainer = make_task_trainer("causal_lm", tmp_path)
    tokenizer, (shard,) = TokenizerPair.load(trainer.folder.tokenizer).source, trainer.loader.shards.shards
    stored, offsets = trainer.loader.shards.load_tokens(0), shard.offsets()
    full_texts = {
        number: [
            tokenizer.specials.bos,
            *stored[int(offsets[number]) : int(offsets[number]) + length].tolist(),
            tokenizer.specials.eos,
        ]
        for number, length in enumerate(shard.lengths[0].tolist())
    }
    segments = [segment for batch in iter_batches(trainer) for segment in iter_segments(batch)]
    for number, inputs, labels in segments:
        full, size = full_texts[number], len(inputs)
        starts = range(len(full) - size)
        assert any(
            inputs == full[start : start + size] and labels == full[start + 1 : start + size + 1] for start in starts
        )
    for number, full in full_texts.items():
        own_segments = [segment for segment in segments if segment[0] == number]
        assert Counter(token for _, inputs, _ in own_segments for token in inputs) == Counter(full[:-1])
        assert Counter(token for _, _, labels in own_segments for token in labels) == Counter(full[1:])
    assert max(Counter(number for number, *_ in segments).values()) > 1  # a document over several rows
    rows = [row for batch in iter_batches(trainer) if batch.documents is not None for row in batch.documents]
    assert any(len(set(row.tolist()) - {-1}) > 1 for row in rows)  # several documents in a row


def test_no_place_depends_on_a_later_token(eval_trainer: Trainer) -> None:
    generator = torch.Generator().manual_seed(0)
    for batch in iter_batches(eval_trainer, 2):
        before, inputs = compute_logits(eval_trainer, batch), require_target(batch)
        for position in range(inputs.size(1) - 1):
            others = torch.randint(5, before.size(-1), inputs.shape, generator=generator)
            future = torch.arange(inputs.size(1)) > position
            after = compute_logits(eval_trainer, replace(batch, target=torch.where(future, others, inputs)))
            torch.testing.assert_close(after[:, : position + 1], before[:, : position + 1], rtol=0, atol=1e-6)
            assert not torch.allclose(
                after[:, position + 1], before[:, position + 1], atol=1e-3
            )  # the current position counts


def test_the_loss_is_what_writing_token_after_token_costs(eval_trainer: Trainer) -> None:
    model = eval_trainer.model
    for batch in iter_batches(eval_trainer, 4):
        with torch.no_grad():
            loss = eval_trainer.objective(batch).negative_log_likelihood.item()
            if isinstance(model, EncoderDecoder):
                stepwise = compute_stepwise_loss(model, batch)
            else:
                assert isinstance(model, DecoderOnly)
                stepwise = sum(stepwise_loss(model, inputs, labels) for _, inputs, labels in iter_segments(batch))
        assert loss == pytest.approx(stepwise, rel=1e-5)


def stepwise_loss(model: DecoderOnly, inputs: list[int], labels: list[int]) -> float:
    """Return the loss of decoding one text alone, without the other texts of its row."""
    state, total = model.start(capacity=len(inputs)), 0.0
    for token, label in zip(inputs, labels, strict=True):
        total -= model.step(torch.tensor([[token]]), state)[0, 0].log_softmax(dim=-1)[label].item()
    return total


@pytest.mark.parametrize("task", TASKS)
def test_without_the_mask_the_future_leaks(task: str, tmp_path: Path) -> None:
    trainer = make_task_trainer(task, tmp_path)
    trainer.model.eval()
    if isinstance(trainer.model, EncoderDecoder):
        trainer.model.decoder_mask = no_mask()
    else:
        assert isinstance(trainer.model, DecoderOnly)
        trainer.model.mask = no_mask()
    batch = next(iter_batches(trainer))
    last = require_target(batch).clone()
    last[:, -1] = 5 + (last[:, -1] + 1) % 100
    difference = (
        (compute_logits(trainer, replace(batch, target=last)) - compute_logits(trainer, batch)).abs().amax(dim=(0, 2))
    )  # (T)
    assert bool((difference[:-1] > 1e-4).all())


def test_a_model_without_the_mask_copies_what_it_sees_and_cannot_write(tmp_path: Path) -> None:
    size = replace(Size(), vocabulary_words=6, max_words=4, pairs=2000, held_out=40)
    size = replace(size, width=32, layers=1, batch_tokens=256, steps=200, peak=0.01)
    causal, unmasked = train_both(tmp_path, size)
    lower_bound = compute_loss_bound(make_held_out(size))
    assert unmasked.losses[-1] < 0.05 < 0.9 * lower_bound < causal.losses[-1] < 1.3 * lower_bound
    assert lower_bound < causal.parallel_loss < 1.2 * lower_bound
    assert causal.stepwise_loss == pytest.approx(causal.parallel_loss, rel=1e-4)
    assert unmasked.stepwise_loss > 3.0
    assert causal.accuracy > 0.8
    assert unmasked.accuracy < 0.2
