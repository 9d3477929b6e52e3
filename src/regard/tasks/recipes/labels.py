"""Recipes for labeled text and sentence embeddings. docs/guides/train.md shows the tables."""

from dataclasses import replace
from functools import partial
from math import inf

from regard.tasks.recipes.recipe import HeadRule, ModelSize, TaskRecipe, TuningRule
from regard.tasks.recipes.text_rows import TextRows

NEW_LABELS = "a new one for the {count} labels, which the parent does not know"
TEXT_CLASSIFICATION = TaskRecipe(
    learns_from=("labels",),
    sizes=(
        ModelSize(20_000, "encoder-tiny", 4_000, 0.3, 12, 2e-3, 100, 4096,
            "a model overfits a few thousand sentences unless it is small and has strong dropout"),
        ModelSize(100_000, "encoder-tiny", 8_000, 0.3, 3, 1e-3, 100, 4096,
            "labels alone contain little information, so the model overfits after two or three epochs"),
        ModelSize(1_000_000, "encoder-small", 8_000, 0.1, 10, 5e-4, 500, 8192,
            "a small BERT suits training from labels alone (Turc et al. 2019)"),
        ModelSize(inf, "bert", 30_000, 0.1, 3, 1e-4, 4000, 32768,
            "a million sentences are enough for a model of BERT's size"),
    ),
    # About 32 sentences per step, as for BERT; Howard and Ruder 2018 and Clark et al. 2020 found the decay useful
    tuning=TuningRule(epochs=4, max_step_tokens=1024, layer_decay=0.9),
    head=HeadRule({"kind": "classes", "pool": "mean"}, NEW_LABELS, has_labels=True),
    patience=0,
)  # fmt: skip
TAGGING = replace(
    TEXT_CLASSIFICATION, learns_from=("tags",), head=HeadRule({"kind": "tags"}, NEW_LABELS, has_labels=True)
)
EMBEDDING = TaskRecipe(
    learns_from=("pairs",),
    sizes=(
        ModelSize(300_000, "encoder-tiny", 8_000, 0.1, 20, 1e-3, 200, 4096,
            "the loss needs many pairs per batch, and a small encoder is fast"),
        ModelSize(5_000_000, "encoder-small", 16_000, 0.1, 5, 5e-4, 500, 8192,
            "this many pairs are enough for a wider encoder"),
        ModelSize(inf, "bert", 30_000, 0.1, 1, 1e-4, 4000, 32768,
            "millions of pairs are enough for a model of BERT's size"),
    ),
    tuning=TuningRule(epochs=3),
    rows=partial(TextRows, joins_sides=False),
    head=HeadRule({"kind": "none"},
            "none, because the hidden states are pooled into a vector"),
    metric="retrieval_at_1",
    patience=0,
    samples_validation=False,  # retrieval is easier among fewer texts
    needs_large_batches=True,
    reason="Task: sentence embeddings from pairs: paired texts get similar vectors, other texts in the batch do not.",
)  # fmt: skip
