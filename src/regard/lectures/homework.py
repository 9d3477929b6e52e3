"""Compare a student's Transformer parts with Regard's, in values and gradients, and name the first tensor that differs.

A file may define any of the names of `PARTS`, as the lecture's code has them. Both parts get the same inputs and
weights. If the outputs differ, the student's intermediate tensors are searched for each of Regard's, in the layouts
that are in use. The first tensor that neither occurs nor is an input of one that occurs is where the parts diverge.
"""

import inspect
import math
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from regard.base.errors import RegardError
from regard.nn.attend import eager_attention, resolve_mask
from regard.nn.masks import causal
from regard.nn.norm import make_norm
from regard.nn.positions import Sinusoidal
from regard.nn.scores import ScoreFunction

ROWS, LENGTH, WIDTH, HEADS, HIDDEN, VOCABULARY = 2, 5, 12, 3, 20, 11
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Intermediate:
    """One of Regard's tensors, and the names of the tensors that it is computed from."""

    tensor: Tensor
    inputs: tuple[str, ...] = ()


Intermediates = dict[str, Intermediate]  # in the order of computation; the last one is the output


@dataclass(frozen=True)
class PartResult:
    """The result for one part: it equals Regard's if there is no difference."""

    part: str
    difference: str = ""


@dataclass(frozen=True)
class Trial:
    """One computation: the student's, on inputs and weights, and Regard's tensors for the same."""

    run: Callable[[], Tensor]
    leaves: Mapping[str, Tensor]  # whose gradients are compared
    stages: Intermediates
    mistakes: Mapping[str, Tensor] = field(default_factory=dict)  # what known mistakes compute, by their explanation


