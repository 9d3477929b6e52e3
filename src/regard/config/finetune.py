"""Fine-tuning settings: the model to start from, and the parameters to train.

[finetune]
parent = "my-model"
lora = {rank = 8, alpha = 16.0}
"""

from collections.abc import Iterator
from math import sqrt
from typing import Annotated, Literal

from pydantic import Field

from regard.base.errors import Fault
from regard.config.model import CheckedSettings
from regard.config.parts import Positive, Rate, SettingsModel, Size

Texts = Annotated[tuple[str, ...], Field(strict=False)]


class LoraConfig(SettingsModel):
    """Low-rank adapters (Hu et al. 2021): W x + scale B A x, where A and B are trained and W is frozen."""

    rank: Size = 8
    """Rows of A and columns of B."""
    alpha: Positive = 16.0
    """The scale is alpha / rank."""
    dropout: Rate = 0.0
    """Dropout on the input of A."""
    rslora: bool = False
    """Rank-stabilized LoRA (Kalajdzievski 2023): the scale is alpha / sqrt(rank), so that high ranks learn at the same
    speed."""
    modules: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = ("*.query", "*.key", "*.value", "*.output")
    """Name patterns of the linear layers that get an adapter, e.g. "decoder.layers.*.attention.query"; by default all
    attention projections."""

    @property
    def scale(self) -> float:
        """The factor on B A x."""
        return self.alpha / (sqrt(self.rank) if self.rslora else self.rank)


class FinetuneConfig(CheckedSettings):
    """Fine-tuning: start from a trained model. Without `layers` and `lora`, all of its parameters are trained."""

    parent: str
    """Model folder or run folder (its best model). The run copies what it needs, so you can delete the folder later."""
    parent_sha256: str = ""
    """sha256 of the parent's weights. The run fills it in at its start; if it is already set, the run compares it."""
    extra_layers: Size | None = None
    """Add this many new layers on top of each stack of the parent."""
    layers: Size | None = None
    """Train only this many last layers of each stack (extra layers included), the norm after them, and the head."""
    fresh_layers: bool = False
    """With `layers`: reinitialize these layers instead of keeping the parent's weights."""
    freeze_embeddings: bool = False
    """Freeze the embeddings, the learned positions, and an output matrix that is tied to the embeddings."""
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Learning rate of a layer relative to the layer above it: below 1, low layers change less (Howard and Ruder
    2018)."""
    lora: LoraConfig | None = None
    add_tokens: Texts = ()
    """Strings to add to the parent's vocabulary; each is then always one token. Their embedding and output rows start
    from the mean of the subwords they used to be split into."""

    chat_template: str = ""
    """Jinja chat template for the prompts of a language model; empty: prompts are used unchanged. The model folder
    keeps it for the server. Default: the parent's template."""

    def find_faults(self) -> Iterator[Fault]:
        """Yield inconsistencies between fields, each of which is valid alone."""
        if self.fresh_layers and self.layers is None:
            yield Fault("fresh_layers", "is true, but no layers are chosen.", "Set layers, e.g. to 2.")
        if self.lora is not None:
            for name in ("layers", "extra_layers", "freeze_embeddings"):
                if getattr(self, name):
                    message = "is set, but with LoRA the parent's weights are all frozen."
                    yield Fault(name, message, "Remove it; lora.modules chooses the layers that get adapters.")
        if self.add_tokens and (self.lora is not None or self.layers is not None or self.freeze_embeddings):
            message = "is set, but the embeddings are frozen, so the new tokens would not be trained."
            yield Fault("add_tokens", message, "Train all parameters, then fine-tune that model.")


class AdapterConfig(SettingsModel):
    """Adapter settings (`adapter.toml`), stored next to the adapter's weights."""

    format: Literal[1] = 1
    """Version of the file format."""
    parent: str
    """The model that the adapter was trained for."""
    parent_sha256: str
    """sha256 of that model's weights."""
    lora: LoraConfig
