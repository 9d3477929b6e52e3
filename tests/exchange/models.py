"""Small random models for the parity tests: settings helpers, and weights of which none is zero or one."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.config.codec import MODEL_FILES
from regard.config.model import AnyModelConfig
from regard.exchange.mapping import to_regard
from regard.exchange.parity_runners import Tokens, TorchRunner
from regard.exchange.parity_samples import Sample
from regard.exchange.weight_map import WeightMap
from regard.models.build import AnyModel, build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.heads import ClassHead
from regard.models.inputs import TokenInput
from regard.nn.positions import Sinusoidal
from regard.store.model_folder import StoredModel

WIDTH, HEADS, HIDDEN, VOCABULARY, PAD, POSITIONS = 16, 4, 24, 37, 1, 40
TOLERANCE = 2e-5
NO_BIAS = {"query": False, "key": False, "value": False, "output": False}

Settings = dict[str, Any]


def make_stack(norm_order: str, **changes: Any) -> Settings:
    """Make the settings of a stack of two layers, pre- or post-norm."""
    defaults = {
        "layers": 2,
        "norm_order": norm_order,
        "final_norm": norm_order == "pre",
        "position": {"kind": "none"},
        "attention": {"heads": HEADS},
        "feedforward": {"kind": "plain", "d_ff": HIDDEN},
    }
    return defaults | changes


def parse_settings(settings: Settings) -> AnyModelConfig:
    """Parse settings."""
    return MODEL_FILES.parse({"d_model": WIDTH, **settings})


def build_model(settings: Settings) -> AnyModel:
    """Build our model in eval mode."""
    return build(parse_settings(settings), seed=0).eval()


def make_hugging_face_model(architecture: str, name: str, settings: Settings, **arguments: Any) -> Any:
    """Make a model of `transformers` from its class name and the class name of its configuration."""
    transformers = pytest.importorskip("transformers")
    settings_object = getattr(transformers, name)(**settings)
    return getattr(transformers, architecture)._from_config(settings_object, attn_implementation="eager", **arguments)


def write_positions(table: nn.Embedding, sinusoid: Settings) -> None:
    """Write our sinusoid into the last rows of their table and freeze it, so that `randomize_weights` skips it."""
    encoding = Sinusoidal(WIDTH, sinusoid["base"], sinusoid["layout"] == "interleaved")
    table.weight.requires_grad_(False).zero_()
    table.weight[-POSITIONS:] = encoding.encode(torch.arange(POSITIONS)[None])[0]


def randomize_weights(module: nn.Module, seed: int = 0) -> nn.Module:
    """Randomize all trainable weights, around 1 in norms: no bias is zero, and two swapped tensors are noticed."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.requires_grad:  # a sinusoid is a frozen parameter in Marian
                center = 1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0
                parameter.copy_(center + 0.2 * torch.randn(parameter.shape, generator=generator))
    return module.eval()


def make_batch(length: int, seed: int, rows: int = 3) -> tuple[Tensor, Tensor]:
    """Make right-padded tokens (B, T) and their padding mask."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(2, VOCABULARY, (rows, length), generator=generator)
    lengths = torch.tensor([length, length - 3, 2])[:rows]
    valid = torch.arange(length) < lengths[:, None]
    return tokens.where(valid, PAD), valid


def max_difference(theirs: Tensor, ours: Tensor, valid: Tensor) -> float:
    """Return the largest difference at valid positions; the values must not all be equal."""
    theirs, ours = theirs[valid], ours[valid]
    assert theirs.shape == ours.shape
    assert theirs.std() > 0.1
    return float((theirs - ours).detach().abs().max())


def max_gradient_difference(
    weight_map: WeightMap, theirs: nn.Module, ours: nn.Module, their_output: Tensor, our_output: Tensor, valid: Tensor
) -> float:
    """Return the largest difference between gradients, for one random loss over valid positions."""
    direction = torch.randn(our_output.shape, generator=torch.Generator().manual_seed(4)) / valid.sum()
    for output in (their_output, our_output):
        (output * direction)[valid].sum().backward()
    # Weight maps are linear, so they map gradients as well; the gradient of a tied tensor is the sum of its uses.
    expected = to_regard(weight_map, _collect_gradients(theirs))
    return max(float((gradient - expected[name]).abs().max()) for name, gradient in _collect_gradients(ours).items())


def _collect_gradients(module: nn.Module) -> dict[str, Tensor]:
    gradients = {name: parameter.grad for name, parameter in module.named_parameters() if parameter.grad is not None}
    assert len(gradients) == len(list(module.parameters()))
    return gradients


def compute_outputs(theirs: nn.Module, ours: AnyModel) -> tuple[Tensor, Tensor, Tensor]:
    """Return their output, ours, and the mask of valid positions."""
    tokens, valid = make_batch(20, seed=1)
    inputs = {"input_ids": tokens, "attention_mask": valid.long()}
    if isinstance(ours, EncoderDecoder):
        target, target_valid = make_batch(23, seed=2)
        theirs_logits = theirs(**inputs, decoder_input_ids=target, decoder_attention_mask=target_valid.long()).logits
        return theirs_logits, ours(tokens, target, valid), target_valid
    if isinstance(ours, DecoderOnly):
        return theirs(**inputs).logits, ours(tokens, valid), valid
    assert isinstance(ours.source, TokenInput)
    types = None if ours.source.types is None else make_batch(20, seed=3)[0] % ours.source.types.num_embeddings
    output = theirs(**inputs, token_type_ids=types)
    compared_positions = valid.any(dim=1) if isinstance(ours.head, ClassHead) else valid
    return output[0], ours(tokens, valid, types=types), compared_positions


class AlteredRunner(TorchRunner):
    """PyTorch that is wrong by a given difference."""

    def __init__(self, stored: StoredModel, difference: float = 0.0, replaced_token: int | None = None) -> None:
        super().__init__(stored)
        self.difference, self.replaced_token = difference, replaced_token

    def score(self, samples: Sequence[Sample]) -> list[list[float]]:
        return [[value + self.difference for value in row] for row in super().score(samples)]

    def beam(self, samples: Sequence[Sample], beam_size: int, *, stops_early: bool = False) -> Tokens | None:
        outputs = super().beam(samples, beam_size, stops_early=stops_early)
        if outputs is not None and self.replaced_token is not None:
            outputs[0][0], self.replaced_token = self.replaced_token, None  # of the first text only
        return outputs
