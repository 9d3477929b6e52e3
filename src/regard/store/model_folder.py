"""A model as a folder: raw text in, raw text out, and nothing else is needed.

model.toml          what it is
model.safetensors   what it has learned
tokenizer.json      its vocabulary (or source.json and target.json)
README.md           its card: data, sizes, scores
manifest.json       size and sha256 of every file
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.files import MANIFEST, create_folder, verify
from regard.config import codec
from regard.config.model import AnyModel as Settings
from regard.config.model import EncoderDecoder, EncoderOnly, Tokens
from regard.models.build import AnyModel, build
from regard.store.size_check import check_fits_memory, count_parameters
from regard.store.weights import count_elements, load_into, load_tensors, save_tensors
from regard.text.tokenizer_pair import TokenizerPair

MODEL, WEIGHTS, CARD = "model.toml", "model.safetensors", "README.md"
RUN, BEST = "run.toml", "best"


@dataclass(frozen=True)
class StoredModel:
    """A model that was read: in evaluation mode, on the CPU."""

    settings: Settings
    tokenizers: TokenizerPair
    model: AnyModel
    path: Path


def write_model(
    path: Path,
    settings: Settings,
    tokenizers: TokenizerPair,
    weights: Mapping[str, Tensor],
    card: str,
    *,
    replace: bool = False,
) -> None:
    """Write a model folder, whole or not at all; `replace` puts it in the place of an older one."""
    check_vocabulary_sizes(settings, tokenizers, where=str(path))
    with create_folder(path, replace=replace) as folder:
        codec.MODEL_FILES.save(settings, folder / MODEL)
        save_tensors(weights, folder / WEIGHTS)
        tokenizers.save(folder)
        (folder / CARD).write_text(card, encoding="utf-8")


def read_model(path: Path) -> StoredModel:
    """The model of a folder (or of a run's folder: its best), verified against its manifest."""
    path = find_model(path)
    verify(path, max_bytes=limits.DOCUMENT, size_only=(WEIGHTS,))  # how large the weights may be, the settings tell
    settings = codec.MODEL_FILES.load(path / MODEL)
    tokenizers = TokenizerPair.load(path)
    check_vocabulary_sizes(settings, tokenizers, where=str(path))
    size = check_fits_memory(settings, where=str(path / MODEL))
    verify(path, max_bytes=2 * size + limits.DOCUMENT)
    _check_parameter_count(settings, path / WEIGHTS)
    model = build(settings, seed=0)
    load_into(model, load_tensors(path / WEIGHTS), where=str(path / WEIGHTS))
    return StoredModel(settings, tokenizers, model.eval(), path)


def find_model(path: Path) -> Path:
    """The model folder that is meant: the folder itself, or `best/` in the folder of a run."""
    if not path.is_dir():
        raise RegardError("There is no such folder.", where=str(path), fix="Train a model: `regard train --help`.")
    if (path / MODEL).is_file() or (path / MANIFEST).is_file():
        return path
    if not (path / RUN).is_file():
        raise RegardError("This is neither a model nor a run.", where=str(path), fix=f"A model's folder has {MODEL}.")
    if not (path / BEST).is_dir():
        fix = f"Go on with `regard train --resume {path}`: the first validation writes it."
        raise RegardError("This run has no model yet.", where=str(path), fix=fix)
    return path / BEST


def check_vocabulary_sizes(settings: Settings, tokenizers: TokenizerPair, *, where: str) -> None:
    """A model and vocabularies that do not know the same number of words are not a pair."""
    for side, expected, actual in _list_vocabulary_sizes(settings, tokenizers):
        if expected != actual:
            raise RegardError(
                f"The model reads {expected} words of the {side}, the vocabulary has {actual}.",
                where=where,
                fix="Use the vocabulary that the model was trained with.",
            )


def _check_parameter_count(settings: Settings, weights: Path) -> None:
    """Before a model is built, its file must have as many numbers as it: settings are soon written."""
    expected, stored = count_parameters(settings), count_elements(weights)
    if expected != stored:
        raise RegardError(
            f"The model has {expected:,} parameters, and the file {stored:,} numbers.",
            where=str(weights),
            fix="Is it another model's file?",
        )


def _list_vocabulary_sizes(settings: Settings, tokenizers: TokenizerPair) -> list[tuple[str, int, int]]:
    match settings:
        case EncoderDecoder():
            sizes = [("target", settings.target_tokens.vocabulary, tokenizers.target.size)]
            if isinstance(settings.source, Tokens):
                sizes.append(("source", settings.source.vocabulary, tokenizers.source.size))
            return sizes
        case EncoderOnly():
            if isinstance(settings.source, Tokens):
                return [("source", settings.source.vocabulary, tokenizers.source.size)]
            return []
    return [("text", settings.tokens.vocabulary, tokenizers.source.size)]
