"""Whole texts of a text generator: several prompts, every search, a draft model, forbidden phrases."""

import pytest
import torch

from regard.base.errors import RegardError
from regard.config.run import AnyTokenizerConfig, BpeConfig, UnigramConfig, WordLevelConfig
from regard.decode.filters import Filters
from regard.pipeline.generator import TextGenerator
from regard.pipeline.search import Beam, DiverseBeam, MinimumBayesRisk, Sampling, Search, StochasticBeam
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.pipeline.factories import TEXTS, make_decoder_only, make_generator_settings, make_tokenizer, make_tokenizers

PROMPTS = ["Two young", "A", "Ein kleines", "Zwei", "A little"]


def make_text_generator(seed: int = 1, **changes: object) -> TextGenerator:
    settings = make_generator_settings(**changes)
    return TextGenerator(make_decoder_only(settings, seed), make_tokenizers(), settings)


@pytest.mark.parametrize("size", [1, 3])
def test_a_batch_of_prompts_generates_as_each_alone(size: int) -> None:
    text_generator = make_text_generator()
    batched = text_generator.generate(PROMPTS * 3, max_new_tokens=9, search=Beam(size), max_rows=6)
    alone = [text_generator.generate([prompt], max_new_tokens=9, search=Beam(size))[0] for prompt in PROMPTS * 3]
    assert [result.tokens for result in batched] == [result.tokens for result in alone]
    if size == 1:
        for prompt, result in zip(PROMPTS * 3, batched, strict=True):
            assert prompt + result.text == prompt + "".join(
                text_generator.stream(prompt, max_new_tokens=9, filters=Filters(temperature=0))
            )


@pytest.mark.parametrize(
    "filters", [Filters(temperature=0), Filters(temperature=0, no_repeat_ngram=2), Filters(top_p=0.9)]
)
@pytest.mark.parametrize("count", [1, 3])
def test_prompts_of_different_lengths_share_a_batch_and_keep_their_texts(filters: Filters, count: int) -> None:
    text_generator = make_text_generator()
    prompts = [*PROMPTS, "Two young men"]
    seeds = list(range(len(prompts)))
    search = Sampling(count, filters)
    steps = count_steps(text_generator)
    batched = text_generator.generate(prompts, max_new_tokens=9, search=search, seed=seeds, n_best=count)
    assert len(steps) <= 2 * 9  # two batches: alone, six prompts need up to 54 steps
    for prompt, seed, result in zip(prompts, seeds, batched, strict=True):
        (alone,) = text_generator.generate([prompt], max_new_tokens=9, search=search, seed=[seed], n_best=count)
        assert (result.tokens, [other.tokens for other in result.alternatives]) == (
            alone.tokens,
            [other.tokens for other in alone.alternatives],
        )


def count_steps(text_generator: TextGenerator) -> list[torch.Size]:
    """Return a list that grows by the shape of the tokens whenever the model reads some."""
    shapes: list[torch.Size] = []
    text_generator.model.decoder.register_forward_pre_hook(lambda _, inputs: shapes.append(inputs[0].shape))
    return shapes


def test_one_seed_per_prompt_is_counted() -> None:
    with pytest.raises(RegardError, match="2 seeds for 5 texts"):
        make_text_generator().generate(PROMPTS, seed=[1, 2])
    with pytest.raises(RegardError, match="one seed"):
        make_text_generator().generate(PROMPTS[:1], search=StochasticBeam(2), seed=[1])


@pytest.mark.parametrize(
    "kind", [UnigramConfig(vocabulary=60), BpeConfig(vocabulary=60), WordLevelConfig(vocabulary=60)]
)
def test_a_text_continues_its_prompt_as_the_tokenizer_decodes(kind: AnyTokenizerConfig) -> None:
    trained_tokenizer = learn(TEXTS, kind)
    settings = make_generator_settings(**{"tokens.vocabulary": trained_tokenizer.size})
    text_generator = TextGenerator(make_decoder_only(settings), TokenizerPair.joint(trained_tokenizer), settings)
    for prompt in PROMPTS:
        text = "".join(text_generator.stream(prompt, max_new_tokens=9, filters=Filters(temperature=0)))
        assert text_generator.generate([prompt], max_new_tokens=9, search=Beam(1))[0].text == text
        assert (
            text_generator.generate_with_draft(
                text_generator, prompt, max_new_tokens=9, filters=Filters(temperature=0)
            )[0].text
            == text
        )


@pytest.mark.parametrize("search", [Sampling(4), DiverseBeam(4), StochasticBeam(4), MinimumBayesRisk(4)])
def test_every_search_generates(search: Search) -> None:
    text_generator = make_text_generator()
    results = text_generator.generate(PROMPTS, max_new_tokens=6, search=search, n_best=4, seed=1)
    assert results == text_generator.generate(PROMPTS, max_new_tokens=6, search=search, n_best=4, seed=1)
    assert all(len(result.tokens) <= 6 for result in results)
    assert any(result.alternatives for result in results)


def test_forbidden_phrases_are_not_generated() -> None:
    text_generator = make_text_generator()
    unconstrained = text_generator.generate(PROMPTS, max_new_tokens=8, search=Beam(1))
    unwanted = [
        token_text.strip()
        for result in unconstrained
        for token_text in result.token_texts
        if len(token_text.strip()) > 1
    ]
    assert unwanted
    results = text_generator.generate(PROMPTS, max_new_tokens=8, search=Beam(1), forbidden=unwanted)
    assert not {token_text.strip() for result in results for token_text in result.token_texts} & set(unwanted)


def test_a_draft_changes_nothing_but_the_speed() -> None:
    text_generator, draft = make_text_generator(1), make_text_generator(2)
    greedy_filters = Filters(temperature=0)
    for prompt in PROMPTS:
        result, statistics = text_generator.generate_with_draft(
            draft, prompt, max_new_tokens=12, filters=greedy_filters
        )
        assert result.text == "".join(text_generator.stream(prompt, max_new_tokens=12, filters=Filters(temperature=0)))
        own_result, own_statistics = text_generator.generate_with_draft(
            text_generator, prompt, max_new_tokens=12, filters=greedy_filters
        )
        assert own_result.text == result.text
        assert own_statistics.acceptance_rate == 1.0  # the draft is the model itself
        assert own_statistics.steps < statistics.steps or statistics.acceptance_rate == 1.0
    tagged_tokenizer = make_tokenizer("en", "de")
    settings = make_generator_settings(**{"tokens.vocabulary": tagged_tokenizer.size})
    stranger = TextGenerator(make_decoder_only(settings), TokenizerPair.joint(tagged_tokenizer), settings)
    with pytest.raises(RegardError, match="vocabularies of the draft and of this model differ"):
        text_generator.generate_with_draft(stranger, "A")


def test_invalid_arguments_are_refused() -> None:
    text_generator = make_text_generator()
    with pytest.raises(RegardError, match="A single phrase was given"):
        text_generator.generate(PROMPTS, forbidden="cat")
    with pytest.raises(RegardError, match="max_new_tokens must be at least 1"):
        text_generator.generate(PROMPTS, max_new_tokens=0)
    assert text_generator.generate([]) == []
