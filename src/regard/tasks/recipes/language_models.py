"""Recipes for running text. docs/guides/train.md shows the tables."""

from functools import partial
from math import inf

from regard.config.task_spec import MaskingOptions
from regard.config.training import AdamWConfig
from regard.tasks.recipes.recipe import HeadRule, ModelSize, TaskRecipe, TuningRule
from regard.tasks.recipes.text_rows import TextRows
from regard.tasks.recipes.vocabulary import CHARACTER_LEVEL

CAUSAL_LM = TaskRecipe(
    learns_from=("text",),
    tunes_on=("pairs",),  # prompts and responses
    sizes=(
        ModelSize(300_000, "lm-small", CHARACTER_LEVEL, 0.2, 30, 1e-3, 100, 2048,
            "a short text has too few words to learn subwords from, but many characters"),
        ModelSize(5_000_000, "lm-small", CHARACTER_LEVEL, 0.1, 15, 1e-3, 100, 4096,
            "one or a few books are enough for a character-level model; shape and learning rate follow nanoGPT"),
        ModelSize(50_000_000, "lm-medium", 4_000, 0.1, 10, 1e-3, 200, 8192,
            "this much text has enough words to learn subwords from"),
        ModelSize(2_000_000_000, "lm-medium", 16_000, 0.0, 4, 1e-3, 500, 16384,
            "up to four epochs over the same text are nearly as good as new text (Muennighoff et al. 2023)"),
        ModelSize(inf, "gpt2", 32_000, 0.0, 1, 6e-4, 2000, 65536,
            "the text is enough for 124 million parameters: about 20 tokens per parameter (Hoffmann et al. 2022)"),
    ),
    tuning=TuningRule(epochs=3, uses_chat_template=True),
    rows=partial(TextRows, fills_context=True),
    optimizer=AdamWConfig(betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1),
    schedule="cosine",
)  # fmt: skip
MASKED_LM = TaskRecipe(
    learns_from=("text",),
    sizes=(
        ModelSize(1_000_000_000, "encoder-small", 8_000, 0.1, 20, 5e-4, 1000, 8192,
            "a small BERT suits less than a gigabyte (Turc et al. 2019)"),
        ModelSize(inf, "bert", 30_000, 0.1, 5, 1e-4, 10_000, 131072,
            "it has the size of BERT, which was trained on 16 gigabytes"),
    ),
    tuning=TuningRule(epochs=3),
    rows=partial(
        TextRows,
        masking=f"{100 * MaskingOptions().probability:.0f} % of the tokens, each replaced by the mask token",
    ),
    head=HeadRule({"kind": "mlm"}, "a new one for masked tokens, because the parent has none"),
)  # fmt: skip
