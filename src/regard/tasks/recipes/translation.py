"""Recipe for translation and other text-to-text tasks. docs/guides/train.md shows the table."""

from functools import partial
from math import inf

from regard.config.training import AdamConfig
from regard.tasks.recipes.recipe import ModelSize, TaskRecipe, TuningRule
from regard.tasks.recipes.text_rows import TextRows

TRANSLATION = TaskRecipe(
    learns_from=("pairs",),
    sizes=(
        ModelSize(3_000, "mini", 1_000, 0.3, 250, 2e-3, 400, 2048,
            "larger models overfit on so little text, and rare tokens of a larger vocabulary are never learned "
            "(Sennrich and Zhang 2019: small vocabularies and strong dropout help most below 10,000 pairs)"),
        ModelSize(10_000, "mini", 2_000, 0.3, 200, 3e-3, 800, 4096,
            "small corpora need a small vocabulary and strong dropout (Sennrich and Zhang 2019)"),
        ModelSize(20_000, "tiny", 4_000, 0.3, 150, 5e-3, 2000, 8192,
            "the smallest of three sizes scored best on 29,000 pairs, and this corpus is smaller (Wu et al. 2021)"),
        ModelSize(100_000, "tiny", 10_000, 0.3, 130, 5e-3, 2000, 8192,
            "it reached 41.0 BLEU on 29,000 pairs, and two larger models only 39.7 and 38.3 (Wu et al. 2021)"),
        ModelSize(1_000_000, "small", 8_000, 0.1, 40, 2e-3, 2000, 16384,
            "this many pairs allow a wider model; up to a million, 8,000 tokens work best (Gowda and May 2020)"),
        ModelSize(20_000_000, "base", 32_000, 0.1, 25, 7e-4, 4000, 24576,
            "it is the base model of Vaswani et al. 2017, trained on 4.5 million pairs"),
        ModelSize(inf, "big", 32_000, 0.1, 10, 5e-4, 4000, 24576,
            "it is the big model of Vaswani et al. 2017, trained on up to 36 million pairs"),
    ),
    tuning=TuningRule(epochs=10),
    rows=partial(TextRows, joins_sides=False),
    optimizer=AdamConfig(betas=(0.9, 0.98)),
    muon_presets=("mini", "tiny"),
    schedule="inverse_sqrt",
    averaged_checkpoints={"mini": 10, "tiny": 10, "small": 5, "base": 5, "big": 5},
    label_smoothing=0.1,
    smoothing_reason="as in Vaswani et al. 2017; it improves translation scores",
    uses_pre_norm=True,
    metric="chrf",
    misfit_hint=", or use --text for text without translations",
)  # fmt: skip