class _Watch(TorchDispatchMode):
    """Keeps every tensor that is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        parts = result if isinstance(result, (tuple, list)) else (result,)
        self.tensors += [part.detach().clone() for part in parts if isinstance(part, Tensor)]
        return result


def check_file(path: Path) -> Iterator[PartResult]:
    """Yield a finding for each part that the file defines."""
    module = _load(path)
    defined = [name for name in PARTS if hasattr(module, name)]
    if not defined:
        hint = f"Define at least one of {', '.join(PARTS)}."
        raise RegardError("The file defines none of the parts.", location=str(path), hint=hint)
    for name in defined:
        torch.manual_seed(1)
        try:
            yield PartResult(name, _compare(PARTS[name](getattr(module, name))))
        except RegardError as error:
            yield PartResult(name, str(error))
        except Exception as error:
            yield PartResult(name, f"raises {type(error).__name__}: {error}")


class _UncachedLoader(SourceFileLoader):
    """Loads a file without the bytecode cache.

    The cache compares modification time (in seconds) and size, so it may return an earlier version of the file.
    """

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"{path} is not cached.")  # then `get_code` neither reads nor writes bytecode


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise RegardError("There is no such file.", location=str(path), hint="Give the path of a Python file.")
    if path.suffix != ".py":
        raise RegardError("This is not a Python file.", location=str(path), hint="Its name must end in .py.")
    loader = _UncachedLoader("homework", str(path))
    module = ModuleType("homework")
    module.__file__ = str(path)
    try:
        loader.exec_module(module)
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f"{path}, line {lines[-1]}" if lines else str(path)
        message = f"The file raises {type(error).__name__}: {error}"
        raise RegardError(message, location=where, hint="Run it with `python` first.") from error
    return module


def _compare(trial: Trial) -> str:
    """Return what differs first, or nothing."""
    watch = _Watch()
    with watch:
        output = trial.run()
    *_, (last, stage) = trial.stages.items()
    expected = stage.tensor
    if not _is_equal(output.detach(), trial.run().detach()):
        return "two runs give different outputs: dropout or another random number is active in eval mode"
    if not _is_equal(output.detach(), expected.detach()):
        where = f"the first tensor that differs is: {_locate(trial.stages, watch.tensors)}"
        if output.shape != expected.shape:
            return f"{where}; the {last} has the shape {tuple(output.shape)}, not {tuple(expected.shape)}"
        difference = float((output - expected).detach().abs().nan_to_num(math.inf).max())
        wrong = trial.mistakes.items()  # a student's epsilon may be another one
        causes = [cause for cause, tensor in wrong if _is_equal(output.detach(), tensor.detach(), 1e-3)]
        return "; ".join([where, f"the {last} is off by up to {difference:.2g}", *causes])
    leaves = {name: leaf for name, leaf in trial.leaves.items() if leaf.requires_grad}
    if not leaves:
        return ""
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(3))
    ours = torch.autograd.grad((expected * weights).sum(), list(leaves.values()), retain_graph=True)
    if not output.requires_grad:
        return "the output has no gradient"
    theirs: Sequence[Tensor | None] = torch.autograd.grad(  # None where nothing leads to the output
        (output * weights).sum(), list(leaves.values()), allow_unused=True
    )
    for name, our, their in zip(leaves, ours, theirs, strict=True):
        if their is None or not _is_equal(our, their):
            return f"the gradient of {name} differs; the values are right"
    return ""


def _is_equal(first: Tensor, second: Tensor, tolerance: float = TOLERANCE) -> bool:
    return first.shape == second.shape and torch.allclose(first, second, atol=tolerance, rtol=tolerance)


def _locate(stages: Intermediates, computed: Sequence[Tensor]) -> str:
    """Return the name of the first tensor that the student did not compute."""
    confirmed: set[str] = set()
    for name, stage in reversed(stages.items()):
        if name in confirmed or _is_computed(stage.tensor.detach(), computed):
            confirmed |= {name, *stage.inputs}
    return next((name for name in stages if name not in confirmed), list(stages)[-1])


def _is_computed(stage: Tensor, computed: Sequence[Tensor]) -> bool:
    return any(_is_same(stage, tensor) for tensor in computed)


def _is_same(stage: Tensor, tensor: Tensor) -> bool:
    """Whether a tensor is this stage, in one of the layouts in which heads are stored."""
    if stage.numel() != tensor.numel() or stage.dtype != tensor.dtype:
        return False
    if stage.dim() != 4:
        return torch.allclose(stage.flatten(), tensor.flatten(), atol=TOLERANCE)
    layouts = [stage, stage.transpose(1, 2), stage.transpose(0, 1), stage.transpose(2, 3)]  # stage: (B, H, T, K or S)
    layouts += [layout.flatten(0, 1) for layout in layouts]  # (B H, T, K or S)
    return any(_is_equal(layout, tensor) for layout in layouts)


# The parts. Each function makes a trial from what the student defined.


def _draw(*shape: int) -> Tensor:
    return torch.randn(shape).requires_grad_()


def _attend(query: Tensor, key: Tensor, value: Tensor) -> Intermediates:
    """Return the stages of Regard's causal attention in the heads (B, H, T, K)."""
    score = ScoreFunction(1 / math.sqrt(query.size(-1)))
    index = torch.arange(query.size(2))[None]
    mask = resolve_mask(causal(), index, index, is_square=True)
    output, weights = eager_attention(query, key, value, mask, score, dropout=0.0)
    return {
        "scores q.k / sqrt(d_k)": Intermediate(score.scores(query, key)),  # (B, H, T, S)
        "attention weights": Intermediate(weights, ("scores q.k / sqrt(d_k)",)),  # (B, H, T, S)
        "weighted sum of the values": Intermediate(output, ("attention weights",)),  # (B, H, T, K)
    }


def _make_mask() -> Tensor:
    return torch.ones(1, LENGTH, LENGTH, dtype=torch.bool).tril()


def _make_module(part: Callable[..., nn.Module], *sizes: int) -> nn.Module:
    """Return the student's module in eval mode; a dropout argument, if there is one, is 0.5."""
    names = list(inspect.signature(part).parameters)
    options = {"dropout": 0.5} if "dropout" in names[: len(sizes) + 1] else {}
    return part(*sizes, **options).eval()


