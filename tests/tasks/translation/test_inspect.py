"""Alternatives and traces of a search."""

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.tasks.search import Beam
from regard.tasks.translation.ensemble import EnsembleTranslator
from regard.tasks.translation.inspect import token_alternatives, translate_traced
from tests.tasks.factories import MAX_LENGTH, TEXTS, all_texts, make_translator


def test_token_alternatives_at_each_position() -> None:
    translator = make_translator()
    (translation,) = translator.translate([TEXTS[0]], Beam(1), max_new_tokens=MAX_LENGTH)
    alternatives = token_alternatives(translator, TEXTS[0], translation, max_new_tokens=MAX_LENGTH, count=3)
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
    assert list(token_alternatives(translator, TEXTS[0], translation, positions=[1], max_new_tokens=MAX_LENGTH)) == [1]
    with pytest.raises(RegardError, match="text is empty"):
        token_alternatives(translator, " ", translation)


def test_a_trace_holds_the_search_and_its_attention() -> None:
    translator = make_translator()
    traced_translation = translate_traced(translator, TEXTS[0], Beam(3), n_best=2, max_new_tokens=MAX_LENGTH)
    (untraced,) = translator.translate([TEXTS[0]], Beam(3), n_best=2, max_new_tokens=MAX_LENGTH)
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
    with pytest.raises(RegardError, match="Ensembles cannot be traced"):
        translate_traced(EnsembleTranslator([translator]), TEXTS[0])
