"""Raw text in, raw text out, with small untrained networks."""

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.data.rows import BatchArrays, StoredSamples
from regard.data.tasks import build_task
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.state import DecodingState
from regard.models.swift import CpuDecoder
from regard.pipeline.answers import Translation
from regard.pipeline.translator import Translator
from regard.pipeline.written import never_written
from regard.text.vocabularies import TokenizerPair
from tests.pipeline.made import TEXTS, tokenizer, translating_model, translator_settings, vocabularies

MANY = [text[: 5 + 7 * n % len(text)] for n, text in enumerate(TEXTS * 4)]  # of many lengths


def made(*tags: str, **changes: object) -> Translator:
    settings = translator_settings(**{"source.vocabulary": tokenizer(*tags).size, **changes})
    return Translator(translating_model(settings), vocabularies(*tags), settings)


def same(first: list[Translation], second: list[Translation]) -> bool:
    """Token by token; scores differ in their last digits, because sums over padded rows are done in another order."""
    for one, other in zip(first, second, strict=True):
        assert one.logs == pytest.approx(other.logs, abs=2e-4)
        if (one.text, one.tokens, one.ended) != (other.text, other.tokens, other.ended):
            return False
    return True


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("position", ["sinusoidal", "relative"])
def test_a_batch_translates_as_each_text_alone(beam: int, position: str) -> None:
    translator = made(**{"encoder.position.kind": position, "decoder.position.kind": position})
    alone = [translator.translate([text], beam=beam, longest=10)[0] for text in MANY]
    for batch_tokens in (1, 300, 100_000):
        assert same(translator.translate(MANY, beam=beam, longest=10, batch_tokens=batch_tokens), alone)
    assert len({one.text for one in alone}) > 5  # they are not all alike


@pytest.mark.parametrize("beam", [1, 3])
def test_a_translation_says_what_the_model_thinks_of_it(beam: int) -> None:
    """The cached, padded, reordered search against one plain forward pass over the result."""
    translator = made()
    specials = tokenizer().specials
    for text, found in zip(MANY, translator.translate(MANY, beam=beam, longest=9), strict=True):
        source = torch.tensor([[*tokenizer().encode(text).ids, specials.eos]])
        target = torch.tensor([[specials.bos, *found.tokens[:-1]]])
        with torch.no_grad():
            logs = translator.model(source, target).log_softmax(dim=-1)[0]
        each = logs.gather(1, torch.tensor(found.tokens)[:, None])[:, 0].tolist()
        assert found.logs == pytest.approx(each, abs=1e-4)
        assert found.score == pytest.approx(sum(each) / len(each), abs=1e-4)
        if beam == 1:
            banned = never_written(tokenizer(), torch.device("cpu"))
            assert logs.index_fill(1, banned, -torch.inf).argmax(dim=1).tolist() == list(found.tokens)


