"""A model of the kind that a verb needs, or an error that names the verb for the kind that it is."""

from pathlib import Path
from typing import TypeVar

from regard.base.errors import RegardError

Kind = TypeVar("Kind")
VERBS = {  # by pipeline: what it does, and with which verb
    "Translator": ("translates", "translate"),
    "Writer": ("writes on", "generate"),
    "Filler": ("fills gaps", "fill"),
    "Labeller": ("gives labels", "label"),
}


def opened(folder: Path, wanted: type[Kind]) -> Kind:
    """The model of a folder as this pipeline."""
    from regard.pipeline.load import load  # torch: only when it is needed

    found = load(folder)
    if not isinstance(found, wanted):
        does, verb = VERBS[type(found).__name__]
        raise RegardError(
            f"This model {does}; the verb is for one that {VERBS[wanted.__name__][0]}.",
            where=str(folder),
            fix=f'Use `regard {verb} {folder} "..."`.',
        )
    return found
