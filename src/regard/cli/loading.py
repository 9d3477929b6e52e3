"""A model of the kind that a verb needs, or an error that names the verb for the kind that it is."""

from pathlib import Path
from typing import TypeVar

from regard.base.errors import RegardError

Pipeline = TypeVar("Pipeline")
PIPELINE_VERBS = {  # by pipeline: what it does, what one that is not of the kind does not do, and the verb
    "Translator": ("translates", "translate", "translate"),
    "TextGenerator": ("writes on", "write on", "generate"),
    "FillMask": ("fills gaps", "fill gaps", "fill"),
    "Classifier": ("gives labels", "give labels", "label"),
}


def load_as(folder: Path, pipeline_class: type[Pipeline]) -> Pipeline:
    """The model of a folder as this pipeline."""
    from regard.pipeline.load import load  # torch: only when it is needed

    pipeline = load(folder)
    if not isinstance(pipeline, pipeline_class):
        does, _, verb = PIPELINE_VERBS[type(pipeline).__name__]
        raise RegardError(
            f"This model {does}; it does not {PIPELINE_VERBS[pipeline_class.__name__][1]}.",
            where=str(folder),
            fix=f'Use `regard {verb} {folder} "..."`.',
        )
    return pipeline
