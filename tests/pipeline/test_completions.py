"""Whole texts of a writer: several prompts, every search, a draft, and words that must not come."""

import pytest

from regard.base.errors import RegardError
from regard.config.run import AnyTokenizer, Bpe, Unigram, WordLevel
from regard.decode.filters import Filters
from regard.pipeline.searches import Beam, DiverseBeam, MinimumRisk, Sampling, Search, StochasticBeam
from regard.pipeline.writer import Writer
from regard.text.learn import learn
from regard.text.vocabularies import TokenizerPair
from tests.pipeline.made import TEXTS, tokenizer, vocabularies, writer_settings, writing_model

PROMPTS = ["Two young", "A", "Ein kleines", "Zwei", "A little"]


def made(seed: int = 1, **changes: object) -> Writer:
    settings = writer_settings(**changes)
    return Writer(writing_model(settings, seed), vocabularies(), settings)


@pytest.mark.parametrize("size", [1, 3])
def test_prompts_together_are_written_as_alone(size: int) -> None:
    writer = made()
    together = writer.complete(PROMPTS * 3, tokens=9, search=Beam(size), rows=6)
    alone = [writer.complete([prompt], tokens=9, search=Beam(size))[0] for prompt in PROMPTS * 3]
    assert [one.tokens for one in together] == [one.tokens for one in alone]
    if size == 1:
        for prompt, one in zip(PROMPTS * 3, together, strict=True):
            assert prompt + one.text == prompt + "".join(writer.write(prompt, tokens=9, temperature=0))


@pytest.mark.parametrize("kind", [Unigram(vocabulary=60), Bpe(vocabulary=60), WordLevel(vocabulary=60)])
def test_a_text_joins_its_prompt_as_the_vocabulary_says(kind: AnyTokenizer) -> None:
    words = learn(TEXTS, kind)
    settings = writer_settings(**{"tokens.vocabulary": words.size})
    writer = Writer(writing_model(settings), TokenizerPair.joint(words), settings)
    for prompt in PROMPTS:
        text = "".join(writer.write(prompt, tokens=9, temperature=0))
        assert writer.complete([prompt], tokens=9, search=Beam(1))[0].text == text
        assert writer.drafted(writer, prompt, tokens=9, filters=Filters(temperature=0))[0].text == text


@pytest.mark.parametrize("search", [Sampling(4), DiverseBeam(4), StochasticBeam(4), MinimumRisk(4)])
def test_every_search_writes(search: Search) -> None:
    writer = made()
    found = writer.complete(PROMPTS, tokens=6, search=search, best=4, seed=1)
    assert found == writer.complete(PROMPTS, tokens=6, search=search, best=4, seed=1)
    assert all(len(one.tokens) <= 6 for one in found)
    assert any(one.alternatives for one in found)


def test_what_is_forbidden_does_not_come() -> None:
    writer = made()
    free = writer.complete(PROMPTS, tokens=8, search=Beam(1))
    unwanted = [piece.strip() for one in free for piece in one.pieces if len(piece.strip()) > 1]
    assert unwanted
    found = writer.complete(PROMPTS, tokens=8, search=Beam(1), forbidden=unwanted)
    assert not {piece.strip() for one in found for piece in one.pieces} & set(unwanted)


def test_a_draft_changes_nothing_but_the_pace() -> None:
    writer, draft = made(1), made(2)
    cold = Filters(temperature=0)
    for prompt in PROMPTS:
        text, how = writer.drafted(draft, prompt, tokens=12, filters=cold)
        assert text.text == "".join(writer.write(prompt, tokens=12, temperature=0))
        own, sure = writer.drafted(writer, prompt, tokens=12, filters=cold)
        assert own.text == text.text
        assert sure.acceptance_rate == 1.0  # it is always of its own opinion
        assert sure.steps < how.steps or how.acceptance_rate == 1.0
    words = tokenizer("en", "de")
    settings = writer_settings(**{"tokens.vocabulary": words.size})
    stranger = Writer(writing_model(settings), TokenizerPair.joint(words), settings)
    with pytest.raises(RegardError, match="another vocabulary"):
        writer.drafted(stranger, "A")


def test_mistakes() -> None:
    writer = made()
    with pytest.raises(RegardError, match="a list is expected"):
        writer.complete(TEXTS[0])
    with pytest.raises(RegardError, match="One phrase was given"):
        writer.complete(PROMPTS, forbidden="cat")
    with pytest.raises(RegardError, match="0 tokens"):
        writer.complete(PROMPTS, tokens=0)
    assert writer.complete([]) == []
