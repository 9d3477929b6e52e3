"""Choose the task for a corpus."""

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import AnyModelConfig
from regard.config.task_spec import SPECS, TaskSpec, find_spec
from regard.data.stats import KINDS, CorpusStats
from regard.tasks.recipes.corpus import CorpusRequest
from regard.tasks.recipes.recipe import TaskRecipe, find_recipe

_READS = {"patches": "images", "mel": "audio"}  # others read text
_DOES = {  # descriptions of presets by input or family
    "patches": "reads images",
    "mel": "reads audio",
    "raster": "generates images",
    "encoder_decoder": "maps a source text to a target text",
    "decoder_only": "continues a text",
    "encoder_only": "labels a text",
}


def choose_task(corpus: CorpusRequest) -> TaskSpec:
    """Return the task of a run: the requested one, or the first that supports the corpus and model.

    Raises:
        RegardError: If the corpus does not match the requested task or the given model.
    """
    stats, requested, parent = corpus.stats, corpus.changes.get("model.task"), corpus.parent
    if parent is not None:
        _check_media(parent, stats)
    model = parent if corpus.preset is None else codec.preset(corpus.preset)
    held = f"this corpus contains {KINDS[stats.kind]}"
    if isinstance(requested, str):
        spec, recipe = find_spec(requested), find_recipe(requested)
        if not recipe.accepts(stats, parent is not None):
            message = f"The task '{requested}' needs {_list_needed([recipe])}, but {held}."
            raise RegardError(message, hint="Use another corpus or another task.")
    else:
        specs = [spec for spec in _list_specs() if find_recipe(spec.name).accepts(stats, parent is not None)]
        spec = next((spec for spec in specs if model is None or spec.family == model.family), specs[0])
    if corpus.preset is not None:
        _check_preset(corpus.preset, spec, stats)
    if parent is not None and spec.family != parent.family:
        others = [other for other in _list_specs() if (other.family, other.input) == (parent.family, _input(parent))]
        needed = _list_needed([find_recipe(other.name) for other in others])
        message = f"The model's task is '{parent.task}', which needs {needed}, but {held}."
        raise RegardError(message, hint=f"Give {needed}, or fine-tune another model.")
    return spec


def _list_specs() -> list[TaskSpec]:
    """Return the built-in tasks with a recipe; tasks from other packages must be requested."""
    return [spec for spec in SPECS.values() if spec.recipe]


def _list_needed(recipes: list[TaskRecipe]) -> str:
    kinds = dict.fromkeys(kind for recipe in recipes for kind in recipe.learns_from + recipe.tunes_on)
    return " or ".join(KINDS[kind] for kind in kinds)


def _input(model: AnyModelConfig) -> str:
    if getattr(model, "raster", None) is not None:
        return "raster"
    return getattr(getattr(model, "source", None), "kind", "tokens")


def _check_media(parent: AnyModelConfig, stats: CorpusStats) -> None:
    """Raise RegardError if the model to fine-tune reads different media."""
    if _input(parent) == "raster":
        hint = "Train a new one: `regard train --images FOLDER --preset image-gpt`."
        raise RegardError("Image generation models cannot be fine-tuned yet.", hint=hint)
    media = _READS.get(_input(parent), "text")
    if media != (stats.content if stats.content in _READS.values() else "text"):
        hint = f"Tune it with --{media}." if media in _READS.values() else f"Tune a model of {stats.content}."
        raise RegardError(f"The model reads {media}, but this corpus contains {stats.content}.", hint=hint)


def _check_preset(preset: str, spec: TaskSpec, stats: CorpusStats) -> None:
    """Raise RegardError if this preset does not support the task."""
    model, recipe = codec.preset(preset), find_recipe(spec.name)
    if not _has_recipe(model):
        hint = f'Write a run file with model.preset = "{preset}" and a tokenizer of words (docs/guides/classify.md).'
        raise RegardError(f"There is no recipe for the preset '{preset}'.", hint=hint)
    if _suits(model, spec):
        return
    what = recipe.misfit
    if not what:
        what = f"{_DOES.get(_input(model)) or _DOES[model.family]}, but this corpus contains {KINDS[stats.kind]}"
    candidates = [name for name in codec.list_presets() if _suits(codec.preset(name), spec)]
    raise RegardError(
        f"Preset '{preset}' {what}.",
        hint=f"Use {'one of ' * (len(candidates) > 1)}{', '.join(candidates)}{recipe.misfit_hint}.",
    )


def _suits(model: AnyModelConfig, spec: TaskSpec) -> bool:
    """Return whether a model has the family and input of a task; a text language model also supports pixels."""
    inputs = ("raster", "tokens") if spec.input == "raster" else (spec.input,)
    return model.family == spec.family and _input(model) in inputs and _has_recipe(model)


def _has_recipe(model: AnyModelConfig) -> bool:
    return model.head.kind in {spec.head for spec in _list_specs()}