@pytest.mark.parametrize("tags", [(), ("en", "de")])
def test_the_source_is_framed_as_in_training(tags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    translator = made(*tags, languages=["en", "de"])
    rows = rows_of_training(translator.vocabularies, tagged=bool(tags))
    assert rows.source is not None
    assert rows.source_valid is not None
    assert rows.target is not None
    wanted = {tuple(row[real].tolist()) for row, real in zip(rows.source, rows.source_valid, strict=True)}
    sources: set[tuple[int, ...]] = set()
    firsts: set[int] = set()
    start, step = EncoderDecoder.start, CpuDecoder.step

    def watched_start(self: EncoderDecoder, source: Tensor, real: Tensor | None, *, capacity: int) -> DecodingState:
        marks = torch.ones_like(source, dtype=torch.bool) if real is None else real
        sources.update(tuple(row[mark].tolist()) for row, mark in zip(source, marks, strict=True))
        return start(self, source, real, capacity=capacity)

    def watched_step(self: CpuDecoder, tokens: Tensor, state: DecodingState) -> Tensor:
        firsts.update(tokens[:, 0].tolist())
        return step(self, tokens, state)

    monkeypatch.setattr(EncoderDecoder, "start", watched_start)
    monkeypatch.setattr(CpuDecoder, "step", watched_step)
    translator.translate(MANY, beam=1, longest=1)
    assert sources == wanted
    assert firsts == {int(first) for first in rows.target[:, 0]}


def test_weights_that_have_changed_are_noticed() -> None:
    """A translator lays weights out anew for its steps, and must not go on with old ones."""
    translator = made()
    before = translator.translate(MANY, beam=2, longest=9)
    assert translator.translate(MANY, beam=2, longest=9) == before
    other = translating_model(translator.settings, 5)
    for training in (False, True):
        translator.model.load_state_dict(other.state_dict())
        translator.model.train(training)
        fresh = Translator(other, translator.vocabularies, translator.settings)
        assert same(translator.translate(MANY, beam=2, longest=9), fresh.translate(MANY, beam=2, longest=9))
        other = translating_model(translator.settings, 6)
    after = translator.translate(MANY, beam=2, longest=9)
    assert [one.text for one in after] != [one.text for one in before]


def rows_of_training(pair: TokenizerPair, *, tagged: bool) -> BatchArrays:
    """What a model learns from: MANY texts, all translated as token 5 into German."""
    ids = pair.source.encode_ids(MANY)
    zeros = np.zeros(len(MANY), np.int64)
    tokens = np.array([token for text in ids for token in (*text, 5)])
    lengths = np.array([[len(text) for text in ids], [1] * len(ids)])
    records = StoredSamples(tokens, lengths, samples=zeros, draws=zeros, languages=zeros, labels=zeros)
    return build_task("translate", pair, languages=[("en", "de")] if tagged else None).make_arrays(records)


def test_order_is_kept_and_texts_without_words_stay_empty() -> None:
    translator = made()
    texts = ["", TEXTS[0], " \t ", TEXTS[1], "", TEXTS[0]]
    found = translator.translate(texts, beam=2, longest=6)
    assert [one.text == "" for one in found] == [True, False, True, False, True, False]
    assert found[1] == found[5]
    assert found[0].tokens == ()
    assert found[0].ended
    assert translator.translate([]) == []


def test_longest_is_twice_the_source_and_fifty() -> None:
    translator = made()
    never_ends = translator.model
    with torch.no_grad():
        never_ends.target.embedding.weight[tokenizer().specials.eos] = 0.0  # tied: END gets a logit of 0
        for parameter in never_ends.decoder.layers[-1].parameters():
            parameter.mul_(3.0)
    never = 0
    for text in TEXTS[:2]:
        (found,) = translator.translate([text], beam=1)
        tokens = len(tokenizer().encode(text).ids) + 1
        assert len(found.tokens) <= 2 * tokens + 50
        assert found.ended or len(found.tokens) == 2 * tokens + 50
        never += not found.ended
    assert never
    (short,) = translator.translate(TEXTS[:1], beam=3, longest=4)
    assert len(short.tokens) <= 4


def test_the_model_is_left_as_it_was() -> None:
    translator = made()
    model = translator.model
    quiet = translator.translate(TEXTS, beam=1, longest=8)
    model.train()
    model.encoder.layers[0].eval()  # a mixture, too
    modes = [module.training for module in model.modules()]
    assert translator.translate(TEXTS, beam=1, longest=8) == quiet  # no dropout
    assert [module.training for module in model.modules()] == modes
    with pytest.raises(RegardError):
        translator.translate(["x"], longest=0)
    assert [module.training for module in model.modules()] == modes
    model(torch.tensor([[5, 6]]), torch.tensor([[7, 8]])).sum().backward()  # it goes on learning
    assert model.head.projection.weight.grad is not None


@pytest.mark.parametrize("beam", [1, 4])
def test_what_is_no_text_is_never_written(beam: int) -> None:
    translator = made("de", "en", languages=["en", "de"])
    specials = tokenizer("de", "en").specials
    banned = specials.control - {specials.eos, specials.unk}
    assert len(banned) == 7  # pad, begin, mask, classify, separate, two languages
    assert set(never_written(translator.vocabularies.target, torch.device("cpu")).tolist()) == banned
    with torch.no_grad():
        translator.model.target.embedding.weight[sorted(banned)] *= 5.0  # tied: the model would love to write them
    for found in translator.translate(MANY, beam=beam, longest=10):
        assert not banned & set(found.tokens)


def test_texts_beyond_learned_positions_are_refused_by_name() -> None:
    learned = {"kind": "learned", "length": 12}
    translator = made(**{"encoder.position": learned, "decoder.position": learned})
    with pytest.raises(RegardError, match=r"Text 2 has \d+ tokens, and the model has learned 12 positions") as told:
        translator.translate(["two", TEXTS[2]])
    assert "Zwei junge" in str(told.value)
    assert all(len(one.tokens) <= 12 for one in translator.translate(["two", "men"], beam=2))
    with pytest.raises(RegardError, match="cannot have 13 tokens"):
        translator.translate(["two"], longest=13)


def test_a_model_of_many_languages_is_told_which() -> None:
    many = made("de", "en", languages=["en", "de", "fr"])
    with pytest.raises(RegardError, match="several languages: de, en"):
        many.translate(["two"])
    with pytest.raises(RegardError, match="no tag for the language 'fr'"):
        many.translate(["two"], into="fr")
    with pytest.raises(RegardError, match="1 languages for 2 texts"):
        many.translate(["two", "men"], into=["de"])
    german, english = (many.translate(["two"], into=language, longest=9)[0] for language in ("de", "en"))
    assert same(many.translate(["two", "two"], into=["en", "de"], longest=9), [english, german])
    assert german.logs != pytest.approx(english.logs, abs=1e-2)
    pair = made("de", "en", languages=["en", "de"])
    assert pair.translate(["two"], longest=9) == pair.translate(["two"], into="de", longest=9)


def test_progress_is_told_and_mistakes_are_refused() -> None:
    translator = made()
    told: list[int] = []
    translator.translate([*MANY, ""], beam=1, longest=2, batch_tokens=60, report=told.append)
    assert sum(told) == len(MANY) + 1
    assert len(told) > 3
    with pytest.raises(RegardError, match="a list is expected"):
        translator.translate("two men")
    with pytest.raises(RegardError, match="No beam of 0"):
        translator.translate(["two"], beam=0)
