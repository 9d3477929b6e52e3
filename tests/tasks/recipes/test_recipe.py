"""Recipes of tasks: their tables of model sizes."""

import re
from pathlib import Path

import pytest

from regard.config import codec
from regard.config.codec import preset
from regard.config.model import AnyModelConfig
from regard.config.task_spec import SPECS
from regard.exchange.exportable import Exportability, exportable_to
from regard.tasks.recipes.recipe import find_recipe
from regard.tasks.recipes.vocabulary import CHARACTER_LEVEL

TEXT_TASKS = [name for name, spec in SPECS.items() if spec.recipe and spec.input == "tokens"]
RECIPE_PRESETS = [
    (task, name) for task in TEXT_TASKS for name in dict.fromkeys(row.preset for row in find_recipe(task).sizes)
]
POOLING = "its classifier has a hidden layer over the first vector (train with --set model.head.pool=first)"


def make_model(task: str, name: str, **changes: object) -> AnyModelConfig:
    """Make the model that the automatic configuration makes of a preset, as far as exports depend on it."""
    if task == "translation":
        stacks = ("encoder", "decoder")
        changes |= {f"{stack}.{key}": value for stack in stacks for key, value in (("norm_order", "pre"),)}
        changes |= {f"{stack}.final_norm": True for stack in stacks}
    if task in ("text_classification", "tagging"):
        head = {"kind": "classes", "pool": "mean"} if task == "text_classification" else {"kind": "tags"}
        changes = {"head": head | {"labels": ["a", "b"]}, **changes}
    if task == "embedding":
        changes = {"head": {"kind": "none"}, **changes}
    return preset(name, {"task": task, **changes})


def list_architectures(verdicts: tuple[Exportability, ...]) -> list[str]:
    return [verdict.target for verdict in verdicts if verdict.is_exact and verdict.target.startswith("huggingface:")]


@pytest.mark.parametrize(("task", "name"), RECIPE_PRESETS)
def test_every_recipe_can_be_deployed(task: str, name: str) -> None:
    verdicts = exportable_to(make_model(task, name))
    if task == "text_classification":  # the mean of all tokens has no architecture; the first token has one
        obstacles = {verdict.obstacles for verdict in verdicts if verdict.target.startswith("huggingface:")}
        assert (POOLING,) in obstacles
        verdicts = exportable_to(make_model(task, name, **{"head.pool": "first"}))
    assert list_architectures(verdicts)
    if task in ("translation", "causal_lm"):
        assert verdicts[0].target == "ctranslate2"
        assert verdicts[0].is_exact


SHOWN = ("translation", "causal_lm", "text_classification", "tagging", "masked_lm", "embedding")
DOCS_PAGE = Path(__file__).parents[3] / "docs/guides/train.md"


def test_a_preset_without_a_row_borrows_from_the_nearest() -> None:
    translation, causal_lm = find_recipe("translation"), find_recipe("causal_lm")
    assert translation.for_preset("lecture", 600).peak == translation.for_preset("base", 600).peak
    assert causal_lm.for_preset("llama", 1000).peak == causal_lm.for_preset("gpt2", 1000).peak


def test_where_there_is_no_time_for_a_model_a_smaller_one_is_taken() -> None:
    assert [row.preset for row in find_recipe("translation").smaller_sizes(300_000)] == ["small", "tiny", "mini"]
    assert [row.preset for row in find_recipe("causal_lm").smaller_sizes(300_000)] == ["lm-small"]


@pytest.mark.parametrize(
    ("task", "size", "preset", "vocabulary"),
    [
        ("translation", 2_000, "mini", 1_000),
        ("translation", 3_000, "mini", 1_000),
        ("translation", 3_001, "mini", 2_000),
        ("translation", 100_000, "tiny", 10_000),
        ("translation", 100_001, "small", 8_000),
        ("translation", 9_000, "mini", 2_000),
        ("translation", 29_000, "tiny", 10_000),
        ("translation", 165_000, "small", 8_000),
        ("translation", 3_000_000, "base", 32_000),
        ("translation", 10**9, "big", 32_000),
        ("causal_lm", 1_115_394, "lm-small", CHARACTER_LEVEL),
        ("causal_lm", 64_000_000, "lm-medium", 16_000),
        ("causal_lm", 10**11, "gpt2", 32_000),
        ("text_classification", 6_920, "encoder-tiny", 4_000),
        ("tagging", 12_544, "encoder-tiny", 4_000),
        ("text_classification", 67_349, "encoder-tiny", 8_000),
        ("text_classification", 100_001, "encoder-small", 8_000),
    ],
)
def test_the_table(task: str, size: int, preset: str, vocabulary: int) -> None:
    recipe = find_recipe(task).for_size(size)
    assert (recipe.preset, recipe.vocabulary) == (preset, vocabulary)


@pytest.mark.parametrize("task", [name for name, spec in SPECS.items() if spec.recipe])
def test_rows_rise(task: str) -> None:
    recipes = find_recipe(task).sizes
    assert [recipe.max_size for recipe in recipes] == sorted({recipe.max_size for recipe in recipes})
    assert [recipe.dropout for recipe in recipes] == sorted((recipe.dropout for recipe in recipes), reverse=True)
    assert recipes[-1].max_size == float("inf")
    for recipe in recipes:
        assert recipe.preset in codec.list_presets()
        assert not recipe.reason.endswith(".")


def test_the_page_shows_the_table() -> None:
    """docs/guides/train.md has one row for each row of the code."""
    shown = re.findall(
        r"^\| ([^|]+) \| `([\w-]+)` \| ([^|]+) \| ([^|]+) \| (\d+) \| ([^|]+) \|",
        DOCS_PAGE.read_text(encoding="utf-8"),
        re.M,
    )
    expected = []
    for recipes in dict.fromkeys(find_recipe(task).sizes for task in SHOWN):
        for recipe in recipes:
            max_size = "more" if recipe.max_size == float("inf") else f"{int(recipe.max_size):,}"
            vocabulary = "characters" if recipe.vocabulary == CHARACTER_LEVEL else f"{recipe.vocabulary:,}"
            numbers = (f"{recipe.dropout:g}", str(recipe.epochs), f"{recipe.peak:g}")
            expected.append((max_size, recipe.preset, vocabulary, *numbers))
    assert shown == expected
