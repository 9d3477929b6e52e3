"""Attribution: how much each input token contributed to the logit of each output.

Attention weights show which tokens were read, not their effect. Three methods measure the effect:

    occlusion              change of the logit if a token is replaced by a baseline: one pass per token
    gradient x input       slope of the logit at the text, times the distance from the baseline
    integrated gradients   the slope averaged on the straight path from the baseline (Sundararajan et al. 2017); its sum
                           is the difference of the logits, which measures how exact it is

The baseline of a token is the mean embedding of the vocabulary; special tokens stay unchanged.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from regard.base.blobs import Blob, encode_f32
from regard.base.errors import RegardError
from regard.look.document import Attribution, Token
from regard.models.cpu_decoder import eval_mode
from regard.models.inputs import EmbeddedInput
from regard.tasks.replay import ReplayInput

MAX_OUTPUTS = 32  # further outputs are left out
FIRST_STEPS, MAX_STEPS = 16, 1024  # points of integrated gradients: doubled until the sum of a row is exact enough
TOLERANCE = 0.01
BATCH_ROWS = 16


@dataclass(frozen=True)
class _Side:
    """The embedded tokens of one side, and their baseline."""

    name: str  # of the module that embeds them
    embedded: Tensor  # (1, T, D)
    baseline: Tensor  # (1, T, D)


def attribute(
    passage: ReplayInput,
    sequences: Sequence[Sequence[Token]],
    outputs: Sequence[int | None],
    blobs: dict[str, Blob],
) -> Attribution:
    """Return the attribution of a passage; its matrices go to `blobs`.

    Args:
        passage: The text and its outputs.
        sequences: The tokens that each side of the model reads: encoder, then decoder.
        outputs: The place of each output in its sequence.
        blobs: Where the matrices are stored.
    """
    passage = replace(passage, rows=passage.rows[:MAX_OUTPUTS], labels=passage.labels[:MAX_OUTPUTS])
    with eval_mode(passage.model, bypasses=("forward",)):
        sides = _embed(passage, sequences)
        logits, slopes = _gradients(passage, sides, torch.ones(1))
        baseline_logits, _ = _gradients(passage, sides, torch.zeros(1))
        difference = (logits - baseline_logits)[0]  # (n)
        integrated, error, steps = _integrate_exactly(passage, sides, difference)
        matrices = {
            "occlusion": _occlude(passage, sides, logits[0]),
            "gradient_x_input": slopes[0],
            "integrated_gradients": integrated,
        }
    methods = {}
    for name, matrix in matrices.items():
        blobs[f"attribution.{name}"] = encode_f32(matrix.float().cpu().numpy())
        methods[name] = f"attribution.{name}"
    return Attribution(
        outputs=list(outputs)[:MAX_OUTPUTS],
        source_columns=len(passage.source),
        target_columns=len(passage.target),
        methods=methods,  # type: ignore[typeddict-item]  # the keys are those of `matrices`
        logits=logits[0].tolist(),
        baseline_logits=baseline_logits[0].tolist(),
        completeness=error.tolist(),
        steps=steps,
    )


def _embed(passage: ReplayInput, sequences: Sequence[Sequence[Token]]) -> list[_Side]:
    """Return the input vectors of each side."""
    sides = []
    ids_per_side = [ids for ids in (passage.source, passage.target) if len(ids)]
    for name, ids, tokens in zip(passage.model.sides, ids_per_side, sequences, strict=True):
        module = passage.model.get_submodule(name)
        embedding = next((part for part in module.modules() if isinstance(part, nn.Embedding)), None)
        if passage.media is not None or embedding is None:
            raise RegardError("Attribution needs text input.", hint="Look into a model that reads tokens.")
        with torch.no_grad():
            embedded, _ = module(torch.tensor([list(ids)], device=passage.device))  # (1, T, D)
            every_token = torch.arange(embedding.num_embeddings, device=passage.device)[None]
            mean = module(every_token)[0].mean(dim=1, keepdim=True)  # (1, 1, D)
            is_text = torch.tensor([token["role"] == "text" for token in tokens[: len(ids)]], device=passage.device)
            baseline = torch.where(is_text[None, :, None], mean, embedded)
        sides.append(_Side(name, embedded, baseline))
    return sides


def _gradients(passage: ReplayInput, sides: Sequence[_Side], fractions: Tensor) -> tuple[Tensor, Tensor]:
    """Return logits (B, n), and gradients times (embedding - baseline) per token, (B, n, columns).

    Row b is at `fractions[b]` of the path from the baseline to the text.
    """
    way = fractions.to(sides[0].embedded)[:, None, None]
    inputs = [(side.baseline + way * (side.embedded - side.baseline)).requires_grad_() for side in sides]
    with torch.enable_grad(), _replaced(passage.model, sides, inputs):
        logits = passage.label_logits(copies=len(fractions))  # (B, n)
        rows = []
        for output in range(logits.size(1)):
            gradients = torch.autograd.grad(logits[:, output].sum(), inputs, retain_graph=True)
            parts = [
                (gradient * (side.embedded - side.baseline)).sum(dim=-1)
                for gradient, side in zip(gradients, sides, strict=True)
            ]
            rows.append(torch.cat(parts, dim=1))  # (B, columns)
    return logits.detach(), torch.stack(rows, dim=1)


def _integrate_exactly(passage: ReplayInput, sides: Sequence[_Side], difference: Tensor) -> tuple[Tensor, Tensor, int]:
    """Return integrated gradients (n, columns), how far their sums are from the differences (n), and the steps."""
    steps, open_rows = FIRST_STEPS, torch.arange(len(difference))
    integrated = torch.empty(0)
    while True:
        part = replace(
            passage,
            rows=[passage.rows[row] for row in open_rows.tolist()],
            labels=[passage.labels[row] for row in open_rows.tolist()],
        )
        result = _integrate(part, sides, steps)  # (open rows, columns)
        integrated = result.new_zeros(len(difference), result.size(1)) if steps == FIRST_STEPS else integrated
        integrated[open_rows] = result
        distance = (integrated.sum(dim=1) - difference).abs()
        error = distance / difference.abs().clamp(min=1.0)  # (n)
        open_rows = (error > TOLERANCE).nonzero()[:, 0].cpu()
        if steps >= MAX_STEPS or not len(open_rows):
            return integrated, error, steps
        steps *= 2


def _integrate(passage: ReplayInput, sides: Sequence[_Side], steps: int) -> Tensor:
    """Return integrated gradients (n, columns) by Gauss-Legendre quadrature."""
    points, point_weights = np.polynomial.legendre.leggauss(steps)  # on [-1, 1]
    fractions, weights = torch.tensor((points + 1) / 2).float(), torch.tensor(point_weights / 2).float()
    total: Tensor | None = None
    for start in range(0, steps, BATCH_ROWS):
        part = weights[start : start + BATCH_ROWS].to(passage.device)  # (B)
        _, slopes = _gradients(passage, sides, fractions[start : start + BATCH_ROWS])  # (B, n, columns)
        weighted = (part[:, None, None] * slopes).sum(dim=0)
        total = weighted if total is None else total + weighted
    assert total is not None  # noqa: S101 - steps > 0
    return total


def _occlude(passage: ReplayInput, sides: Sequence[_Side], logits: Tensor) -> Tensor:
    """Return the logit with each token minus the logit with its baseline, (n, columns)."""
    lengths = [side.embedded.size(1) for side in sides]
    changes = []
    with torch.no_grad():
        columns = torch.arange(sum(lengths), device=passage.device)
        for chunk in columns.split(BATCH_ROWS):
            inputs, start = [], 0
            for side, length in zip(sides, lengths, strict=True):
                is_occluded = chunk[:, None] == torch.arange(start, start + length, device=passage.device)  # (B, T)
                inputs.append(torch.where(is_occluded[:, :, None], side.baseline, side.embedded))  # (B, T, D)
                start += length
            with _replaced(passage.model, sides, inputs):
                changes.append(logits - passage.label_logits(copies=len(chunk)))  # (B, n)
    return torch.cat(changes).T


class _Vectors(nn.Module):
    """Replaces a model's input layer: returns these vectors (B, T, D) for any tokens."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = vectors

    def forward(self, _tokens: Tensor, valid: Tensor | None = None, _types: Tensor | None = None) -> EmbeddedInput:
        """Return the vectors and the padding mask."""
        return self.vectors, valid


@contextmanager
def _replaced(model: nn.Module, sides: Sequence[_Side], inputs: Sequence[Tensor]) -> Iterator[None]:
    """Make the model read these vectors instead of its tokens."""
    modules = {side.name: getattr(model, side.name) for side in sides}
    try:
        for side, vectors in zip(sides, inputs, strict=True):
            setattr(model, side.name, _Vectors(vectors))
        yield
    finally:
        for name, module in modules.items():
            setattr(model, name, module)
