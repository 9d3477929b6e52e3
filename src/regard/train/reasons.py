"""Reasons that stay true: where a person set something, the sentence about it says that, and not what was chosen."""

from collections.abc import Collection, Sequence

STACKS = ("model.encoder", "model.decoder")
ABOUT = {  # the first words of a reason: the settings that it explains
    "Vocabulary": ("tokenizer.kind", "tokenizer.vocabulary", "tokenizer.joint"),
    "Dropout": tuple(f"{stack}.dropout" for stack in STACKS),
    "Norms": tuple(f"{stack}.{name}" for stack in STACKS for name in ("placement", "final_norm")),
    "Validation": ("data.held_out", "data.validation"),
    "Learning rate": ("train.schedule",),
    "The end": ("train.average",),
    "Label smoothing": ("train.label_smoothing",),
    "Precision": ("train.precision",),
    "Looks": ("validation.every", "validation.metric", "validation.patience", "validation.sentences"),
}


def as_set(reasons: Sequence[str], settings: Collection[str]) -> tuple[str, ...]:
    """The reasons for a run, of which these settings are somebody's own.

    >>> as_set(["Dropout: 0.1, because.", "Looks: one."], ["validation.every"])
    ('Dropout: 0.1, because.', 'Looks: changed by you (validation.every).')
    """
    return tuple(_as_set(reason, settings) for reason in reasons)


def _as_set(reason: str, settings: Collection[str]) -> str:
    name = reason.partition(":")[0]
    own = [path for path in settings if _touches(path, ABOUT.get(name, ()))]
    return f"{name}: changed by you ({', '.join(own)})." if own else reason


def _touches(path: str, explained: Sequence[str]) -> bool:
    """Whether a setting is one of these, a part of one, or has one as its part."""
    return any(f"{path}.".startswith(f"{one}.") or f"{one}.".startswith(f"{path}.") for one in explained)
