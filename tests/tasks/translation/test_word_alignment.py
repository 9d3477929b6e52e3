"""Word alignment from cross-attention: with hand-made weights, and with the model's."""

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.measure.alignment import alignment_error, read_gold
from regard.nn.record import Record
from regard.tasks.results import Translation
from regard.tasks.teacher_forcing import Row
from regard.tasks.translation import word_alignment
from regard.tasks.translation.translator import Translator
from regard.tasks.translation.word_alignment import align_words, with_alignment
from tests.tasks.factories import (
    MAX_LENGTH,
    TEXTS,
    make_encoder_decoder,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
)
from tests.tasks.factories import make_translator as make_plain_translator

SOURCE, TARGET = "the two men sleep .", "zwei Männer schlafen ."
GOLD = {0: 1, 1: 2, 2: 3, 3: 4}  # target word -> source word


def make_translator() -> Translator:
    settings = make_translator_settings(**{"decoder.layers": 2})
    return Translator(make_encoder_decoder(settings), make_tokenizers(), settings)


def make_attention(pairs: list[Row], shift: int) -> Tensor:
    """Each token of a target word attends to the tokens of its source word a little, and mostly to eos."""
    (pair,) = pairs
    source_words, target_words = make_tokenizer().word_ids(pair.source), make_tokenizer().word_ids(pair.labels[:-1])
    assert len(pair.inputs) > max(word for word in target_words if word is not None) + 2  # words have several tokens
    weights = torch.full((len(pair.inputs), len(pair.source)), 0.01)
    weights[:, -1] = 0.9
    for position, word in enumerate(target_words):
        positions = [n for n, source_word in enumerate(source_words) if source_word == GOLD[word or 0]]
        weights[position + shift, positions] = 0.4 / len(positions)
    return weights[None]  # (1, T, S)


@pytest.mark.parametrize(("rows", "shift"), [("output", 0), ("input", 1)])
def test_a_hand_made_case(rows: word_alignment.AttentionRows, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_alignment, "_attention_weights", lambda _, pairs, __: make_attention(pairs, shift))
    (links,) = align_words(make_translator(), [SOURCE], [TARGET], rows=rows)
    assert links == {(source, target) for target, source in GOLD.items()}
    gold = read_gold("1-0 2-1 3-2 4p3 0p0")
    assert alignment_error([links], [gold]).error_rate == 0.0


def test_the_sum_over_a_word_counts_not_its_largest_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source word of many tokens gets their sum."""
    (pair,) = make_translator().make_scorer().make_rows(["zwei"], ["playhouse a"])
    source_words = make_tokenizer().word_ids(pair.source)
    assert source_words.count(0) > 2
    weights = torch.zeros(1, len(pair.inputs), len(pair.source))
    weights[..., [n for n, word in enumerate(source_words) if word == 0]] = 0.6 / source_words.count(0)
    weights[..., [n for n, word in enumerate(source_words) if word == 1]] = 0.4
    monkeypatch.setattr(word_alignment, "_attention_weights", lambda *_: weights)
    assert align_words(make_translator(), ["playhouse a"], ["zwei"]) == [frozenset({(0, 0)})]


@pytest.mark.parametrize(("rows", "shift"), [("output", 0), ("input", 1)])
def test_the_weights_are_the_model_s_whatever_the_batch(rows: word_alignment.AttentionRows, shift: int) -> None:
    translator = make_translator()
    sources, targets = [*TEXTS[:2], "two", ""], [*TEXTS[2:], "", "zwei"]
    links = align_words(translator, sources, targets, layer=0, rows=rows)
    assert links == align_words(translator, sources, targets, layer=0, rows=rows, batch_tokens=1)
    assert links[2:] == [frozenset(), frozenset()]  # no words on one side
    assert {target for _, target in links[0]} == set(range(len(targets[0].split(" "))))
    assert max(source for source, _ in links[0]) < len(sources[0].split(" "))
    default = align_words(translator, sources, targets)
    assert default == align_words(translator, sources, targets, layer=1, rows="output")
    assert align_words(translator, sources, targets, layer=0) != default
    record = Record()
    (pair,) = translator.make_scorer().make_rows(targets[:1], sources[:1])
    with torch.no_grad():
        translator.model(torch.tensor([pair.source]), torch.tensor([pair.inputs]), record=record)
    weights = record.weights("decoder.0.cross")[0].mean(dim=0)  # (T, S)
    source_words, target_words = make_tokenizer().word_ids(pair.source), make_tokenizer().word_ids(pair.labels[:-1])
    for source, target in links[0]:
        attention = torch.stack([weights[n + shift] for n, word in enumerate(target_words) if word == target]).mean(
            dim=0
        )
        sums = [
            sum(float(attention[n]) for n, word in enumerate(source_words) if word == word_index)
            for word_index in range(8)
        ]
        assert sums.index(max(sums)) == source


def test_invalid_arguments_are_refused() -> None:
    translator = make_translator()
    for layer in (-1, 2):
        with pytest.raises(RegardError, match=f"no layer {layer}"):
            align_words(translator, ["two"], ["zwei"], layer=layer)
    with pytest.raises(RegardError, match="got 'both'"):
        align_words(translator, ["two"], ["zwei"], rows="both")  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="1 text but 2 sources"):
        align_words(translator, ["two", "men"], ["zwei"])


def test_translations_are_aligned_on_request() -> None:
    translator = make_plain_translator()
    translations = translator.translate([*TEXTS, ""], max_new_tokens=MAX_LENGTH)
    assert all(translation.alignment is None for translation in translations)
    aligned_translations = with_alignment(translator, [*TEXTS, ""], translations)
    assert aligned_translations[-1].alignment == ()
    expected = align_words(translator, TEXTS, [translation.text for translation in translations[:-1]])
    assert [set(translation.alignment or ()) for translation in aligned_translations[:-1]] == [
        set(links) for links in expected
    ]
    assert isinstance(aligned_translations[0], Translation)
    assert any(translation.alignment for translation in aligned_translations)
