"""`regard generate` with a pixel model: sample images of a label, or complete images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.cli.options import is_given
from regard.cli.progress import show_progress
from regard.cli.text_input import load_as

if TYPE_CHECKING:
    from regard.decode.filters import Filters

TEXT_OPTIONS = (
    "prompt",
    "max_new_tokens",
    "search",
    "forbid",
    "draft",
    "as_json",
    "repetition_penalty",
    "no_repeat_ngram",
)
IMAGE_OPTIONS = ("label", "complete", "rows", "out")
SPELLED = {"prompt": "A prompt", "as_json": "--json"}


@dataclass(frozen=True)
class ImageRequest:
    """The options of `regard generate` for images."""

    out: Path | None
    label: str | None = None
    complete: Sequence[Path] = ()
    rows: int | None = None
    count: int = 1
    seed: int | None = None


def generates_images(folder: Path) -> bool:
    """Whether the model's tokens are pixels."""
    from regard.config import codec  # pydantic: only when needed
    from regard.store.model_path import find_model

    settings = codec.MODEL_FILES.load(find_model(folder) / "model.toml")
    return settings.family == "decoder_only" and settings.raster is not None


def check_kind(context: typer.Context, *, is_image: bool) -> None:
    """Raise an error for options that this kind of model does not support."""
    kinds = ("text", "images") if is_image else ("images", "text")
    for name in TEXT_OPTIONS if is_image else IMAGE_OPTIONS:
        if is_given(context, name):
            option = SPELLED.get(name, f"--{name.replace('_', '-')}")
            message = f"{option} is for models that generate {kinds[0]}, but this one generates {kinds[1]}."
            raise RegardError(message, hint="Leave it out.")


def generate_images(folder: Path, request: ImageRequest, filters: "Filters") -> None:
    """Sample images, or complete some, and write them as PNG files."""
    from regard.tasks.image_generation import ImageGenerator  # imports torch: only when needed
    from regard.tasks.inputs.image import save_image

    if request.out is None:
        raise RegardError("--out is missing.", hint="Give --out FOLDER.")
    if request.out.exists() and not request.out.is_dir():
        raise RegardError(
            "This is a file; images need a folder.", location=str(request.out), hint="Choose another name."
        )
    if request.rows is not None and not request.complete:
        raise RegardError("--rows needs --complete.", hint="Give an image to complete, or leave out --rows.")
    generator = load_as(folder, ImageGenerator)
    total = request.count * max(1, len(request.complete))
    with show_progress("sampling", total) as advance:
        if request.complete:
            files = [str(file) for file in request.complete for _ in range(request.count)]
            names = [f"{file.stem}-{number}" for file in request.complete for number in range(1, request.count + 1)]
            labels = None if request.label is None else [request.label] * len(files)
            images = generator.complete(
                files, labels, rows=request.rows, filters=filters, seed=request.seed, report=advance
            )
        else:
            names = [f"{request.label or 'image'}-{number}" for number in range(1, request.count + 1)]
            images = generator.generate(
                request.label, request.count, filters=filters, seed=request.seed, report=advance
            )
    request.out.mkdir(parents=True, exist_ok=True)
    for name, image in zip(_make_distinct(names), images, strict=True):
        save_image(image, request.out / f"{name.replace('/', '_')}.png")
    typer.echo(f"{pluralize(len(images), 'image')} in {request.out}")


def _make_distinct(names: Sequence[str]) -> list[str]:
    """Number duplicate names: files in different folders may share a name.

    >>> _make_distinct(["a-1", "b-1", "a-1"])
    ['a-1', 'b-1', 'a-1-2']
    """
    counts: dict[str, int] = {}
    results = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        results.append(name if counts[name] == 1 else f"{name}-{counts[name]}")
    return results