def _find_linears(module: nn.Module, count: int) -> list[tuple[Tensor, Tensor | None]]:
    """Return weight and bias of linear layers, in the order of their names q, k, v, o, else of their definition."""
    linears = {name: part for name, part in module.named_modules() if isinstance(part, nn.Linear)}
    letters = {name: re.match(r"(?:w_?|fc_?|linear_?)?([qkvo])", name.rpartition(".")[2].lower()) for name in linears}
    if count == 4 and {match[1] for match in letters.values() if match} == set("qkvo"):
        linears = dict(sorted(linears.items(), key=lambda item: "qkvo".index((letters[item[0]] or "o")[1])))
    parts: list[tuple[Tensor, Tensor | None]] = []
    for linear in sorted(linears.values(), key=lambda linear: linear.out_features != 3 * WIDTH):
        pieces = 3 if count == 4 and linear.out_features == 3 * WIDTH else 1  # queries, keys and values in one layer
        bias: Tensor | None = linear.bias  # None for bias=False, which torch's annotation does not say
        biases = (None,) * pieces if bias is None else bias.chunk(pieces)
        parts += zip(linear.weight.chunk(pieces), biases, strict=True)
    if len(parts) != count:
        raise RegardError(f"has {len(parts)} linear maps instead of {count} `nn.Linear`")
    return parts


def _list_leaves(module: nn.Module, **inputs: Tensor) -> dict[str, Tensor]:
    return {**inputs, **dict(module.named_parameters())}


def _try_mask(part: Callable[[int], Tensor]) -> Trial:
    mask = _make_mask().float()
    mistakes = {
        "your mask hides what Regard's shows": 1 - mask,
        "your mask also hides each token from itself": mask.tril(-1),
    }
    return Trial(lambda: part(LENGTH).float(), {}, {"mask": Intermediate(mask)}, mistakes)


