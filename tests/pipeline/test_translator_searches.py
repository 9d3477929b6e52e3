"""Every search through a translator: n-best, sampling, constraints, ensembles, streams, inspection."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.filters import Filters
from regard.decode.length_penalty import gnmt
from regard.decode.mbr import minimum_bayes_risk
from regard.measure.sentence_chrf import sentence_chrf
from regard.models.cpu_decoder import CpuDecoder
from regard.nn.kv_cache import DecodingState
from regard.pipeline.constraints import Constraints, token_variants
from regard.pipeline.ensemble import EnsembleTranslator
from regard.pipeline.inspect import token_alternatives, translate_traced
from regard.pipeline.results import GeneratedText, Translation
from regard.pipeline.scorer import Scorer
from regard.pipeline.search import Beam, DiverseBeam, MinimumBayesRisk, Sampling, Search, StochasticBeam
from regard.pipeline.translator import Translator
from regard.pipeline.word_alignment import align_words, with_alignment
from regard.text.tokenizer_pair import TokenizerPair
from tests.pipeline.factories import (
    TEXTS,
    make_encoder_decoder,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
)

MAX_LENGTH = 8
SEARCHES: list[Search] = [
    Beam(3),
    Beam(3, length_penalty=gnmt(0.7), stop_after=2),
    Sampling(3),
    DiverseBeam(groups=3),
    StochasticBeam(3),
    MinimumBayesRisk(6),
]


def make_translator(seed: int = 1) -> Translator:
    settings = make_translator_settings()
    return Translator(make_encoder_decoder(settings, seed), make_tokenizers(), settings)


def all_texts(result: GeneratedText) -> list[str]:
    return [candidate.text for candidate in (result, *result.alternatives)]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_every_search_gives_its_best_and_the_next_ones(search: Search) -> None:
    translator = make_translator()
    results = translator.translate([*TEXTS, ""], search=search, n_best=3, max_length=MAX_LENGTH, seed=1)
    repeated_results = translator.translate([*TEXTS, ""], search=search, n_best=3, max_length=MAX_LENGTH, seed=1)
    assert results == repeated_results
    assert (results[-1].text, results[-1].alternatives) == ("", ())
    for result in results[:-1]:
        texts = [result, *result.alternatives]
        assert 1 <= len(texts) <= 3
        for text in texts:
            assert len(text.tokens) == len(text.logprobs) == len(text.token_texts) <= MAX_LENGTH
            assert "".join(text.token_texts).strip() == text.text.strip() or "\ufffd" in "".join(text.token_texts)
        if isinstance(search, Beam | Sampling | DiverseBeam) and not search.reranks:
            assert [text.score for text in texts] == sorted((text.score for text in texts), reverse=True)
    assert any(result.alternatives for result in results)
    first = translator.translate(TEXTS, search=search, max_length=MAX_LENGTH, seed=1)
    assert [(result.text, result.alternatives) for result in first] == [(result.text, ()) for result in results[:-1]]


def test_a_score_uses_the_length_penalty() -> None:
    for translation in make_translator().translate(TEXTS, Beam(length_penalty=gnmt(0.7)), max_length=MAX_LENGTH):
        assert translation.score == pytest.approx(
            sum(translation.logprobs) / ((5 + len(translation.logprobs)) / 6) ** 0.7
        )


def test_sampling_at_temperature_zero_is_greedy_and_random_without_a_seed() -> None:
    translator = make_translator()
    greedy_sampling = Sampling(filters=Filters(temperature=0))
    assert translator.translate(TEXTS, search=greedy_sampling, max_length=MAX_LENGTH) == translator.translate(
        TEXTS, Beam(1), max_length=MAX_LENGTH
    )
    unseeded = {
        tuple(translation.text for translation in translator.translate(TEXTS, search=Sampling(), max_length=MAX_LENGTH))
        for _ in "123"
    }
    assert len(unseeded) == 3


def test_minimum_bayes_risk_ranks_all_samples() -> None:
    translator, count = make_translator(), 12
    samples = translator.translate(TEXTS, search=Sampling(count), n_best=count, max_length=MAX_LENGTH, seed=5)
    reranked = translator.translate(
        TEXTS, search=MinimumBayesRisk(count, Filters()), n_best=count, max_length=MAX_LENGTH, seed=5
    )
    for sample, result in zip(samples, reranked, strict=True):
        best = max(result.utility for result in minimum_bayes_risk(all_texts(sample), sentence_chrf))
        assert result.utility == pytest.approx(best)
        assert set(all_texts(result)) == set(all_texts(sample))
        utilities = [text.utility for text in (result, *result.alternatives)]
        assert utilities == sorted(utilities, key=lambda value: -(value or 0))


@pytest.mark.parametrize("search", [Beam(1), Beam(3), Sampling(2), DiverseBeam(2), StochasticBeam(2)])
def test_every_search_obeys_constraints(search: Search) -> None:
    translator = make_translator()
    unconstrained = translator.translate(TEXTS, search=search, max_length=MAX_LENGTH, seed=2)
    prefixes = ["Zwei", "", "Ein M", "A"]
    token_texts = {token_text.strip() for result in unconstrained for token_text in result.token_texts}
    unwanted = [
        token_text
        for token_text in sorted(token_texts)
        if token_text.isascii() and token_text and token_text not in "".join(prefixes)
    ][:3]
    assert unwanted
    constraints = Constraints(prefixes=prefixes, forbidden=unwanted)
    results = translator.translate(
        TEXTS, search=search, constraints=constraints, n_best=search.rows_per_text, max_length=MAX_LENGTH, seed=2
    )
    for prefix, result in zip(prefixes, results, strict=True):
        for text in all_texts(result):
            assert text.startswith(prefix)
            ids = list(make_tokenizer().encode(text).ids)
            for phrase in unwanted:
                for variant in token_variants(make_tokenizer(), phrase):
                    assert not any(tuple(ids[i : i + len(variant)]) == variant for i in range(len(ids)))
    # What is not forbidden keeps its probability: forced tokens have the model's own.
    result_with_prefix = next(result for result, prefix in zip(results, prefixes, strict=True) if prefix)
    with torch.no_grad():
        source = torch.tensor([[*make_tokenizer().encode(TEXTS[0]).ids, make_tokenizer().specials.eos]])
        target = torch.tensor([[make_tokenizer().specials.bos, *result_with_prefix.tokens[:-1]]])
        logprobs = translator.model(source, target).log_softmax(dim=-1)[0]
    assert result_with_prefix.logprobs == pytest.approx(
        logprobs.gather(1, torch.tensor(result_with_prefix.tokens)[:, None])[:, 0].tolist(), abs=1e-4
    )


def test_required_phrases_are_there() -> None:
    translator = make_translator()
    required = [["Holz"], [], ["in der", "Mädchen"], ["Freien"]]
    results = translator.translate(TEXTS, Beam(3), constraints=Constraints(required=required), max_length=20)
    for phrases, result in zip(required, results, strict=True):
        assert all(phrase in result.text for phrase in phrases)
    assert results[1].text == translator.translate([TEXTS[1]], Beam(3), max_length=20)[0].text


def test_invalid_constraints_are_refused() -> None:
    translator = make_translator()
    for constraints, message in (
        (Constraints(prefixes=["a"]), "for 4 texts"),
        (Constraints(prefixes="abcd"), "for 4 texts"),
        (Constraints(required=[[]]), "for 4 texts"),
        (Constraints(forbidden="abc"), "list of phrases"),
        (Constraints(required=["abc", [], [], []]), "list of phrases"),
        (Constraints(forbidden=[" "]), "phrase is empty"),
        (Constraints(prefixes=["two"] * 4, forbidden=["two"]), "forced and forbidden"),
    ):
        with pytest.raises(RegardError, match=message):
            translator.translate(TEXTS, constraints=constraints, max_length=MAX_LENGTH)
    for search in (Sampling(), DiverseBeam(2), StochasticBeam(2), MinimumBayesRisk(2)):
        with pytest.raises(RegardError, match="not support required"):
            translator.translate(
                TEXTS, search=search, constraints=Constraints(required=[["a"]] * 4), max_length=MAX_LENGTH
            )
    with pytest.raises(RegardError, match="finds 1 text, but n_best is 2"):
        translator.translate(TEXTS, search=Sampling(), n_best=2)
    with pytest.raises(RegardError, match="n_best must be at least 1"):
        translator.translate(TEXTS, search=Sampling(), n_best=0)
    with pytest.raises(RegardError, match=r"seed .* is too large"):
        translator.translate(TEXTS, search=Sampling(), seed=10**20)
    with pytest.raises(RegardError, match=r"The prefix has .* but the text may have 1"):
        translator.translate(TEXTS[:1], constraints=Constraints(prefixes=["Zwei Hunde"]), max_length=1)


def test_ensemble_averages_its_members() -> None:
    first_translator, second_translator = make_translator(1), make_translator(2)
    alone = first_translator.translate(TEXTS, max_length=MAX_LENGTH)
    twice = EnsembleTranslator([first_translator, first_translator]).translate(TEXTS, max_length=MAX_LENGTH)
    assert [text.tokens for text in twice] == [text.tokens for text in alone]
    one_sided = EnsembleTranslator([first_translator, second_translator], weights=[1, 0], mean="logprobs").translate(
        TEXTS, max_length=MAX_LENGTH
    )
    assert [text.tokens for text in one_sided] == [text.tokens for text in alone]
    averaged = EnsembleTranslator([first_translator, second_translator]).translate(
        TEXTS, Beam(1), max_length=MAX_LENGTH
    )
    for text, translation in zip(TEXTS, averaged, strict=True):  # the mean of both, token by token
        source = torch.tensor([[*make_tokenizer().encode(text).ids, make_tokenizer().specials.eos]])
        target = torch.tensor([[make_tokenizer().specials.bos, *translation.tokens[:-1]]])
        with torch.no_grad():
            mean = (
                sum(member.model(source, target)[0].softmax(dim=-1) for member in (first_translator, second_translator))
                / 2
            )
        assert isinstance(mean, torch.Tensor)
        assert translation.logprobs == pytest.approx(
            mean.log().gather(1, torch.tensor(translation.tokens)[:, None])[:, 0], abs=1e-4
        )
    settings = make_translator_settings(**{"source.vocabulary": make_tokenizer("en", "de").size})
    stranger = Translator(make_encoder_decoder(settings), TokenizerPair.joint(make_tokenizer("en", "de")), settings)
    with pytest.raises(RegardError, match="vocabularies of model 2 and model 1 differ"):
        EnsembleTranslator([first_translator, stranger])
    with pytest.raises(RegardError, match="Unknown ensemble mean 'median'"):
        EnsembleTranslator([first_translator, second_translator], mean="median").translate(TEXTS)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="ensemble cannot score"):
        Scorer.from_pipeline(EnsembleTranslator([first_translator, second_translator]))
    with pytest.raises(RegardError, match="needs models, got none"):
        EnsembleTranslator([])


def test_a_stream_is_the_translation_and_computes_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = make_translator()
    for text in TEXTS:
        assert (
            "".join(translator.stream(text, max_length=MAX_LENGTH))
            == translator.translate([text], Beam(1), max_length=MAX_LENGTH)[0].text
        )
    assert list(translator.stream("  ")) == []
    steps: list[int] = []
    step = CpuDecoder.step

    def counted_step(self: CpuDecoder, tokens: torch.Tensor, state: DecodingState) -> torch.Tensor:
        steps.append(1)
        return step(self, tokens, state)

    monkeypatch.setattr(CpuDecoder, "step", counted_step)
    chunks = translator.stream(TEXTS[0], max_length=50, filters=Filters(), seed=1)
    assert not steps
    next(chunks)
    step_count = len(steps)
    assert step_count < 10
    chunks.close()
    assert len(steps) == step_count
    assert torch.is_grad_enabled()


def test_endless_texts_are_translated_lazily() -> None:
    translator, taken = make_translator(), []

    def endless() -> Iterator[str]:
        for number in itertools.count():
            taken.append(number)
            yield TEXTS[number % 4]

    translations = list(
        itertools.islice(translator.translate_iter(endless(), Beam(1), chunk_size=3, max_length=MAX_LENGTH), 5)
    )
    alone = [translator.translate([TEXTS[number % 4]], Beam(1), max_length=MAX_LENGTH)[0] for number in range(5)]
    assert [translation.tokens for translation in translations] == [translation.tokens for translation in alone]
    assert len(taken) == 6


def test_token_alternatives_at_each_position() -> None:
    translator = make_translator()
    (translation,) = translator.translate([TEXTS[0]], Beam(1), max_length=MAX_LENGTH)
    alternatives = token_alternatives(translator, TEXTS[0], translation, max_length=MAX_LENGTH, count=3)
    assert list(alternatives) == list(range(len(translation.tokens)))
    for position, candidates in alternatives.items():
        assert (
            candidates[0].token_text == translation.token_texts[position]
        )  # greedy: the most probable token was generated
        assert candidates[0].probability == pytest.approx(np.exp(translation.logprobs[position]), abs=1e-5)
        assert candidates[0].text == translation.text
        assert [candidate.probability for candidate in candidates] == sorted(
            (candidate.probability for candidate in candidates), reverse=True
        )
        assert len({candidate.text for candidate in candidates}) > 1
    assert list(token_alternatives(translator, TEXTS[0], translation, positions=[1], max_length=MAX_LENGTH)) == [1]
    with pytest.raises(RegardError, match="text is empty"):
        token_alternatives(translator, " ", translation)


def test_a_trace_holds_the_search_and_its_attention() -> None:
    translator = make_translator()
    traced_translation = translate_traced(translator, TEXTS[0], Beam(3), n_best=2, max_length=MAX_LENGTH)
    (untraced,) = translator.translate([TEXTS[0]], Beam(3), n_best=2, max_length=MAX_LENGTH)
    assert all_texts(traced_translation.translation) == all_texts(untraced)
    (winners,) = traced_translation.trace.winners
    for number, text in zip(winners, (untraced, *untraced.alternatives), strict=True):
        assert tuple(candidate.token for candidate in traced_translation.trace.lineage(number)[1:]) == text.tokens
        attention = traced_translation.trace.attention(number)
        assert attention.shape == (
            len(text.tokens),
            1,
            4,
            len(traced_translation.source_tokens),
        )  # tokens, layers, heads, source
        assert attention.sum(axis=-1) == pytest.approx(1.0, abs=1e-5)
    assert "".join(traced_translation.source_tokens).strip() == TEXTS[0]
    with pytest.raises(RegardError, match="ensemble cannot be traced"):
        translate_traced(EnsembleTranslator([translator]), TEXTS[0])


def test_translations_are_aligned_on_request() -> None:
    translator = make_translator()
    translations = translator.translate([*TEXTS, ""], max_length=MAX_LENGTH)
    assert all(translation.alignment is None for translation in translations)
    aligned_translations = with_alignment(translator, [*TEXTS, ""], translations)
    assert aligned_translations[-1].alignment == ()
    expected = align_words(translator, TEXTS, [translation.text for translation in translations[:-1]])
    assert [set(translation.alignment or ()) for translation in aligned_translations[:-1]] == [
        set(links) for links in expected
    ]
    assert isinstance(aligned_translations[0], Translation)
    assert any(translation.alignment for translation in aligned_translations)


@pytest.mark.parametrize("search", [Beam(0), Sampling(0), DiverseBeam(0)], ids=lambda search: type(search).__name__)
def test_a_search_without_rows_is_refused(search: Search) -> None:
    with pytest.raises(RegardError):
        make_translator().translate(TEXTS, search=search)


def test_every_chunk_has_its_own_seed() -> None:
    translator = make_translator()
    repeated_texts = [TEXTS[0]] * 12
    translations = [
        translation.text
        for translation in translator.translate_iter(
            repeated_texts, chunk_size=4, search=Sampling(), max_length=MAX_LENGTH, seed=1
        )
    ]
    assert translations == [
        translation.text
        for translation in translator.translate_iter(
            repeated_texts, Sampling(), chunk_size=4, max_length=MAX_LENGTH, seed=1
        )
    ]
    assert translations[:4] == [
        translation.text
        for translation in translator.translate(repeated_texts[:4], search=Sampling(), max_length=MAX_LENGTH, seed=1)
    ]
    assert translations[:4] != translations[4:8] != translations[8:]


def test_with_one_seed_per_text_a_translation_does_not_depend_on_its_neighbours() -> None:
    translator, search = make_translator(), Sampling(2, Filters(top_p=0.9))
    seeds = [7, 8, 7]
    together = translator.translate(TEXTS[:3], search, max_length=MAX_LENGTH, seed=seeds, n_best=2)
    for text, seed, result in zip(TEXTS, seeds, together, strict=False):
        (alone,) = translator.translate([text], search, max_length=MAX_LENGTH, seed=[seed], n_best=2)
        assert all_texts(result) == all_texts(alone)
    with pytest.raises(RegardError, match="one seed"):
        list(translator.translate_iter(TEXTS, search, seed=[1]))


def test_required_phrases_and_stop_after_exclude_each_other() -> None:
    settings = make_translator_settings()
    translator = Translator(make_encoder_decoder(settings), make_tokenizers(), settings)
    with pytest.raises(RegardError, match="has no stop_after"):
        translator.translate(TEXTS[:1], Beam(5, stop_after=1), constraints=Constraints(required=[["men"]]))
