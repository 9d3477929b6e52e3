"""Cross-attention as an alignment of words: by hand, and as the model's own weights."""

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.measure.alignment import alignment_error, read_gold
from regard.nn.record import Record
from regard.pipeline import word_alignment
from regard.pipeline.forced import Row
from regard.pipeline.scorer import Scorer
from regard.pipeline.translator import Translator
from regard.pipeline.word_alignment import align_words
from tests.pipeline.made import TEXTS, tokenizer, translating_model, translator_settings, vocabularies

SOURCE, TARGET = "the two men sleep .", "zwei Männer schlafen ."
GOLD = {0: 1, 1: 2, 2: 3, 3: 4}  # target word -> source word


def translator() -> Translator:
    settings = translator_settings(**{"decoder.layers": 2})
    return Translator(translating_model(settings), vocabularies(), settings)


def planted(pairs: list[Row], shift: int) -> Tensor:
    """Each piece of a target word looks at the pieces of its source word, a little, and most at END."""
    (pair,) = pairs
    above, below = tokenizer().word_ids(pair.source), tokenizer().word_ids(pair.labels[:-1])
    assert len(pair.reads) > max(word for word in below if word is not None) + 2  # words have several pieces
    table = torch.full((len(pair.reads), len(pair.source)), 0.01)
    table[:, -1] = 0.9
    for place, word in enumerate(below):
        pieces = [n for n, other in enumerate(above) if other == GOLD[word or 0]]
        table[place + shift, pieces] = 0.4 / len(pieces)
    return table[None]  # (1, T, S)


@pytest.mark.parametrize(("rows", "shift"), [("writes", 0), ("reads", 1)])
def test_a_hand_made_case(rows: word_alignment.Rows, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_alignment, "_weights", lambda _, pairs, __: planted(pairs, shift))
    (links,) = align_words(translator(), [SOURCE], [TARGET], rows=rows)
    assert links == {(source, target) for target, source in GOLD.items()}
    gold = read_gold("1-0 2-1 3-2 4p3 0p0")
    assert alignment_error([links], [gold]).error_rate == 0.0


def test_the_most_of_a_word_counts_not_of_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source word of many pieces gets their sum."""
    (pair,) = Scorer.of(translator()).rows(["zwei"], ["playhouse a"])
    above = tokenizer().word_ids(pair.source)
    assert above.count(0) > 2
    table = torch.zeros(1, len(pair.reads), len(pair.source))
    table[..., [n for n, word in enumerate(above) if word == 0]] = 0.6 / above.count(0)
    table[..., [n for n, word in enumerate(above) if word == 1]] = 0.4
    monkeypatch.setattr(word_alignment, "_weights", lambda *_: table)
    assert align_words(translator(), ["playhouse a"], ["zwei"]) == [frozenset({(0, 0)})]


@pytest.mark.parametrize(("rows", "shift"), [("writes", 0), ("reads", 1)])
def test_the_weights_are_the_model_s_whatever_the_batch(rows: word_alignment.Rows, shift: int) -> None:
    ours = translator()
    sources, targets = [*TEXTS[:2], "two", ""], [*TEXTS[2:], "", "zwei"]
    found = align_words(ours, sources, targets, layer=0, rows=rows)
    assert found == align_words(ours, sources, targets, layer=0, rows=rows, batch_tokens=1)
    assert found[2:] == [frozenset(), frozenset()]  # no words on one side
    assert {target for _, target in found[0]} == set(range(len(targets[0].split(" "))))
    assert max(source for source, _ in found[0]) < len(sources[0].split(" "))
    assert align_words(ours, sources, targets) == align_words(ours, sources, targets, layer=1, rows="reads")
    assert align_words(ours, sources, targets, layer=0) != align_words(ours, sources, targets, layer=1)
    record = Record()
    (pair,) = Scorer.of(ours).rows(targets[:1], sources[:1])
    with torch.no_grad():
        ours.model(torch.tensor([pair.source]), torch.tensor([pair.reads]), record=record)
    weights = record.weights("decoder.0.cross")[0].mean(dim=0)  # (T, S)
    above, below = tokenizer().word_ids(pair.source), tokenizer().word_ids(pair.labels[:-1])
    for source, target in found[0]:
        looks = torch.stack([weights[n + shift] for n, word in enumerate(below) if word == target]).mean(dim=0)
        sums = [sum(float(looks[n]) for n, word in enumerate(above) if word == one) for one in range(8)]
        assert sums.index(max(sums)) == source


def test_what_is_not_there_is_refused() -> None:
    ours = translator()
    for layer in (-1, 2):
        with pytest.raises(RegardError, match=f"no layer {layer}"):
            align_words(ours, ["two"], ["zwei"], layer=layer)
    with pytest.raises(RegardError, match="no rows 'both'"):
        align_words(ours, ["two"], ["zwei"], rows="both")  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="1 texts have 2 sources"):
        align_words(ours, ["two", "men"], ["zwei"])
