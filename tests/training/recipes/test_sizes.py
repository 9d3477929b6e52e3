"""The table of model sizes."""

import re
from pathlib import Path

import pytest

from regard.config import codec
from regard.config.codec import preset
from regard.config.exportable import Exportability, exportable_to
from regard.config.model import AnyModelConfig
from regard.training.recipes.sizes import (
    CHARACTER_LEVEL,
    RECIPES,
    TaskKind,
    recipe_for_preset,
    recipe_for_size,
    smaller_recipes,
)

RECIPE_PRESETS = [(task, name) for task in RECIPES for name in dict.fromkeys(recipe.preset for recipe in RECIPES[task])]
POOLING = "its classifier has a hidden layer over the first vector (train with --set model.head.pool=first)"


def make_model(task: TaskKind, name: str, **changes: object) -> AnyModelConfig:
    """Make the model that the automatic configuration makes of a preset, as far as exports depend on it."""
    if task == "translate":
        stacks = ("encoder", "decoder")
        changes |= {f"{stack}.{key}": value for stack in stacks for key, value in (("norm_order", "pre"),)}
        changes |= {f"{stack}.final_norm": True for stack in stacks}
    if task in ("classify", "tag"):
        head = {"kind": "classes", "pool": "mean"} if task == "classify" else {"kind": "tags"}
        changes = {"head": head | {"labels": ["a", "b"]}, **changes}
    if task == "embed":
        changes = {"head": {"kind": "none"}, **changes}
    return preset(name, {"task": task, **changes})


def list_architectures(verdicts: tuple[Exportability, ...]) -> list[str]:
    return [verdict.target for verdict in verdicts if verdict.is_exact and verdict.target.startswith("huggingface:")]


@pytest.mark.parametrize(("task", "name"), RECIPE_PRESETS)
def test_every_recipe_can_be_deployed(task: TaskKind, name: str) -> None:
    verdicts = exportable_to(make_model(task, name))
    if task == "classify":  # the mean of all tokens has no architecture; the first token has one
        obstacles = {verdict.obstacles for verdict in verdicts if verdict.target.startswith("huggingface:")}
        assert (POOLING,) in obstacles
        verdicts = exportable_to(make_model(task, name, **{"head.pool": "first"}))
    assert list_architectures(verdicts)
    if task in ("translate", "causal_lm"):
        assert verdicts[0].target == "ctranslate2"
        assert verdicts[0].is_exact


DOCS_PAGE = Path(__file__).parents[3] / "docs/train.md"


def test_a_preset_without_a_row_borrows_from_the_nearest() -> None:
    assert recipe_for_preset("translate", "lecture", 600).peak == recipe_for_preset("translate", "base", 600).peak
    assert recipe_for_preset("causal_lm", "llama", 1000).peak == recipe_for_preset("causal_lm", "gpt2", 1000).peak


def test_where_there_is_no_time_for_a_model_a_smaller_one_is_taken() -> None:
    assert [recipe.preset for recipe in smaller_recipes("translate", 300_000)] == ["small", "tiny", "mini"]
    assert [recipe.preset for recipe in smaller_recipes("causal_lm", 300_000)] == ["lm-small"]


@pytest.mark.parametrize(
    ("task", "size", "preset", "vocabulary"),
    [
        ("translate", 2_000, "mini", 1_000),
        ("translate", 3_000, "mini", 1_000),
        ("translate", 3_001, "mini", 2_000),
        ("translate", 100_000, "tiny", 10_000),
        ("translate", 100_001, "small", 8_000),
        ("translate", 9_000, "mini", 2_000),
        ("translate", 29_000, "tiny", 10_000),
        ("translate", 165_000, "small", 8_000),
        ("translate", 3_000_000, "base", 32_000),
        ("translate", 10**9, "big", 32_000),
        ("causal_lm", 1_115_394, "lm-small", CHARACTER_LEVEL),
        ("causal_lm", 64_000_000, "lm-medium", 16_000),
        ("causal_lm", 10**11, "gpt2", 32_000),
        ("classify", 6_920, "encoder-tiny", 4_000),
        ("tag", 12_544, "encoder-tiny", 4_000),
        ("classify", 67_349, "encoder-tiny", 8_000),
        ("classify", 100_001, "encoder-small", 8_000),
    ],
)
def test_the_table(task: TaskKind, size: int, preset: str, vocabulary: int) -> None:
    recipe = recipe_for_size(task, size)
    assert (recipe.preset, recipe.vocabulary) == (preset, vocabulary)


@pytest.mark.parametrize("task", RECIPES)
def test_rows_rise(task: TaskKind) -> None:
    recipes = RECIPES[task]
    assert [recipe.max_size for recipe in recipes] == sorted({recipe.max_size for recipe in recipes})
    assert [recipe.dropout for recipe in recipes] == sorted((recipe.dropout for recipe in recipes), reverse=True)
    assert recipes[-1].max_size == float("inf")
    for recipe in recipes:
        assert recipe.preset in codec.list_presets()
        assert not recipe.reason.endswith(".")


def test_the_page_shows_the_table() -> None:
    """docs/train.md has one row for each row of the code."""
    shown = re.findall(
        r"^\| ([^|]+) \| `([\w-]+)` \| ([^|]+) \| ([^|]+) \| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|",
        DOCS_PAGE.read_text(encoding="utf-8"),
        re.M,
    )
    expected = []
    for recipes in dict.fromkeys(RECIPES.values()):
        for recipe in recipes:
            max_size = "more" if recipe.max_size == float("inf") else f"{int(recipe.max_size):,}"
            vocabulary = "characters" if recipe.vocabulary == CHARACTER_LEVEL else f"{recipe.vocabulary:,}"
            numbers = (str(recipe.epochs), f"{recipe.peak:g}", f"{recipe.warmup:,}", f"{recipe.step_tokens:,}")
            expected.append((max_size, recipe.preset, vocabulary, f"{recipe.dropout:g}", *numbers))
    assert shown == expected
