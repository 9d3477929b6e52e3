"""Which model suits how much text: one table, the rule behind `regard train` without a configuration.

A row holds up to some size of a corpus. Its left half (vocabulary, dropout, epochs) follows from the corpus, its right
half (learning rate, warm-up, tokens an update) from the model; whoever names a preset gets the right half of that
preset's row. docs/train.md shows the same table, and a test holds the two together.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import AnyModel

TaskKind = Literal["translate", "continue", "classify", "tag", "fill"]
CHARACTER_LEVEL = 0  # as a size of the vocabulary: every character is a piece


@dataclass(frozen=True)
class Recipe:
    """What is chosen for a corpus up to some size."""

    max_size: float  # pairs, labelled or tagged sentences; characters of running text
    preset: str
    vocabulary: int
    dropout: float
    epochs: int  # times through the corpus, at most
    peak: float  # the highest learning rate
    warmup: int  # updates until it is reached
    update_tokens: int
    reason: str


# fmt: off
TRANSLATE = (
    Recipe(3_000, "mini", 1_000, 0.3, 250, 2e-3, 400, 2048,
        "so little text is learned by heart by anything larger, and rare pieces are never learned at all "
        "(Sennrich and Zhang 2019: small vocabularies and strong dropout help most below 10,000 pairs)"),
    Recipe(10_000, "mini", 2_000, 0.3, 200, 3e-3, 800, 4096,
        "little text wants a small vocabulary and strong dropout (Sennrich and Zhang 2019)"),
    Recipe(20_000, "tiny", 4_000, 0.3, 150, 5e-3, 2000, 8192,
        "of three sizes the smallest did best on 29,000 pairs, and this is less (Wu et al. 2021)"),
    Recipe(100_000, "tiny", 10_000, 0.3, 130, 5e-3, 2000, 8192,
        "on 29,000 pairs it reached 41.0 BLEU, and larger ones only 39.7 and 38.3 (Wu et al. 2021)"),
    Recipe(1_000_000, "small", 8_000, 0.1, 40, 2e-3, 2000, 16384,
        "so many pairs carry a wider model, and up to a million 8,000 pieces are best (Gowda and May 2020)"),
    Recipe(20_000_000, "base", 32_000, 0.1, 25, 7e-4, 4000, 24576,
        "it is the base model of the 2017 paper, which had 4.5 million pairs"),
    Recipe(inf, "big", 32_000, 0.1, 10, 5e-4, 4000, 24576,
        "it is the big model of the 2017 paper, which had up to 36 million pairs"),
)
CONTINUE = (
    Recipe(300_000, "lm-small", CHARACTER_LEVEL, 0.2, 30, 1e-3, 100, 2048,
        "a short text has too few words to learn pieces of, but many characters"),
    Recipe(5_000_000, "lm-small", CHARACTER_LEVEL, 0.1, 15, 1e-3, 100, 4096,
        "one book or a few teach characters well; shape and learning rate are nanoGPT's for such a text"),
    Recipe(50_000_000, "lm-medium", 4_000, 0.1, 10, 1e-3, 200, 8192,
        "a shelf of books has words enough to learn pieces of"),
    Recipe(2_000_000_000, "lm-medium", 16_000, 0.0, 4, 1e-3, 500, 16384,
        "up to four times through the same text is nearly as good as new text (Muennighoff et al. 2023)"),
    Recipe(inf, "gpt2", 32_000, 0.0, 1, 6e-4, 2000, 65536,
        "there is enough for 124 million parameters: some 20 tokens for each (Hoffmann et al. 2022)"),
)
CLASSIFY_AND_TAG = (
    Recipe(20_000, "encoder-small", 4_000, 0.3, 20, 5e-4, 300, 4096,
        "a few thousand sentences are learned by heart unless the model is small and drops much"),
    Recipe(1_000_000, "encoder-small", 8_000, 0.1, 10, 5e-4, 500, 8192,
        "BERT's smaller sister suits what is learned from labels alone (Turc et al. 2019)"),
    Recipe(inf, "bert", 30_000, 0.1, 3, 1e-4, 4000, 32768,
        "a million sentences carry BERT's own size"),
)
FILL = (
    Recipe(1_000_000_000, "encoder-small", 8_000, 0.1, 20, 5e-4, 1000, 8192,
        "BERT's smaller sister suits less than a gigabyte (Turc et al. 2019)"),
    Recipe(inf, "bert", 30_000, 0.1, 5, 1e-4, 10_000, 131072,
        "it is BERT's own size, which had 16 gigabytes"),
)
# fmt: on
RECIPES: dict[TaskKind, tuple[Recipe, ...]] = {
    "translate": TRANSLATE,
    "continue": CONTINUE,
    "classify": CLASSIFY_AND_TAG,
    "tag": CLASSIFY_AND_TAG,
    "fill": FILL,
}


def recipe_for_size(task: TaskKind, size: int) -> Recipe:
    """The row that a corpus of this size falls into.

    >>> recipe_for_size("translate", 29_000).preset, recipe_for_size("translate", 3_000_000).preset
    ('tiny', 'base')
    """
    return next(recipe for recipe in RECIPES[task] if size <= recipe.max_size)


def recipe_for_preset(task: TaskKind, preset: str, size: int) -> Recipe:
    """The row of this size; what belongs to the model is from the preset's row, or from the one nearest in width."""
    recipe = recipe_for_size(task, size)
    if recipe.preset == preset:
        return recipe
    width = codec.preset(preset).width
    nearest = min(
        RECIPES[task], key=lambda recipe: (recipe.preset != preset, abs(codec.preset(recipe.preset).width - width))
    )
    return replace(recipe, preset=preset, peak=nearest.peak, warmup=nearest.warmup, update_tokens=nearest.update_tokens)


def smaller_recipes(task: TaskKind, size: int) -> list[Recipe]:
    """The row of this size, and those of smaller presets, largest first: what is tried when time is short.

    >>> [row.preset for row in smaller_recipes("translate", 300_000)]
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
    "continue": "decoder_only",
    "fill": "encoder_only",
    "classify": "encoder_only",
    "tag": "encoder_only",
}
_FAMILY_DESCRIPTIONS = {
    "encoder_decoder": "reads one text and writes another",
    "decoder_only": "writes a text on",
    "encoder_only": "reads a text and labels it",
}
_CORPUS_DESCRIPTIONS = {
    "translate": "pairs",
    "continue": "running text",
    "fill": "running text",
    "classify": "labelled text",
    "tag": "tagged words",
}


def model_for(task: TaskKind, preset: str) -> tuple[TaskKind, AnyModel]:
    """The preset's model, and the job that it does on such a corpus; one that cannot do any is refused."""
    model = codec.preset(preset)
    if task == "continue" and model.family == "encoder_only":
        return "fill", model
    if model.family != FAMILIES[task]:
        candidates = [
            candidate for candidate in codec.list_presets() if codec.preset(candidate).family == FAMILIES[task]
        ]
        hint = " Or give the text alone: --text." if task == "translate" else ""
        raise RegardError(
            f"Preset '{preset}' {_FAMILY_DESCRIPTIONS[model.family]}, and this corpus is {_CORPUS_DESCRIPTIONS[task]}.",
            fix=f"Use one of {', '.join(candidates)}.{hint}",
        )
    return task, model
