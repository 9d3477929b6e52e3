"""Every search through a translator: n-best, sampling, constraints, ensembles, streams, inspection."""

import itertools
from collections.abc import Iterator

import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.filters import Filters
from regard.decode.length_penalty import gnmt
from regard.decode.mbr import minimum_bayes_risk
from regard.measure.sentence_chrf import sentence_chrf
from regard.models.cpu_decoder import CpuDecoder
from regard.nn.kv_cache import DecodingState
from regard.tasks.search import Beam, DiverseBeam, MinimumBayesRisk, Sampling, Search, StochasticBeam
from tests.tasks.factories import MAX_LENGTH, TEXTS, all_texts, make_translator

SEARCHES: list[Search] = [
    Beam(3),
    Beam(3, length_penalty=gnmt(0.7), stop_after=2),
    Sampling(3),
    DiverseBeam(groups=3),
    StochasticBeam(3),
    MinimumBayesRisk(6),
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_every_search_gives_its_best_and_the_next_ones(search: Search) -> None:
    translator = make_translator()
    results = translator.translate([*TEXTS, ""], search=search, n_best=3, max_new_tokens=MAX_LENGTH, seed=1)
    repeated_results = translator.translate([*TEXTS, ""], search=search, n_best=3, max_new_tokens=MAX_LENGTH, seed=1)
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
    first = translator.translate(TEXTS, search=search, max_new_tokens=MAX_LENGTH, seed=1)
    assert [(result.text, result.alternatives) for result in first] == [(result.text, ()) for result in results[:-1]]


def test_a_score_uses_the_length_penalty() -> None:
    for translation in make_translator().translate(TEXTS, Beam(length_penalty=gnmt(0.7)), max_new_tokens=MAX_LENGTH):
        assert translation.score == pytest.approx(
            sum(translation.logprobs) / ((5 + len(translation.logprobs)) / 6) ** 0.7
        )


def test_sampling_at_temperature_zero_is_greedy_and_random_without_a_seed() -> None:
    translator = make_translator()
    greedy_sampling = Sampling(filters=Filters(temperature=0))
    assert translator.translate(TEXTS, search=greedy_sampling, max_new_tokens=MAX_LENGTH) == translator.translate(
        TEXTS, Beam(1), max_new_tokens=MAX_LENGTH
    )
    unseeded = {
        tuple(
            translation.text
            for translation in translator.translate(TEXTS, search=Sampling(), max_new_tokens=MAX_LENGTH)
        )
        for _ in "123"
    }
    assert len(unseeded) == 3


def test_minimum_bayes_risk_ranks_all_samples() -> None:
    translator, count = make_translator(), 12
    samples = translator.translate(TEXTS, search=Sampling(count), n_best=count, max_new_tokens=MAX_LENGTH, seed=5)
    reranked = translator.translate(
        TEXTS, search=MinimumBayesRisk(count, Filters()), n_best=count, max_new_tokens=MAX_LENGTH, seed=5
    )
    for sample, result in zip(samples, reranked, strict=True):
        best = max(result.utility for result in minimum_bayes_risk(all_texts(sample), sentence_chrf))
        assert result.utility == pytest.approx(best)
        assert set(all_texts(result)) == set(all_texts(sample))
        utilities = [text.utility for text in (result, *result.alternatives)]
        assert utilities == sorted(utilities, key=lambda value: -(value or 0))


def test_a_stream_is_the_translation_and_computes_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = make_translator()
    for text in TEXTS:
        assert (
            "".join(translator.stream(text, max_new_tokens=MAX_LENGTH))
            == translator.translate([text], Beam(1), max_new_tokens=MAX_LENGTH)[0].text
        )
    assert list(translator.stream("  ")) == []
    steps: list[int] = []
    step = CpuDecoder.step

    def counted_step(self: CpuDecoder, tokens: torch.Tensor, state: DecodingState) -> torch.Tensor:
        steps.append(1)
        return step(self, tokens, state)

    monkeypatch.setattr(CpuDecoder, "step", counted_step)
    chunks = translator.stream(TEXTS[0], max_new_tokens=50, filters=Filters(), seed=1)
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
        itertools.islice(translator.translate_iter(endless(), Beam(1), chunk_size=3, max_new_tokens=MAX_LENGTH), 5)
    )
    alone = [translator.translate([TEXTS[number % 4]], Beam(1), max_new_tokens=MAX_LENGTH)[0] for number in range(5)]
    assert [translation.tokens for translation in translations] == [translation.tokens for translation in alone]
    assert len(taken) == 6


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
            repeated_texts, chunk_size=4, search=Sampling(), max_new_tokens=MAX_LENGTH, seed=1
        )
    ]
    assert translations == [
        translation.text
        for translation in translator.translate_iter(
            repeated_texts, Sampling(), chunk_size=4, max_new_tokens=MAX_LENGTH, seed=1
        )
    ]
    assert translations[:4] == [
        translation.text
        for translation in translator.translate(
            repeated_texts[:4], search=Sampling(), max_new_tokens=MAX_LENGTH, seed=1
        )
    ]
    assert translations[:4] != translations[4:8] != translations[8:]


def test_with_one_seed_per_text_a_translation_does_not_depend_on_its_neighbours() -> None:
    translator, search = make_translator(), Sampling(2, Filters(top_p=0.9))
    seeds = [7, 8, 7]
    together = translator.translate(TEXTS[:3], search, max_new_tokens=MAX_LENGTH, seed=seeds, n_best=2)
    for text, seed, result in zip(TEXTS, seeds, together, strict=False):
        (alone,) = translator.translate([text], search, max_new_tokens=MAX_LENGTH, seed=[seed], n_best=2)
        assert all_texts(result) == all_texts(alone)
    with pytest.raises(RegardError, match="one seed"):
        list(translator.translate_iter(TEXTS, search, seed=[1]))
