"""Reasons that stay true: where a person set something, the sentence about it says that, and not what was chosen."""

from collections.abc import Collection, Sequence

STACKS = ("model.encoder", "model.decoder")
EXPLAINED_SETTINGS = {  # the first words of a reason: the settings that it explains
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


def mark_overridden(reasons: Sequence[str], settings: Collection[str]) -> tuple[str, ...]:
    """The reasons for a run, of which these settings are somebody's own.

    >>> mark_overridden(["Dropout: 0.1, because.", "Looks: one."], ["validation.every"])
    ('Dropout: 0.1, because.', 'Looks: changed by you (validation.every).')
    """
    return tuple(_mark_reason(reason, settings) for reason in reasons)


def _mark_reason(reason: str, settings: Collection[str]) -> str:
    name = reason.partition(":")[0]
    overridden = [path for path in settings if _overlaps(path, EXPLAINED_SETTINGS.get(name, ()))]
    return f"{name}: changed by you ({', '.join(overridden)})." if overridden else reason


def _overlaps(path: str, explained: Sequence[str]) -> bool:
    """Whether a setting is one of these, a part of one, or has one as its part."""
    return any(f"{path}.".startswith(f"{setting}.") or f"{setting}.".startswith(f"{path}.") for setting in explained)
