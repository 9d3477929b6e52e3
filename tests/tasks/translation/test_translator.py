"""Translate texts with small untrained models."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.data.batches.arrays import BatchArrays, StoredSamples
from regard.models.cpu_decoder import CpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.kv_cache import DecodingState
from regard.tasks.results import Translation
from regard.tasks.search import Beam
from regard.tasks.translation.rows import TranslationRows
from regard.tasks.translation.translator import Translator
from regard.text.tokenizer_pair import TokenizerPair
from tests.tasks.factories import (
    TEXTS,
    make_encoder_decoder,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
)

RECURRENT = {"kind": "recurrent", "layers": 1}
VARIED_TEXTS = [text[: 5 + 7 * n % len(text)] for n, text in enumerate(TEXTS * 4)]  # of many lengths


def make_translator(*tags: str, **changes: object) -> Translator:
    settings = make_translator_settings(**{"source.vocabulary": make_tokenizer(*tags).size, **changes})
    return Translator(make_encoder_decoder(settings), make_tokenizers(*tags), settings)


def is_same(first: list[Translation], second: list[Translation]) -> bool:
    """Token by token; scores differ in their last digits, because sums over padded rows are done in another order."""
    for left, right in zip(first, second, strict=True):
        assert left.logprobs == pytest.approx(right.logprobs, abs=2e-4)
        if (left.text, left.tokens, left.ended) != (right.text, right.tokens, right.ended):
            return False
    return True


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("position", ["sinusoidal", "relative"])
def test_a_batch_translates_as_each_text_alone(beam: int, position: str) -> None:
    translator = make_translator(**{"encoder.position.kind": position, "decoder.position.kind": position})
    alone = [translator.translate([text], Beam(beam), max_new_tokens=10)[0] for text in VARIED_TEXTS]
    for batch_tokens in (1, 300, 100_000):
        assert is_same(
            translator.translate(VARIED_TEXTS, Beam(beam), max_new_tokens=10, batch_tokens=batch_tokens), alone
        )
    assert len({translation.text for translation in alone}) > 5  # the outputs differ


@pytest.mark.parametrize("beam", [1, 3])
def test_logprobs_equal_a_forward_pass(beam: int) -> None:
    """The cached, padded, reordered search against one forward pass over the result."""
    translator = make_translator()
    specials = make_tokenizer().specials
    for text, translation in zip(
        VARIED_TEXTS, translator.translate(VARIED_TEXTS, Beam(beam), max_new_tokens=9), strict=True
    ):
        source = torch.tensor([[*make_tokenizer().encode(text).ids, specials.eos]])
        target = torch.tensor([[specials.bos, *translation.tokens[:-1]]])
        with torch.no_grad():
            logprobs = translator.model(source, target).log_softmax(dim=-1)[0]
        expected = logprobs.gather(1, torch.tensor(translation.tokens)[:, None])[:, 0].tolist()
        assert translation.logprobs == pytest.approx(expected, abs=1e-4)
        assert translation.score == pytest.approx(sum(expected) / len(expected), abs=1e-4)
        if beam == 1:
            banned = torch.tensor(specials.not_text)
            assert logprobs.index_fill(1, banned, -torch.inf).argmax(dim=1).tolist() == list(translation.tokens)


@pytest.mark.parametrize("tags", [(), ("en", "de")])
def test_the_source_has_special_tokens_as_in_training(tags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    translator = make_translator(*tags, languages=["en", "de"])
    rows = make_training_rows(translator.tokenizers, tagged=bool(tags))
    assert rows.source is not None
    assert rows.source_valid is not None
    assert rows.target is not None
    expected = {tuple(row[valid].tolist()) for row, valid in zip(rows.source, rows.source_valid, strict=True)}
    sources: set[tuple[int, ...]] = set()
    prompts: set[int] = set()
    start, step = EncoderDecoder.start, CpuDecoder.step

    def watched_start(self: EncoderDecoder, source: Tensor, valid: Tensor | None, **options: Any) -> DecodingState:
        masks = torch.ones_like(source, dtype=torch.bool) if valid is None else valid
        sources.update(tuple(row[mask].tolist()) for row, mask in zip(source, masks, strict=True))
        return start(self, source, valid, **options)

    def watched_step(self: CpuDecoder, tokens: Tensor, state: DecodingState) -> Tensor:
        prompts.update(tokens[:, 0].tolist())
        return step(self, tokens, state)

    monkeypatch.setattr(EncoderDecoder, "start", watched_start)
    monkeypatch.setattr(CpuDecoder, "step", watched_step)
    translator.translate(VARIED_TEXTS, Beam(1), max_new_tokens=1)
    assert sources == expected
    assert prompts == {int(prompt) for prompt in rows.target[:, 0]}


def test_changed_weights_take_effect() -> None:
    """A translator packs weights for its steps and must not use old ones."""
    translator = make_translator()
    before = translator.translate(VARIED_TEXTS, Beam(2), max_new_tokens=9)
    assert translator.translate(VARIED_TEXTS, Beam(2), max_new_tokens=9) == before
    other_model = make_encoder_decoder(translator.settings, 5)
    for training in (False, True):
        translator.model.load_state_dict(other_model.state_dict())
        translator.model.train(training)
        fresh = Translator(other_model, translator.tokenizers, translator.settings)
        assert is_same(
            translator.translate(VARIED_TEXTS, Beam(2), max_new_tokens=9),
            fresh.translate(VARIED_TEXTS, Beam(2), max_new_tokens=9),
        )
        other_model = make_encoder_decoder(translator.settings, 6)
    after = translator.translate(VARIED_TEXTS, Beam(2), max_new_tokens=9)
    assert [translation.text for translation in after] != [translation.text for translation in before]


def make_training_rows(tokenizers: TokenizerPair, *, tagged: bool) -> BatchArrays:
    """Rows of training: the varied texts, all translated as token 5 into German."""
    ids = tokenizers.source.encode_ids(VARIED_TEXTS)
    zeros = np.zeros(len(VARIED_TEXTS), np.int64)
    tokens = np.array([token for text in ids for token in (*text, 5)])
    lengths = np.array([[len(text) for text in ids], [1] * len(ids)])
    records = StoredSamples(tokens, lengths, samples=zeros, draws=zeros, languages=zeros, labels=zeros)
    source, target = tokenizers.source.specials, tokenizers.target.specials
    tags = (source.language_id("de"),) if tagged else ()
    return TranslationRows(source, target, tags).make_arrays(records)


def test_order_is_kept_and_empty_texts_stay_empty() -> None:
    translator = make_translator()
    texts = ["", TEXTS[0], " \t ", TEXTS[1], "", TEXTS[0]]
    translations = translator.translate(texts, Beam(2), max_new_tokens=6)
    assert [translation.text == "" for translation in translations] == [True, False, True, False, True, False]
    assert translations[1] == translations[5]
    assert translations[0].tokens == ()
    assert translations[0].ended
    assert translator.translate([]) == []


def test_default_max_length_is_twice_the_source_plus_50() -> None:
    translator = make_translator()
    model = translator.model
    with torch.no_grad():
        model.target.embedding.weight[make_tokenizer().specials.eos] = 0.0  # tied: eos gets a logit of 0
        for parameter in model.decoder.layers[-1].parameters():
            parameter.mul_(3.0)
    unfinished = 0
    for text in TEXTS[:2]:
        (translation,) = translator.translate([text], Beam(1))
        tokens = len(make_tokenizer().encode(text).ids) + 1
        assert len(translation.tokens) <= 2 * tokens + 50
        assert translation.ended or len(translation.tokens) == 2 * tokens + 50
        unfinished += not translation.ended
    assert unfinished
    (short,) = translator.translate(TEXTS[:1], Beam(3), max_new_tokens=4)
    assert len(short.tokens) <= 4


def test_the_model_is_left_as_it_was() -> None:
    translator = make_translator()
    model = translator.model
    expected = translator.translate(TEXTS, Beam(1), max_new_tokens=8)
    model.train()
    model.encoder.layers[0].eval()  # a mix of modes
    modes = [module.training for module in model.modules()]
    assert translator.translate(TEXTS, Beam(1), max_new_tokens=8) == expected  # no dropout
    assert [module.training for module in model.modules()] == modes
    with pytest.raises(RegardError):
        translator.translate(["x"], max_new_tokens=0)
    assert [module.training for module in model.modules()] == modes
    model(torch.tensor([[5, 6]]), torch.tensor([[7, 8]])).sum().backward()  # training can continue
    assert model.head.projection.weight.grad is not None


def test_fixed_vector_beams_read_their_own_sentence() -> None:
    stacks = {"encoder": RECURRENT, "decoder": {**RECURRENT, "cross": {"kind": "fixed_vector"}}}
    translator = make_translator(**stacks)
    alone = [translator.translate([text], Beam(3), max_new_tokens=8)[0] for text in TEXTS]
    assert is_same(translator.translate(TEXTS, Beam(3), max_new_tokens=8), alone)
    assert len({translation.tokens for translation in alone}) > 1


@pytest.mark.parametrize("beam", [1, 4])
def test_special_tokens_are_never_generated(beam: int) -> None:
    translator = make_translator("de", "en", languages=["en", "de"])
    specials = make_tokenizer("de", "en").specials
    banned = specials.control - {specials.eos, specials.unk}
    assert len(banned) == 7  # pad, bos, mask, cls, sep, two languages
    assert specials.not_text == sorted(banned)
    with torch.no_grad():
        translator.model.target.embedding.weight[sorted(banned)] *= 5.0  # tied: the model prefers them
    for translation in translator.translate(VARIED_TEXTS, Beam(beam), max_new_tokens=10):
        assert not banned & set(translation.tokens)


def test_texts_beyond_learned_positions_are_refused_by_name() -> None:
    learned = {"kind": "learned", "length": 12}
    translator = make_translator(**{"encoder.position": learned, "decoder.position": learned})
    with pytest.raises(RegardError, match=r"Text 2 has \d+ tokens, but the model has 12 positions") as raised:
        translator.translate(["two", TEXTS[2]])
    assert "Zwei junge" in str(raised.value)
    assert all(len(translation.tokens) <= 12 for translation in translator.translate(["two", "men"], Beam(2)))
    with pytest.raises(RegardError, match="max_new_tokens cannot be 13"):
        translator.translate(["two"], max_new_tokens=13)


def test_a_multilingual_model_needs_a_target_language() -> None:
    multilingual = make_translator("de", "en", languages=["en", "de", "fr"])
    with pytest.raises(RegardError, match="several target languages: de, en"):
        multilingual.translate(["two"])
    with pytest.raises(RegardError, match="no tag for the language 'fr'"):
        multilingual.translate(["two"], target_language="fr")
    with pytest.raises(RegardError, match="1 target language for 2 texts"):
        multilingual.translate(["two", "men"], target_language=["de"])
    german, english = (
        multilingual.translate(["two"], target_language=language, max_new_tokens=9)[0] for language in ("de", "en")
    )
    assert is_same(
        multilingual.translate(["two", "two"], target_language=["en", "de"], max_new_tokens=9), [english, german]
    )
    assert german.logprobs != pytest.approx(english.logprobs, abs=1e-2)
    pair = make_translator("de", "en", languages=["en", "de"])
    assert pair.translate(["two"], max_new_tokens=9) == pair.translate(["two"], target_language="de", max_new_tokens=9)


def test_progress_is_reported_and_invalid_arguments_are_refused() -> None:
    translator = make_translator()
    reported: list[int] = []
    translator.translate([*VARIED_TEXTS, ""], Beam(1), max_new_tokens=2, batch_tokens=60, report=reported.append)
    assert sum(reported) == len(VARIED_TEXTS) + 1
    assert len(reported) > 3
    with pytest.raises(RegardError, match="at least 1 row per text, got 0"):
        translator.translate(["two"], Beam(0))


def test_a_document_keeps_its_white_space() -> None:
    settings = make_translator_settings()
    translator = Translator(make_encoder_decoder(settings), make_tokenizers(), settings)

    def translate(text: str) -> str:
        return translator.translate_document(text.encode(), "a.txt", Beam(1), max_new_tokens=5)[0].decode()

    sources = ["A bee.", "C dee!", "E", "F."]
    one_by_one = [translator.translate([source], Beam(1), max_new_tokens=5)[0].text for source in sources]
    spaces = [" ", "  ", "\n\n", "\n"]
    joined = "".join(text + space for text, space in zip(one_by_one, spaces, strict=True))
    assert translate("\n  A bee. C dee!  E\n\nF.\n") == "\n  " + joined
    for before, after in (("   ", ""), ("", "  "), ("\t", " \n")):
        assert translate(f"{before}E{after}") == before + one_by_one[2] + after
    for empty in ("", "   ", "\n"):
        assert translate(empty) == empty


WORDS = " ".join(TEXTS).split()


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("beam", [1, 4])
def test_batch_1_is_batch_64(beam: int, count: int) -> None:
    rng = random.Random(1)
    sentences = [" ".join(rng.choices(WORDS, k=rng.randrange(1, 9))) for _ in range(count)]
    settings = make_translator_settings(**{"encoder.layers": 2, "decoder.layers": 2})
    translator = Translator(make_encoder_decoder(settings), make_tokenizers(), settings)
    max_source_length = max(len(source) for source in translator.encode_sources(sentences, None))
    alone = translator.translate(sentences, Beam(beam), max_new_tokens=6, batch_tokens=1)
    batched = translator.translate(sentences, Beam(beam), max_new_tokens=6, batch_tokens=64 * beam * max_source_length)
    different = [
        n
        for n, (single, batch_result) in enumerate(zip(alone, batched, strict=True))
        if single.tokens != batch_result.tokens
    ]
    assert not different
    assert len({single.tokens for single in alone}) > count // 10  # the outputs differ