def _try_attention(part: Callable[..., Any]) -> Trial:
    heads = {name: _draw(ROWS, HEADS, LENGTH, WIDTH // HEADS) for name in ("query", "key", "value")}

    def run() -> Tensor:
        result = part(*heads.values(), mask=_make_mask()[:, None])  # (1, 1, T, T)
        output: Tensor = result[0] if isinstance(result, tuple) else result
        return output

    stages = _attend(*heads.values())
    scores = stages["scores q.k / sqrt(d_k)"].tensor
    hidden = scores.masked_fill(~_make_mask(), -1e9)
    mistakes = {
        "your softmax runs over the queries": hidden.softmax(dim=-2),
        "your mask is not used": scores.softmax(dim=-1),
        "your mask hides what Regard's shows": scores.masked_fill(_make_mask(), -1e9).softmax(dim=-1),
        "your mask comes after the softmax": scores.softmax(dim=-1) * _make_mask(),
        "your scores are not divided by sqrt(d_k)": (hidden * math.sqrt(WIDTH // HEADS)).softmax(dim=-1),
    }
    mistakes = {name: weights @ heads["value"] for name, weights in mistakes.items()}
    return Trial(run, heads, stages, mistakes)


def _try_multi_head(part: Callable[..., nn.Module]) -> Trial:
    module, x = _make_module(part, HEADS, WIDTH), _draw(ROWS, LENGTH, WIDTH)
    *projections, last = _find_linears(module, 4)
    heads = {
        f"{name} heads": Intermediate(F.linear(x, *pair).unflatten(-1, (HEADS, -1)).transpose(1, 2))  # (B, H, T, K)
        for name, pair in zip(("query", "key", "value"), projections, strict=True)
    }
    stages = heads | _attend(*(stage.tensor for stage in heads.values()))
    scores, weights, attended = list(stages)[3:]
    joined = stages[attended].tensor.transpose(1, 2).flatten(-2)  # (B, T, D)
    stages[scores] = Intermediate(stages[scores].tensor, ("query heads", "key heads"))
    stages[attended] = Intermediate(stages[attended].tensor, (weights, "value heads"))
    stages |= {
        "joined heads": Intermediate(joined, (attended,)),
        "output": Intermediate(F.linear(joined, *last), ("joined heads",)),
    }
    return Trial(lambda: module(x, x, x, _make_mask()), _list_leaves(module, x=x), stages)


def _try_feed_forward(part: Callable[..., nn.Module]) -> Trial:
    module, x = _make_module(part, WIDTH, HIDDEN), _draw(ROWS, LENGTH, WIDTH)
    first, second = _find_linears(module, 2)
    up = F.linear(x, *first)  # (B, T, hidden)
    stages = {
        "first linear map": Intermediate(up),
        "ReLU": Intermediate(up.relu(), ("first linear map",)),
        "output": Intermediate(F.linear(up.relu(), *second), ("ReLU",)),
    }
    return Trial(lambda: module(x), _list_leaves(module, x=x), stages)


def _try_norm(part: Callable[..., nn.Module]) -> Trial:
    module, x = _make_module(part, WIDTH), _draw(ROWS, LENGTH, WIDTH)
    norm = make_norm("layer", WIDTH, 1e-5, bias=True)
    parameters = dict(module.named_parameters())
    if sorted(tuple(parameter.shape) for parameter in parameters.values()) != [(WIDTH,)] * 2:
        raise RegardError(f"needs two parameters of size {WIDTH}: a scale and a shift")
    scale, shift = sorted(parameters.values(), key=lambda parameter: -float(parameter.detach().mean()))
    with torch.no_grad():  # the scale starts at 1, the shift at 0
        for parameter in (scale, shift):
            parameter.copy_(torch.randn(WIDTH))
    centered = x - x.mean(dim=-1, keepdim=True)
    normal = F.layer_norm(x, (WIDTH,), eps=1e-5)
    output = torch.func.functional_call(norm, {"weight": scale, "bias": shift}, (x,))
    stages = {
        "x - mean": Intermediate(centered),
        "(x - mean) / deviation": Intermediate(normal, ("x - mean",)),
        "output": Intermediate(output, ("(x - mean) / deviation",)),
    }
    unbiased = "torch's `std` and `var` divide by N - 1, nn.LayerNorm divides by N: set unbiased=False"
    mistakes = {unbiased: scale * centered / x.std(dim=-1, keepdim=True) + shift}
    return Trial(lambda: module(x), _list_leaves(module, x=x), stages, mistakes)


def _try_positions(part: Callable[..., nn.Module]) -> Trial:
    module, x = _make_module(part, WIDTH), _draw(ROWS, LENGTH, WIDTH)
    encoding = Sinusoidal(WIDTH, 10000.0, interleaved=True).encode(torch.arange(LENGTH)[None])  # (1, T, D)
    stages = {"position encoding": Intermediate(encoding), "output": Intermediate(x + encoding, ("position encoding",))}
    return Trial(lambda: module(x), {"x": x}, stages)


def _try_embeddings(part: Callable[..., nn.Module]) -> Trial:
    module, tokens = _make_module(part, WIDTH, VOCABULARY), torch.randint(VOCABULARY, (ROWS, LENGTH))
    matrix = next((parameter for parameter in module.parameters() if parameter.shape == (VOCABULARY, WIDTH)), None)
    if matrix is None:
        raise RegardError(f"needs one matrix of {VOCABULARY} x {WIDTH} parameters")
    rows = F.embedding(tokens, matrix)  # (B, T, D)
    stages = {
        "rows of the matrix": Intermediate(rows),
        "output": Intermediate(rows * math.sqrt(WIDTH), ("rows of the matrix",)),
    }
    return Trial(lambda: module(tokens), _list_leaves(module), stages)


def _try_sublayer(part: Callable[..., nn.Module]) -> Trial:
    module, x, sublayer = _make_module(part, WIDTH), _draw(ROWS, LENGTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    normal = F.layer_norm(x, (WIDTH,), eps=1e-5)
    stages = {
        "norm(x)": Intermediate(normal),
        "sublayer(norm(x))": Intermediate(sublayer(normal), ("norm(x)",)),
        "x + sublayer(norm(x))": Intermediate(x + sublayer(normal), ("sublayer(norm(x))",)),
    }
    return Trial(lambda: module(x, sublayer), {"x": x}, stages)


PARTS: Mapping[str, Callable[[Any], Trial]] = {
    "subsequent_mask": _try_mask,
    "attention": _try_attention,
    "MultiHeadedAttention": _try_multi_head,
    "PositionwiseFeedForward": _try_feed_forward,
    "LayerNorm": _try_norm,
    "PositionalEncoding": _try_positions,
    "Embeddings": _try_embeddings,
    "SublayerConnection": _try_sublayer,
}
