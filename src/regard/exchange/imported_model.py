"""A model that was read from files of another program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from regard.base.formatting import CompactRepr
from regard.config.model import AnyModelConfig
from regard.exchange.provenance import Provenance
from regard.text.tokenizer_pair import TokenizerPair


@dataclass(frozen=True, repr=False)
class ImportedModel(CompactRepr):
    """Settings, tokenizers and weights as Regard has them."""

    settings: AnyModelConfig
    tokenizers: TokenizerPair
    weights: Mapping[str, Tensor] = field(repr=False)
    origin: Provenance
    card: str = field(repr=False)
    embedding: Mapping[str, Any] | None = None
    """How to pool hidden states (`regard.tasks.embedding`), if the files say so."""
    chat_template: str | None = field(default=None, repr=False)
