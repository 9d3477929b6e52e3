"""All attacks, in the order of the docs page."""

from tests.hostile import (
    audio,
    corpora,
    images,
    imports,
    links,
    manifests,
    pickles,
    settings,
    states,
    tensors,
    tokenizer_files,
)
from tests.hostile.attack import ATTACKS, Attack

KINDS = (
    pickles,
    links,
    manifests,
    settings,
    states,
    tensors,
    tokenizer_files,
    corpora,
    images,
    audio,
    imports,
)  # in the order of the page


def list_attacks() -> list[Attack]:
    """List all registered attacks."""
    return list(ATTACKS)
