"""Streaming the continuation of a prompt."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError, RegardWarning
from regard.config.tokenizers import (
    AnyTokenizerConfig,
    BpeConfig,
    ByteBpeConfig,
    SpecialsConfig,
    UnigramConfig,
    WordLevelConfig,
)
from regard.decode.filters import Filters
from regard.models.decoder_only import DecoderOnly
from regard.nn.kv_cache import DecodingState
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.search import Beam, DiverseBeam, MinimumBayesRisk, Sampling, Search, StochasticBeam
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.tasks.factories import TEXTS, make_decoder_only, make_generator_settings, make_tokenizer, make_tokenizers


def make_text_generator(seed: int = 1, **changes: object) -> TextGenerator:
    settings = make_generator_settings(**changes)
    return TextGenerator(make_decoder_only(settings, seed), make_tokenizers(), settings)


@pytest.mark.parametrize(
    "kind", [ByteBpeConfig(vocabulary=300), UnigramConfig(vocabulary=60), BpeConfig(vocabulary=60)]
)
def test_greedy_generates_the_most_probable_tokens(kind: AnyTokenizerConfig) -> None:
    trained_tokenizer = learn(TEXTS, kind)  # a space belongs to the token before, the token after, or neither
    settings = make_generator_settings(**{"tokens.vocabulary": trained_tokenizer.size})
    text_generator = TextGenerator(make_decoder_only(settings), TokenizerPair.joint(trained_tokenizer), settings)
    for prompt in ("Two young", "A", "Ein kleines"):
        text = "".join(text_generator.stream(prompt, max_new_tokens=8, filters=Filters(temperature=0)))
        ids = [trained_tokenizer.specials.bos, *trained_tokenizer.encode(prompt).ids]
        banned = sorted(
            trained_tokenizer.specials.control - {trained_tokenizer.specials.eos, trained_tokenizer.specials.unk}
        )
        generated: list[int] = []
        while len(generated) < 8 and trained_tokenizer.specials.eos not in generated:
            with torch.no_grad():
                logits = text_generator.model(torch.tensor([[*ids, *generated]]))[0, -1]
            logits[banned] = -torch.inf
            generated.append(int(logits.argmax()))
        assert prompt + text == trained_tokenizer.decode([*ids, *generated])
        assert text


def test_a_seed_fixes_the_text() -> None:
    text_generator = make_text_generator()
    texts = [
        "".join(text_generator.stream("A", max_new_tokens=20, filters=Filters(temperature=1.5), seed=seed))
        for seed in (1, 1, 2, None, None)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4


def test_chunks_are_text_from_the_first_on(monkeypatch: pytest.MonkeyPatch) -> None:
    text_generator = make_text_generator()
    step = DecoderOnly.step

    def checked_step(self: DecoderOnly, tokens: Tensor, state: DecodingState) -> Tensor:
        assert torch.is_inference_mode_enabled()
        return step(self, tokens, state)

    monkeypatch.setattr(DecoderOnly, "step", checked_step)
    chunks = text_generator.stream("A", max_new_tokens=30, seed=3)
    assert isinstance(chunks, Iterator)
    assert not torch.is_inference_mode_enabled()
    first_chunk = next(chunks)
    assert first_chunk
    assert not torch.is_inference_mode_enabled()  # the caller is not in inference mode
    whole = first_chunk + "".join(chunks)
    assert whole == "".join(text_generator.stream("A", max_new_tokens=30, seed=3))


def test_the_model_is_left_as_it_was() -> None:
    text_generator = make_text_generator()
    expected = "".join(text_generator.stream("A", max_new_tokens=10, seed=1))
    text_generator.model.train()
    assert "".join(text_generator.stream("A", max_new_tokens=10, seed=1)) == expected
    assert all(module.training for module in text_generator.model.modules())
    chunks = text_generator.stream("A", max_new_tokens=10, seed=1)
    next(chunks)
    chunks.close()
    assert all(module.training for module in text_generator.model.modules())


def test_an_empty_prompt_starts_a_text() -> None:
    assert "".join(make_text_generator().stream(max_new_tokens=5, seed=1))


def test_more_tokens_than_learned_positions_are_refused() -> None:
    text_generator = make_text_generator(**{"decoder.position.length": 16})
    prompt_length = 1 + len(make_tokenizer().encode("Two young").ids)
    max_new_tokens = 16 - prompt_length + 1
    assert "".join(text_generator.stream("Two young", max_new_tokens=max_new_tokens, seed=1))
    with pytest.raises(RegardError, match=f"Generate at most {max_new_tokens} tokens"):
        text_generator.stream("Two young", max_new_tokens=max_new_tokens + 1)
    with pytest.raises(RegardError, match="Shorten the prompt"):
        text_generator.stream("Two young men are outside near many bushes, and more", max_new_tokens=1)


def test_invalid_arguments_are_refused_before_the_first_step() -> None:
    text_generator = make_text_generator()
    with pytest.raises(RegardError, match=r"temperature must be .*-1"):
        text_generator.stream("A", filters=Filters(temperature=-1.0))
    with pytest.raises(RegardError, match="max_new_tokens must be at least 1, got 0"):
        text_generator.stream("A", max_new_tokens=0)


def make_generator_of_shared_specials() -> TextGenerator:
    """Make a language model whose pad, bos and eos are one token, as that of GPT-2 is."""
    tokenizer = learn(
        TEXTS, ByteBpeConfig(vocabulary=300, specials=SpecialsConfig(pad="<eos>", eos="<eos>", bos="<eos>"))
    )
    settings = make_generator_settings(**{"tokens.vocabulary": tokenizer.size})
    return TextGenerator(make_decoder_only(settings), TokenizerPair.joint(tokenizer), settings)


@pytest.mark.parametrize("search", [Beam(3), Sampling(filters=Filters(temperature=0, repetition_penalty=5.0))])
def test_prompts_may_hold_the_token_of_padding(search: Search) -> None:
    generator = make_generator_of_shared_specials()
    eos = generator.tokenizers.source.specials.eos
    prompts = [[eos, 40, 41, eos, 42, eos, 43], [eos, 50], [eos, eos, 51, 52]]

    def find(batch: list[list[int]]) -> list[list[int]]:
        options: dict[str, Any] = {"n_best": 1, "forbidden": (), "generator": torch.Generator()}
        with generator.prepared(), torch.inference_mode():
            return [list(best.tokens) for best, *_ in generator._find(batch, 8, search, **options)]

    assert find(prompts) == [find([prompt])[0] for prompt in prompts]


def test_a_forbidden_phrase_does_not_end_a_text_whose_eos_is_pad() -> None:
    generator = make_generator_of_shared_specials()
    eos = generator.tokenizers.source.specials.eos
    with torch.no_grad():
        free = generator.generate("Two", 6, Beam(1))
        word = generator.tokenizers.source.decode([free.tokens[0]])
    assert free.tokens[0] != eos
    constrained = generator.generate("Two", 6, Beam(1), forbidden=[word])
    assert constrained.tokens[0] not in (free.tokens[0], eos)


PROMPTS = ["Two young", "A", "Ein kleines", "Zwei", "A little"]


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
    with pytest.raises(RegardError, match="draft model has a different vocabulary"):
        text_generator.generate_with_draft(stranger, "A")


def test_invalid_arguments_are_refused() -> None:
    text_generator = make_text_generator()
    with pytest.raises(RegardError, match="A single phrase was given"):
        text_generator.generate(PROMPTS, forbidden="cat")
    with pytest.raises(RegardError, match="max_new_tokens must be at least 1"):
        text_generator.generate(PROMPTS, max_new_tokens=0)
    assert text_generator.generate([]) == []


def test_a_context_length_sets_the_window_and_warns() -> None:
    generator = make_text_generator(context_length=8)
    text = " ".join(TEXTS)
    lengths = {len(row.inputs) for row in generator.make_scorer(1.0).make_rows([text])}
    assert max(lengths) == 8
    assert max(len(row.inputs) for row in generator.make_scorer(1.0).make_rows([text], window=12)) == 12
    with pytest.warns(RegardWarning, match="trained on texts of 8 tokens"):
        generator.generate("", max_new_tokens=9, search=Beam(1))
    generator.generate("", max_new_tokens=4, search=Beam(1))
