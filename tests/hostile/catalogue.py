"""All attacks, in the order of their files."""

from tests.hostile import corpora, links, manifests, pickles, settings, states, tensors, tokenizer_files
from tests.hostile.attack import ATTACKS, Attack

KINDS = (pickles, links, manifests, settings, states, tensors, tokenizer_files, corpora)  # as the page lists them


def list_attacks() -> list[Attack]:
    """Every one that is enlisted."""
    return list(ATTACKS)
