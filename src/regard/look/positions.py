"""The position encodings of a model, as numbers that a page can draw."""

from typing import Literal

import torch

from regard.base.blobs import Blob, encode_f32, encode_i8
from regard.look.document import Positions
from regard.nn.positions import Alibi, Learned, Position, RelativeBias, Rotary, Sinusoidal, Sinusoidal2d

MAX_VECTORS = 128  # positions and dimensions of learned vectors that are stored
MAX_OFFSET = 64  # distances of a relative bias

Stack = Literal["encoder", "decoder"]


def describe_positions(position: Position, stack: Stack, length: int, blobs: dict[str, Blob]) -> Positions:
    """Return the position encoding of a stack that read `length` tokens; arrays go to `blobs`."""
    name = f"positions.{stack}"
    result = Positions(stack=stack, kind="none", length=length, max_positions=position.max_positions)
    match position:
        case Sinusoidal():
            result["kind"] = "sinusoidal"
            result["width"], result["base"], result["interleaved"] = position.width, position.base, position.interleaved
        case Rotary():
            result["kind"] = "rotary"
            result["key_dim"], result["base"] = position.key_dim, position.theta
            result["interleaved"] = position.interleaved
        case Alibi():
            result["kind"], result["slopes"] = "alibi", list(position.slopes)
        case Learned():
            with torch.inference_mode():
                zeros = torch.zeros(1, 1, 1, device=next(position.parameters()).device)
                positions = torch.arange(min(MAX_VECTORS, position.max_positions or 0), device=zeros.device)[None]
                vectors = position.on_input(zeros, positions)[0, :, :MAX_VECTORS]  # (positions, dimensions)
            blobs[name] = encode_i8(vectors.float().cpu().numpy())
            result["kind"], result["vectors"] = "learned", name
        case RelativeBias():
            offsets = torch.arange(-MAX_OFFSET, MAX_OFFSET + 1)
            curves = position.tables.detach().cpu()[:, position.bucket(offsets)]  # (tables, offsets, heads)
            blobs[name] = encode_f32(curves.permute(0, 2, 1).float().numpy())
            result["kind"], result["offsets"], result["curves"] = "relative", offsets.tolist(), name
    return result


def kind_of(position: Position) -> str:
    """Return the name of a position encoding, as settings write it."""
    kinds = {Sinusoidal: "sinusoidal", Rotary: "rotary", Alibi: "alibi", Learned: "learned", RelativeBias: "relative"}
    kinds[Sinusoidal2d] = "sinusoidal_2d"
    return next((kind for cls, kind in kinds.items() if isinstance(position, cls)), "none")
