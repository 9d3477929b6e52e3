"""A model of the kind that a verb needs, or an error that names the verb for the kind that it is."""

from pathlib import Path
from typing import TypeVar

from regard.base.errors import RegardError

Kind = TypeVar("Kind")
VERBS = {  # by pipeline: what it does, what one that is not of the kind does not do, and the verb
    "Translator": ("translates", "translate", "translate"),
    "Writer": ("writes on", "write on", "generate"),
    "Filler": ("fills gaps", "fill gaps", "fill"),
    "Labeller": ("gives labels", "give labels", "label"),
}


def opened(folder: Path, wanted: type[Kind]) -> Kind:
    """The model of a folder as this pipeline."""
    from regard.pipeline.load import load  # torch: only when it is needed

    found = load(folder)
    if not isinstance(found, wanted):
        does, _, verb = VERBS[type(found).__name__]
        raise RegardError(
            f"This model {does}; it does not {VERBS[wanted.__name__][1]}.",
            where=str(folder),
            fix=f'Use `regard {verb} {folder} "..."`.',
        )
    return found
