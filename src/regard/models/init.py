"""Weight initialization. Every parameter is initialized here, so a model can be built on any device.

xavier            every matrix Xavier uniform, embeddings included (Glorot and Bengio 2010)
scaled_residual   normal (0.02); projections into the residual stream divided by sqrt(number of sublayers): GPT-2
small_embedding   xavier matrices, zero biases, embeddings with standard deviation 1/sqrt(width)
"""

import math
from collections.abc import Callable
from typing import assert_never

import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.config import parts
from regard.config.model import (
    AnyModelConfig,
    DecoderOnlyConfig,
    EncoderOnlyConfig,
    ScaledResidualConfig,
    SmallEmbeddingConfig,
    XavierConfig,
)
from regard.models.draw import MAX_SEQUENTIAL, Locate, WeightSource
from regard.models.heads import LMHead, PixelHead
from regard.models.inputs import PatchInput
from regard.nn.positions import RelativeBias
from regard.nn.scores import Additive, Concat, General

NORMAL_STD = 0.02  # GPT-2, BERT
Initializer = Callable[[Tensor], object]


def init_weights(
    model: nn.Module, settings: AnyModelConfig, seed: int | None = None, locate: Locate | None = None
) -> None:
    """Initialize every parameter of a model in place; the same seed gives the same weights on the same device.

    Args:
        model: The model.
        settings: Its configuration.
        seed: Random seed. Default: taken from torch's default generator.
        locate: Locates a rank's part of a sharded parameter (see `WeightSource`).
    """
    if seed is None:  # from torch's default generator, so that `torch.manual_seed` takes effect
        seed = int(torch.randint(2**62, (), device="cpu"))
    is_keyed = sum(parameter.numel() for parameter in model.parameters()) > MAX_SEQUENTIAL
    source = WeightSource(seed, next(model.parameters()).device, locate, is_keyed=is_keyed)

    def xavier_convolution(weight: Tensor) -> None:
        fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(weight)
        source.fill_uniform(weight, math.sqrt(3.0) * math.sqrt(2.0 / (fan_in + fan_out)))

    def xavier(weight: Tensor) -> None:
        fans = weight.size(-1) + weight.size(-2)  # of each matrix, if there is one per head
        source.fill_uniform(weight, math.sqrt(3.0) * math.sqrt(2.0 / fans))

    def normal(std: float) -> Initializer:
        return lambda weight: source.fill_normal(weight, std)

    def custom(module: nn.Module) -> None:
        if locate is not None:
            message = f"{type(module).__name__} initializes its own weights, so they cannot be sharded."
            raise RegardError(message, hint="Train with data parallelism, parallel.mode = 'ddp'.")
        module.init_weights(source.generator)  # type: ignore[operator]

    initial = settings.initial
    with torch.no_grad():
        match initial:
            case XavierConfig():
                _init_modules(model, matrix=xavier, embedding=xavier, convolution=xavier_convolution, custom=custom)
                _init_uniform_biases(model, source)
            case ScaledResidualConfig():
                residuals = {
                    stack: normal(NORMAL_STD / math.sqrt(count)) for stack, count in _count_sublayers(settings).items()
                }
                weights = normal(NORMAL_STD)
                _init_modules(
                    model, matrix=weights, embedding=weights, convolution=weights, custom=custom, residuals=residuals
                )
            case SmallEmbeddingConfig():
                embedding = normal(1 / math.sqrt(settings.d_model))
                _init_modules(model, matrix=xavier, embedding=embedding, convolution=xavier_convolution, custom=custom)
            case _:
                assert_never(initial)


def _init_modules(
    model: nn.Module,
    *,
    matrix: Initializer,
    embedding: Initializer,
    convolution: Initializer,
    custom: Callable[[nn.Module], None],
    residuals: dict[str, Initializer] | None = None,
) -> None:
    """Apply the initializers to matrices, embeddings and residual projections; norms are reset, biases are zero."""
    residuals = residuals or {}
    head_projections = {id(module.projection) for module in model.modules() if isinstance(module, LMHead)}
    for name, module in model.named_modules():
        match module:
            case nn.Linear() if id(module) in head_projections:  # an output matrix is initialized like an embedding
                embedding(module.weight)
            case nn.Linear():
                is_residual_output = name.endswith((".output", ".down"))
                (residuals.get(name.split(".")[0], matrix) if is_residual_output else matrix)(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            case nn.Conv1d() | nn.Conv2d():
                convolution(module.weight)
                assert module.bias is not None  # noqa: S101 - of the stem of images or audio clips
                nn.init.zeros_(module.bias)
            case nn.Embedding():
                embedding(module.weight)
            case nn.RNNBase():
                _init_cell(module, matrix)
            case nn.LayerNorm() | nn.RMSNorm():
                module.reset_parameters()
            case LMHead() if module.bias is not None:
                nn.init.zeros_(module.bias)
            case General() | Concat() | Additive():
                for parameter in module.parameters():
                    matrix(parameter)
            case RelativeBias():
                for bias_table in module.tables:
                    embedding(bias_table)
            case PatchInput() if module.class_token is not None:
                nn.init.zeros_(module.class_token)
            case PixelHead():
                nn.init.zeros_(module.mask_token)
            case _ if hasattr(module, "init_weights"):  # of `regard.register`
                custom(module)
            case _:
                pass


def _init_cell(cell: nn.RNNBase, matrix: Initializer) -> None:
    """Initialize the matrix of every gate separately; biases are zero, except 1 for an LSTM's forget gate.

    This bias keeps the forget gate open at the start of training (Jozefowicz et al. 2015).
    """
    for name, parameter in cell.named_parameters():
        if name.startswith("weight"):
            for gate in parameter.unflatten(0, (-1, cell.hidden_size)):  # (gates, hidden, inputs)
                matrix(gate)
        else:
            nn.init.zeros_(parameter)
            if isinstance(cell, nn.LSTM) and name.startswith("bias_ih"):
                nn.init.ones_(parameter[cell.hidden_size : 2 * cell.hidden_size])


def _init_uniform_biases(model: nn.Module, source: WeightSource) -> None:
    """Initialize biases uniformly in +-1/sqrt(fan-in): the default of `nn.Linear`."""
    for module in model.modules():
        if isinstance(module, nn.Linear | LMHead) and module.bias is not None:
            weight = module.projection.weight if isinstance(module, LMHead) else module.weight
            source.fill_uniform(module.bias, 1 / math.sqrt(weight.size(1)))


def _count_sublayers(settings: AnyModelConfig) -> dict[str, int]:
    """Count the sublayers of each stack of Transformer layers: 2 per layer, 3 with cross-attention."""
    stacks: dict[str, parts.StackConfig | parts.RecurrentConfig] = {}
    if not isinstance(settings, DecoderOnlyConfig):
        stacks["encoder"] = settings.encoder
    if not isinstance(settings, EncoderOnlyConfig):
        stacks["decoder"] = settings.decoder
    return {
        name: stack.layers * (3 if isinstance(stack, parts.CrossStackConfig) else 2)
        for name, stack in stacks.items()
        if isinstance(stack, parts.StackConfig) and stack.layers
    }
