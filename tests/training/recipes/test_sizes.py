"""The table of model sizes."""

import pytest

from regard.config.codec import preset
from regard.config.exportable import Exportability, exportable_to
from regard.config.model import AnyModelConfig
from regard.training.recipes.sizes import RECIPES, TaskKind

RECIPE_PRESETS = [(task, name) for task in RECIPES for name in dict.fromkeys(recipe.preset for recipe in RECIPES[task])]
POOLING = "its classifier has a hidden layer over the first vector (train with --set model.head.pool=first)"


def make_model(task: TaskKind, name: str, **changes: object) -> AnyModelConfig:
    """Make the model that the automatic configuration makes of a preset, as far as exports depend on it."""
    if task == "translate":
        stacks = ("encoder", "decoder")
        changes |= {f"{stack}.{key}": value for stack in stacks for key, value in (("placement", "pre"),)}
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
    if task in ("translate", "continue"):
        assert verdicts[0].target == "ctranslate2"
        assert verdicts[0].is_exact
