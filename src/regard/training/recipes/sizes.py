"""Recipes: which model and hyperparameters suit which corpus size, used by `regard train` without a run file.

A recipe applies up to a corpus size. Vocabulary, dropout and epochs depend on the corpus; learning rate, warmup and
tokens per step depend on the model. With an explicit preset, the latter three come from the recipe of that preset.
docs/train.md shows the same tables, and a test compares them.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import AnyModelConfig

TaskKind = Literal["translate", "causal_lm", "classify", "tag", "masked_lm", "embed", "transcribe", "caption"]
CHARACTER_LEVEL = 0  # as a vocabulary size: every character is a token


@dataclass(frozen=True)
class Recipe:
    """Model and hyperparameters for corpora up to `max_size`."""

    max_size: float  # pairs, labeled or tagged sentences; characters of running text
    preset: str
    vocabulary: int
    dropout: float
    epochs: int  # at most
    peak: float  # peak learning rate
    warmup: int  # steps until the peak
    step_tokens: int
    reason: str


# fmt: off
TRANSLATE = (
    Recipe(3_000, "mini", 1_000, 0.3, 250, 2e-3, 400, 2048,
        "larger models overfit so little text, and rare tokens of a larger vocabulary are never learned "
        "(Sennrich and Zhang 2019: small vocabularies and strong dropout help most below 10,000 pairs)"),
    Recipe(10_000, "mini", 2_000, 0.3, 200, 3e-3, 800, 4096,
        "little text needs a small vocabulary and strong dropout (Sennrich and Zhang 2019)"),
    Recipe(20_000, "tiny", 4_000, 0.3, 150, 5e-3, 2000, 8192,
        "the smallest of three sizes scored best on 29,000 pairs, and this corpus is smaller (Wu et al. 2021)"),
    Recipe(100_000, "tiny", 10_000, 0.3, 130, 5e-3, 2000, 8192,
        "it reached 41.0 BLEU on 29,000 pairs, and two larger models only 39.7 and 38.3 (Wu et al. 2021)"),
    Recipe(1_000_000, "small", 8_000, 0.1, 40, 2e-3, 2000, 16384,
        "this many pairs support a wider model, and up to a million 8,000 tokens are best (Gowda and May 2020)"),
    Recipe(20_000_000, "base", 32_000, 0.1, 25, 7e-4, 4000, 24576,
        "it is the base model of Vaswani et al. 2017, trained on 4.5 million pairs"),
    Recipe(inf, "big", 32_000, 0.1, 10, 5e-4, 4000, 24576,
        "it is the big model of Vaswani et al. 2017, trained on up to 36 million pairs"),
)
CONTINUE = (
    Recipe(300_000, "lm-small", CHARACTER_LEVEL, 0.2, 30, 1e-3, 100, 2048,
        "a short text has too few words to learn subwords from, but many characters"),
    Recipe(5_000_000, "lm-small", CHARACTER_LEVEL, 0.1, 15, 1e-3, 100, 4096,
        "one book or a few suffice for a character-level model; shape and learning rate are nanoGPT's for such a text"),
    Recipe(50_000_000, "lm-medium", 4_000, 0.1, 10, 1e-3, 200, 8192,
        "this much text has enough words to learn subwords from"),
    Recipe(2_000_000_000, "lm-medium", 16_000, 0.0, 4, 1e-3, 500, 16384,
        "up to four epochs over the same text are nearly as good as new text (Muennighoff et al. 2023)"),
    Recipe(inf, "gpt2", 32_000, 0.0, 1, 6e-4, 2000, 65536,
        "the text suffices for 124 million parameters: about 20 tokens per parameter (Hoffmann et al. 2022)"),
)
CLASSIFY_AND_TAG = (
    Recipe(20_000, "encoder-tiny", 4_000, 0.3, 12, 2e-3, 100, 4096,
        "a model overfits a few thousand sentences unless it is small and has strong dropout"),
    Recipe(100_000, "encoder-tiny", 8_000, 0.3, 3, 1e-3, 100, 4096,
        "labels alone teach little: the model overfits after two or three epochs"),
    Recipe(1_000_000, "encoder-small", 8_000, 0.1, 10, 5e-4, 500, 8192,
        "a small BERT suits training from labels alone (Turc et al. 2019)"),
    Recipe(inf, "bert", 30_000, 0.1, 3, 1e-4, 4000, 32768,
        "a million sentences support the size of BERT"),
)
FILL = (
    Recipe(1_000_000_000, "encoder-small", 8_000, 0.1, 20, 5e-4, 1000, 8192,
        "a small BERT suits less than a gigabyte (Turc et al. 2019)"),
    Recipe(inf, "bert", 30_000, 0.1, 5, 1e-4, 10_000, 131072,
        "it has the size of BERT, which was trained on 16 gigabytes"),
)
EMBED = (
    Recipe(300_000, "encoder-tiny", 8_000, 0.1, 20, 1e-3, 200, 4096,
        "the loss needs many pairs per batch, and a small encoder embeds them fast"),
    Recipe(5_000_000, "encoder-small", 16_000, 0.1, 5, 5e-4, 500, 8192,
        "this many pairs support a wider encoder"),
    Recipe(inf, "bert", 30_000, 0.1, 1, 1e-4, 4000, 32768,
        "millions of pairs support the size of BERT"),
)
# fmt: on
RECIPES: dict[TaskKind, tuple[Recipe, ...]] = {
    "translate": TRANSLATE,
    "causal_lm": CONTINUE,
    "classify": CLASSIFY_AND_TAG,
    "tag": CLASSIFY_AND_TAG,
    "masked_lm": FILL,
    "embed": EMBED,
}


def recipe_for_size(task: TaskKind, size: int) -> Recipe:
    """Return the recipe for a corpus of this size.

    >>> recipe_for_size("translate", 29_000).preset, recipe_for_size("translate", 3_000_000).preset
    ('tiny', 'base')
    """
    return next(recipe for recipe in RECIPES[task] if size <= recipe.max_size)


def recipe_for_preset(task: TaskKind, preset: str, size: int) -> Recipe:
    """Return the recipe of this size with the preset's learning rate, warmup and tokens per step.

    A preset without a recipe takes these from the recipe whose model is nearest in width.
    """
    recipe = recipe_for_size(task, size)
    if recipe.preset == preset:
        return recipe
    width = codec.preset(preset).d_model
    nearest = min(
        RECIPES[task], key=lambda recipe: (recipe.preset != preset, abs(codec.preset(recipe.preset).d_model - width))
    )
    return replace(recipe, preset=preset, peak=nearest.peak, warmup=nearest.warmup, step_tokens=nearest.step_tokens)


def smaller_recipes(task: TaskKind, size: int) -> list[Recipe]:
    """Return the recipes of this size and of smaller presets, largest first: candidates when time is short.

    >>> [recipe.preset for recipe in smaller_recipes("translate", 300_000)]
    ['small', 'tiny', 'mini']
    """
    recipes: list[Recipe] = []
    for recipe in reversed(
        [recipe for recipe in RECIPES[task] if recipe.max_size <= recipe_for_size(task, size).max_size]
    ):
        if recipe.preset not in [previous.preset for previous in recipes]:
            recipes.append(recipe)
    return recipes


FAMILIES = {
    "translate": "encoder_decoder",
    "causal_lm": "decoder_only",
    "masked_lm": "encoder_only",
    "classify": "encoder_only",
    "tag": "encoder_only",
    "embed": "encoder_only",
}
_FAMILY_DESCRIPTIONS = {
    "encoder_decoder": "maps a source text to a target text",
    "decoder_only": "continues a text",
    "encoder_only": "labels a text",
}
_CORPUS_DESCRIPTIONS = {
    "translate": "pairs",
    "causal_lm": "running text",
    "masked_lm": "running text",
    "classify": "labeled text",
    "tag": "tagged words",
    "embed": "pairs",
}


def model_for(task: TaskKind, preset: str) -> tuple[TaskKind, AnyModelConfig]:
    """Return the model of a preset and the task that it learns on such a corpus.

    Raises:
        RegardError: If a model of this family cannot learn the task.
    """
    model = codec.preset(preset)
    if model.task in ("cbow", "skip_gram"):
        hint = f'Write a run file with model.preset = "{preset}" and a tokenizer of words (docs/encoders.md).'
        raise RegardError(f"There is no recipe for the preset '{preset}'.", hint=hint)
    if task == "causal_lm" and model.family == "encoder_only":
        return "masked_lm", model
    if task == "translate" and model.family == "encoder_only":
        return "embed", model
    if model.family != FAMILIES[task]:
        candidates = [
            candidate for candidate in codec.list_presets() if codec.preset(candidate).family == FAMILIES[task]
        ]
        hint = " Or give the text alone: --text." if task == "translate" else ""
        raise RegardError(
            f"Preset '{preset}' {_FAMILY_DESCRIPTIONS[model.family]}, and this corpus is {_CORPUS_DESCRIPTIONS[task]}.",
            hint=f"Use one of {', '.join(candidates)}.{hint}",
        )
    return task, model
