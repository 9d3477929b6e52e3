"""Prefixes, forbidden phrases and required phrases of translations."""

import re
from typing import Any

import pytest
import torch

from regard.base.errors import RegardError
from regard.tasks.results import Translation
from regard.tasks.search import Beam, DiverseBeam, MinimumBayesRisk, Sampling, Search, StochasticBeam
from regard.tasks.translation.constraints import Constraints, encode_variants, to_term
from regard.text.glossary import Glossary, Term
from tests.tasks.factories import (
    MAX_LENGTH,
    TEXTS,
    all_texts,
    make_tokenizer,
    make_translator,
)


@pytest.mark.parametrize("search", [Beam(1), Beam(3), Sampling(2), DiverseBeam(2), StochasticBeam(2)])
def test_every_search_obeys_constraints(search: Search) -> None:
    translator = make_translator()
    unconstrained = translator.translate(TEXTS, search=search, max_new_tokens=MAX_LENGTH, seed=2)
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
        TEXTS, search=search, constraints=constraints, n_best=search.rows_per_text, max_new_tokens=MAX_LENGTH, seed=2
    )
    for prefix, result in zip(prefixes, results, strict=True):
        for text in all_texts(result):
            assert text.startswith(prefix)
            ids = list(make_tokenizer().encode(text).ids)
            for phrase in unwanted:
                for variant in encode_variants(make_tokenizer(), [phrase])[0]:
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
    results = translator.translate(TEXTS, Beam(3), constraints=Constraints(required=required), max_new_tokens=20)
    for phrases, result in zip(required, results, strict=True):
        assert all(phrase in result.text for phrase in phrases)
    assert results[1].text == translator.translate([TEXTS[1]], Beam(3), max_new_tokens=20)[0].text


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
            translator.translate(TEXTS, constraints=constraints, max_new_tokens=MAX_LENGTH)
    for search in (Sampling(), DiverseBeam(2), StochasticBeam(2), MinimumBayesRisk(2)):
        with pytest.raises(RegardError, match="not support required"):
            translator.translate(
                TEXTS, search=search, constraints=Constraints(required=[["a"]] * 4), max_new_tokens=MAX_LENGTH
            )
    with pytest.raises(RegardError, match="finds 1 text, but n_best is 2"):
        translator.translate(TEXTS, search=Sampling(), n_best=2)
    with pytest.raises(RegardError, match="n_best must be at least 1"):
        translator.translate(TEXTS, search=Sampling(), n_best=0)
    with pytest.raises(RegardError, match=r"seed .* is too large"):
        translator.translate(TEXTS, search=Sampling(), seed=10**20)
    with pytest.raises(RegardError, match=r"The prefix has .* but the text may have 1"):
        translator.translate(TEXTS[:1], constraints=Constraints(prefixes=["Zwei Hunde"]), max_new_tokens=1)


def test_glossary_terms_appear_and_missing_ones_are_reported() -> None:
    translator = make_translator()
    glossary = Glossary({"men": ["Holz", "Hölzern"], "girl": ["Mädchen"], "unused": ["x"]})
    plain = translator.translate(TEXTS, Beam(3), max_new_tokens=20)
    results = translator.translate(TEXTS, Beam(3), constraints=Constraints(glossary=glossary), max_new_tokens=20)
    terms = [glossary.find_terms(text) for text in TEXTS]
    assert any(terms)
    for found, before, result in zip(terms, plain, results, strict=True):
        assert all(term.is_in(result.text) for term in found)
        assert result.unsatisfied_terms == ()
        if not found:
            assert result == before
    tight = Constraints(required=[["Holz", Term("girl", ("in der Nähe von",))], *[[]] * 3])
    (result, *_) = translator.translate(TEXTS, Beam(3), constraints=tight, max_new_tokens=3)
    assert "girl" in result.unsatisfied_terms
    assert ("Holz" in result.unsatisfied_terms) == ("Holz" not in result.text)


def test_satisfied_requirements_keep_the_translation_and_n_best_all_satisfy_them() -> None:
    translator = make_translator()
    plain = translator.translate(TEXTS, Beam(3), max_new_tokens=MAX_LENGTH)
    words = [re.findall(r"\w+", result.text)[:1] for result in plain]
    assert any(words)
    constraints = Constraints(required=words)
    results = translator.translate(TEXTS, Beam(3), constraints=constraints, max_new_tokens=MAX_LENGTH)
    assert [result.text for result in results] == [result.text for result in plain]
    for phrases, result in zip(
        words,
        translator.translate(TEXTS, Beam(3), constraints=constraints, n_best=3, max_new_tokens=MAX_LENGTH),
        strict=True,
    ):
        assert all(Term(phrase, (phrase,)).is_in(text) for phrase in phrases for text in all_texts(result))


def test_missing_terms_are_required_first_and_all_terms_if_one_is_still_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    translator = make_translator()
    plain = translator.translate(TEXTS[0], Beam(3), max_new_tokens=MAX_LENGTH).text
    present = re.findall(r"\w+", plain)[0]
    required: list[list[str]] = []
    search = translator._translate_batches

    def search_and_note(sources: list[list[int]], search_with: Search, **options: Any) -> list[Translation]:
        constraints = options["constraints"] or Constraints()
        required.extend([to_term(term).source for term in terms] for terms in constraints.required or ())
        return search(sources, search_with, **options)

    monkeypatch.setattr(translator, "_translate_batches", search_and_note)
    searches = set()
    for missing in ("Holz", "Freien", "in der"):
        required.clear()
        constraints = Constraints(required=[[present, missing]])
        (result,) = translator.translate(TEXTS[:1], Beam(3), constraints=constraints, max_new_tokens=MAX_LENGTH)
        assert result.unsatisfied_terms == ()
        assert required == [[missing], [present, missing]][: len(required)]
        searches.add(len(required))
    assert searches == {1, 2}
