"""Every search through a translator: n-best, chance, wishes, several models, streams, and a closer look."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from regard.base.errors import RegardError
from regard.decode.filters import Filters
from regard.decode.lengths import gnmt
from regard.decode.rerank import minimum_bayes_risk
from regard.measure.likeness import sentence_chrf
from regard.models.state import DecodingState
from regard.models.swift import CpuDecoder
from regard.pipeline.answers import Translation, Written
from regard.pipeline.insight import choices, traced
from regard.pipeline.scorer import Scorer
from regard.pipeline.searches import Beam, DiverseBeam, MinimumRisk, Sampling, Search, StochasticBeam
from regard.pipeline.together import Together
from regard.pipeline.translator import Translator
from regard.pipeline.wishes import Wishes, spellings
from regard.pipeline.word_alignment import align_words, aligned
from regard.text.vocabularies import TokenizerPair
from tests.pipeline.made import TEXTS, tokenizer, translating_model, translator_settings, vocabularies

LONGEST = 8
SEARCHES: list[Search] = [
    Beam(3),
    Beam(3, alpha=gnmt(0.7), enough=2),
    Sampling(3),
    DiverseBeam(groups=3),
    StochasticBeam(3),
    MinimumRisk(6),
]


def made(seed: int = 1) -> Translator:
    settings = translator_settings()
    return Translator(translating_model(settings, seed), vocabularies(), settings)


def texts_of(found: Written) -> list[str]:
    return [one.text for one in (found, *found.alternatives)]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_every_search_gives_its_best_and_the_next_ones(search: Search) -> None:
    translator = made()
    found = translator.translate([*TEXTS, ""], search=search, best=3, longest=LONGEST, seed=1)
    again = translator.translate([*TEXTS, ""], search=search, best=3, longest=LONGEST, seed=1)
    assert found == again
    assert (found[-1].text, found[-1].alternatives) == ("", ())
    for one in found[:-1]:
        every = [one, *one.alternatives]
        assert 1 <= len(every) <= 3
        for text in every:
            assert len(text.tokens) == len(text.logs) == len(text.pieces) <= LONGEST
            assert "".join(text.pieces).strip() == text.text.strip() or "\ufffd" in "".join(text.pieces)
        if isinstance(search, Beam | Sampling | DiverseBeam) and not search.by_risk:
            assert [text.score for text in every] == sorted((text.score for text in every), reverse=True)
    assert any(one.alternatives for one in found)
    first = translator.translate(TEXTS, search=search, longest=LONGEST, seed=1)
    assert [(one.text, one.alternatives) for one in first] == [(one.text, ()) for one in found[:-1]]


def test_a_score_is_what_the_form_of_the_length_says() -> None:
    for one in made().translate(TEXTS, alpha=gnmt(0.7), longest=LONGEST):
        assert one.score == pytest.approx(sum(one.logs) / ((5 + len(one.logs)) / 6) ** 0.7)


def test_drawing_at_no_temperature_is_greedy_and_chance_is_free_without_a_seed() -> None:
    translator = made()
    cold = Sampling(filters=Filters(temperature=0))
    assert translator.translate(TEXTS, search=cold, longest=LONGEST) == translator.translate(
        TEXTS, beam=1, longest=LONGEST
    )
    free = {tuple(one.text for one in translator.translate(TEXTS, search=Sampling(), longest=LONGEST)) for _ in "123"}
    assert len(free) == 3


def test_the_least_risk_is_that_of_all_that_was_drawn() -> None:
    translator, count = made(), 12
    drawn = translator.translate(TEXTS, search=Sampling(count), best=count, longest=LONGEST, seed=5)
    chosen = translator.translate(TEXTS, search=MinimumRisk(count, Filters()), best=count, longest=LONGEST, seed=5)
    for some, one in zip(drawn, chosen, strict=True):
        best = max(one.utility for one in minimum_bayes_risk(texts_of(some), sentence_chrf))
        assert one.utility == pytest.approx(best)
        assert set(texts_of(one)) == set(texts_of(some))
        utilities = [text.utility for text in (one, *one.alternatives)]
        assert utilities == sorted(utilities, key=lambda value: -(value or 0))


@pytest.mark.parametrize("search", [Beam(1), Beam(3), Sampling(2), DiverseBeam(2), StochasticBeam(2)])
def test_wishes_are_obeyed_by_every_search(search: Search) -> None:
    translator = made()
    free = translator.translate(TEXTS, search=search, longest=LONGEST, seed=2)
    begins = ["Zwei", "", "Ein M", "A"]
    written = {piece.strip() for one in free for piece in one.pieces}
    unwanted = [piece for piece in sorted(written) if piece.isascii() and piece and piece not in "".join(begins)][:3]
    assert unwanted
    wishes = Wishes(begins=begins, forbidden=unwanted)
    found = translator.translate(TEXTS, search=search, wishes=wishes, best=search.rows, longest=LONGEST, seed=2)
    for begin, one in zip(begins, found, strict=True):
        for text in texts_of(one):
            assert text.startswith(begin)
            ids = list(tokenizer().encode(text).ids)
            for phrase in unwanted:
                for spelling in spellings(tokenizer(), phrase):
                    assert not any(tuple(ids[i : i + len(spelling)]) == spelling for i in range(len(ids)))
    # What is not forbidden keeps its probability: forced tokens have the model's own.
    whole = next(one for one, begin in zip(found, begins, strict=True) if begin)
    with torch.no_grad():
        source = torch.tensor([[*tokenizer().encode(TEXTS[0]).ids, tokenizer().specials.eos]])
        target = torch.tensor([[tokenizer().specials.bos, *whole.tokens[:-1]]])
        logs = translator.model(source, target).log_softmax(dim=-1)[0]
    assert whole.logs == pytest.approx(logs.gather(1, torch.tensor(whole.tokens)[:, None])[:, 0].tolist(), abs=1e-4)


def test_required_phrases_are_there() -> None:
    translator = made()
    required = [["Holz"], [], ["in der", "Mädchen"], ["Freien"]]
    found = translator.translate(TEXTS, beam=3, wishes=Wishes(required=required), longest=20)
    for phrases, one in zip(required, found, strict=True):
        assert all(phrase in one.text for phrase in phrases)
    assert found[1].text == translator.translate([TEXTS[1]], beam=3, longest=20)[0].text


def test_wishes_that_make_no_sense_are_refused() -> None:
    translator = made()
    for wishes, told in (
        (Wishes(begins=["a"]), "for 4 texts"),
        (Wishes(begins="abcd"), "for 4 texts"),
        (Wishes(required=[[]]), "for 4 texts"),
        (Wishes(forbidden="abc"), "list of phrases"),
        (Wishes(required=["abc", [], [], []]), "list of phrases"),
        (Wishes(forbidden=[" "]), "no words"),
        (Wishes(begins=["two"] * 4, forbidden=["two"]), "forced and forbidden"),
    ):
        with pytest.raises(RegardError, match=told):
            translator.translate(TEXTS, wishes=wishes, longest=LONGEST)
    for search in (Sampling(), DiverseBeam(2), StochasticBeam(2), MinimumRisk(2)):
        with pytest.raises(RegardError, match="cannot require"):
            translator.translate(TEXTS, search=search, wishes=Wishes(required=[["a"]] * 4), longest=LONGEST)
    with pytest.raises(RegardError, match="finds 1 texts, not 2"):
        translator.translate(TEXTS, search=Sampling(), best=2)


def test_models_together() -> None:
    one, other = made(1), made(2)
    alone = one.translate(TEXTS, longest=LONGEST)
    twice = Together([one, one]).translate(TEXTS, longest=LONGEST)
    assert [text.tokens for text in twice] == [text.tokens for text in alone]
    silent = Together([one, other], weights=[1, 0], mean="logs").translate(TEXTS, longest=LONGEST)
    assert [text.tokens for text in silent] == [text.tokens for text in alone]
    both = Together([one, other]).translate(TEXTS, beam=1, longest=LONGEST)
    for text, found in zip(TEXTS, both, strict=True):  # the mean of both, word by word
        source = torch.tensor([[*tokenizer().encode(text).ids, tokenizer().specials.eos]])
        target = torch.tensor([[tokenizer().specials.bos, *found.tokens[:-1]]])
        with torch.no_grad():
            mean = sum(member.model(source, target)[0].softmax(dim=-1) for member in (one, other)) / 2
        assert isinstance(mean, torch.Tensor)
        assert found.logs == pytest.approx(mean.log().gather(1, torch.tensor(found.tokens)[:, None])[:, 0], abs=1e-4)
    settings = translator_settings(**{"source.vocabulary": tokenizer("en", "de").size})
    stranger = Translator(translating_model(settings), TokenizerPair.joint(tokenizer("en", "de")), settings)
    with pytest.raises(RegardError, match="another vocabulary"):
        Together([one, stranger])
    with pytest.raises(RegardError, match="no mean 'median'"):
        Together([one, other], mean="median").translate(TEXTS)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="different probabilities"):
        Scorer.of(Together([one, other]))
    with pytest.raises(RegardError, match="no model"):
        Together([])


def test_a_stream_is_the_translation_and_stops_when_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = made()
    for text in TEXTS:
        assert (
            "".join(translator.stream(text, longest=LONGEST))
            == translator.translate([text], 1, longest=LONGEST)[0].text
        )
    assert list(translator.stream("  ")) == []
    steps: list[int] = []
    step = CpuDecoder.step

    def watched(self: CpuDecoder, tokens: torch.Tensor, state: DecodingState) -> torch.Tensor:
        steps.append(1)
        return step(self, tokens, state)

    monkeypatch.setattr(CpuDecoder, "step", watched)
    pieces = translator.stream(TEXTS[0], longest=50, filters=Filters(), seed=1)
    assert not steps
    next(pieces)
    asked = len(steps)
    assert asked < 10
    pieces.close()  # type: ignore[attr-defined]
    assert len(steps) == asked
    assert torch.is_grad_enabled()


def test_endless_texts_are_translated_as_they_are_asked_for() -> None:
    translator, taken = made(), []

    def endless() -> Iterator[str]:
        for number in itertools.count():
            taken.append(number)
            yield TEXTS[number % 4]

    found = list(itertools.islice(translator.translated(endless(), window=3, beam=1, longest=LONGEST), 5))
    alone = [translator.translate([TEXTS[number % 4]], 1, longest=LONGEST)[0] for number in range(5)]
    assert [one.tokens for one in found] == [one.tokens for one in alone]
    assert len(taken) == 6


def test_choices_at_each_place() -> None:
    translator = made()
    (found,) = translator.translate([TEXTS[0]], beam=1, longest=LONGEST)
    every = choices(translator, TEXTS[0], found, longest=LONGEST, count=3)
    assert list(every) == list(range(len(found.tokens)))
    for place, some in every.items():
        assert some[0].piece == found.pieces[place]  # greedy: the likeliest is the one that was written
        assert some[0].probability == pytest.approx(np.exp(found.logs[place]), abs=1e-5)
        assert some[0].text == found.text
        assert [one.probability for one in some] == sorted((one.probability for one in some), reverse=True)
        assert len({one.text for one in some}) > 1
    assert list(choices(translator, TEXTS[0], found, places=[1], longest=LONGEST)) == [1]
    with pytest.raises(RegardError, match="without words"):
        choices(translator, " ", found)


def test_a_trace_holds_the_search_and_what_it_looked_at() -> None:
    translator = made()
    seen = traced(translator, TEXTS[0], beam=3, best=2, longest=LONGEST)
    (plain,) = translator.translate([TEXTS[0]], beam=3, best=2, longest=LONGEST)
    assert texts_of(seen.translation) == texts_of(plain)
    (winners,) = seen.trace.winners
    for number, text in zip(winners, (plain, *plain.alternatives), strict=True):
        assert tuple(one.token for one in seen.trace.lineage(number)[1:]) == text.tokens
        looked = seen.trace.attention(number)
        assert looked.shape == (len(text.tokens), 1, 4, len(seen.source))  # tokens, layers, heads, source
        assert looked.sum(axis=-1) == pytest.approx(1.0, abs=1e-5)
    assert "".join(seen.source).strip() == TEXTS[0]
    with pytest.raises(RegardError, match="different things"):
        traced(Together([translator]), TEXTS[0])


def test_translations_are_aligned_on_request() -> None:
    translator = made()
    found = translator.translate([*TEXTS, ""], longest=LONGEST)
    assert all(one.alignment is None for one in found)
    linked = aligned(translator, [*TEXTS, ""], found)
    assert linked[-1].alignment == ()
    wanted = align_words(translator, TEXTS, [one.text for one in found[:-1]])
    assert [set(one.alignment or ()) for one in linked[:-1]] == [set(some) for some in wanted]
    assert isinstance(linked[0], Translation)
    assert any(one.alignment for one in linked)


@pytest.mark.parametrize("search", [Beam(0), Sampling(0), DiverseBeam(0)], ids=lambda search: type(search).__name__)
def test_a_search_without_rows_is_refused(search: Search) -> None:
    with pytest.raises(RegardError):
        made().translate(TEXTS, search=search)


def test_no_chance_comes_twice_in_a_long_file() -> None:
    translator = made()
    same = [TEXTS[0]] * 12
    found = [one.text for one in translator.translated(same, window=4, search=Sampling(), longest=LONGEST, seed=1)]
    assert found == [one.text for one in translator.translated(same, 4, search=Sampling(), longest=LONGEST, seed=1)]
    assert found[:4] == [one.text for one in translator.translate(same[:4], search=Sampling(), longest=LONGEST, seed=1)]
    assert found[:4] != found[4:8] != found[8:]
