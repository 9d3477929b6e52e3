"""The model folder: a model with its tokenizers. Image and audio classifiers have no tokenizer.

model.toml          the architecture
model.safetensors   the weights (above 5 GB: model-00001-of-00003.safetensors, ... and an index)
tokenizer.json      the tokenizer (or source.json and target.json)
README.md           the model card: data, sizes, scores
manifest.json       size and sha256 of every file
"""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.files import MANIFEST, backup_path, create_folder, recover, verify
from regard.base.formatting import quote_path
from regard.base.locks import lock_folder
from regard.config import codec
from regard.config.inputs import MelConfig, PatchesConfig
from regard.config.model import AnyModelConfig, EncoderOnlyConfig
from regard.models.build import AnyModel, build
from regard.store.model_path import BEST, MODEL, RUN, find_model
from regard.store.size_check import BYTES_PER_PARAMETER, check_fits_memory
from regard.store.vocabulary_check import check_vocabulary_sizes
from regard.store.weight_files import count_parameters, find_weights, load_weights, save_weights
from regard.store.weights import load_into
from regard.text.tokenizer_pair import TokenizerPair

CARD = "README.md"
_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class StoredModel:
    """A model read from a folder, in evaluation mode on the CPU."""

    settings: AnyModelConfig
    tokenizer_pair: TokenizerPair | None  # None: the model labels images or audio clips
    model: AnyModel
    path: Path

    @property
    def tokenizers(self) -> TokenizerPair:
        """The tokenizers.

        Raises:
            RegardError: If the model labels images or audio clips, which need no tokenizer.
        """
        if self.tokenizer_pair is None:
            media = "audio" if reads_audio(self.settings) else "images"
            message = f"This model reads {media} and has no tokenizer."
            hint = f"Label {media} with `regard predict {quote_path(self.path)} FILE`."
            raise RegardError(message, location=str(self.path), hint=hint)
        return self.tokenizer_pair


def reads_images(settings: AnyModelConfig) -> bool:
    """Return whether a model reads images; an image encoder has no tokenizer."""
    return isinstance(getattr(settings, "source", None), PatchesConfig)


def reads_audio(settings: AnyModelConfig) -> bool:
    """Return whether a model reads audio clips; an audio encoder has no tokenizer."""
    return isinstance(getattr(settings, "source", None), MelConfig)


def has_tokenizer(settings: AnyModelConfig) -> bool:
    """Return whether a model reads or writes text."""
    return not isinstance(settings, EncoderOnlyConfig) or not (reads_images(settings) or reads_audio(settings))


def write_model(
    path: Path,
    settings: AnyModelConfig,
    tokenizers: TokenizerPair | None,
    weights: Mapping[str, Tensor],
    card: str,
    *,
    replace: bool = False,
    backup: Path | None = None,
    files: Mapping[str, bytes] | None = None,
    fetch: Callable[[Tensor], Tensor] = lambda tensor: tensor,
) -> None:
    """Write a model folder atomically.

    Args:
        path: The folder to create.
        settings: The architecture.
        tokenizers: The tokenizers of source and target; None for a model that labels images or audio clips.
        weights: The parameters by name, as `get_weights` returns them.
        card: The text of the model card.
        replace: Replace an older folder.
        backup: Path of the old folder during the replacement (see `create_folder`).
        files: Additional files by name, such as the origin of an imported model.
        fetch: Called with each weight just before it is written (see `save_tensors`).

    Raises:
        RegardError: If the folder exists and `replace` is not set, or a vocabulary size does not match.
    """
    if tokenizers is not None:
        check_vocabulary_sizes(settings, tokenizers, location=str(path))
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    with create_folder(path, replace=replace, backup=backup, size=size) as folder:
        codec.MODEL_FILES.save(settings, folder / MODEL)
        save_weights(weights, folder, fetch=fetch)
        if tokenizers is not None:
            tokenizers.save(folder)
        (folder / CARD).write_text(card, encoding="utf-8")
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)


def read_model(path: Path) -> StoredModel:
    """Read a model folder (for a run folder: its best model), verified against its manifest.

    Raises:
        DamagedError: If a file does not match the manifest.
        RegardError: If the folder is not a model, does not fit into memory, or its files do not match each other.
    """
    path = find_model(path)
    weights = find_weights(path)
    # The settings determine how large the weights may be.
    verify(path, max_bytes=limits.DOCUMENT, size_only=[file.name for file in weights])
    settings = codec.MODEL_FILES.load(path / MODEL)
    tokenizers = TokenizerPair.load(path) if has_tokenizer(settings) else None
    if tokenizers is not None:
        check_vocabulary_sizes(settings, tokenizers, location=str(path))
    size = check_fits_memory(settings, location=str(path / MODEL))
    verify(path, max_bytes=2 * size + limits.DOCUMENT)
    _check_parameter_count(size // BYTES_PER_PARAMETER, count_parameters(path), weights[0])
    model = build(settings, initialize=False)
    load_into(model, load_weights(path), location=str(weights[0]))
    return StoredModel(settings, tokenizers, model.eval(), path)


def set_languages(path: Path, languages: Sequence[str]) -> Path:
    """Store a translator's source and target language in its model folder, and return the folder.

    Also updates the settings of a run, so a resumed run keeps them.

    Args:
        path: A model folder, or a run folder (its best model).
        languages: Two different codes, e.g. ("en", "de").

    Raises:
        RegardError: The codes are not two different languages, or the model does not translate from one language
            into another.
    """
    recover(path, backup_path(path))  # a kill while the folder was replaced
    path = find_model(path)
    run_file = path.parent / RUN if path.name == BEST and (path.parent / RUN).is_file() else None
    hint = "Pass the codes of the source and target language, e.g. en de."
    if wrong := [code for code in languages if not _LANGUAGE_CODE.fullmatch(code)]:
        raise RegardError(f"'{wrong[0]}' is not a language code.", hint=hint)
    if len(languages) != 2 or languages[0] == languages[1]:
        raise RegardError(f"Expected two different languages, got: {' '.join(languages)}.", hint=hint)
    verify(path)
    settings = codec.MODEL_FILES.load(path / MODEL)
    if settings.task != "translation":
        message = f"This model's task is '{settings.task}', not translation."
        raise RegardError(message, location=str(path), hint="Set languages only for a translator.")
    if tags := TokenizerPair.load(path).source.specials.languages:
        message = f"This model is multilingual; its language tags define its languages ({', '.join(tags)})."
        raise RegardError(message, location=str(path), hint="Choose the target language when you translate.")
    backup = backup_path(path) if run_file is None else None  # a run recovers NAME.old
    with (
        lock_folder(path if run_file is None else path.parent),
        create_folder(path, replace=True, backup=backup) as folder,
    ):
        shutil.copytree(path, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(MANIFEST, MODEL))
        codec.MODEL_FILES.save(settings.model_copy(update={"languages": tuple(languages)}), folder / MODEL)
        if run_file is not None:
            run = codec.RUN_FILES.load(run_file)
            codec.RUN_FILES.save(codec.RUN_FILES.change(run, {"model.languages": list(languages)}), run_file)
    return path


def _check_parameter_count(expected: int, stored: int, weights: Path) -> None:
    """Compare the counts of settings and weights before building the model, which may need a lot of memory."""
    if expected != stored:
        raise RegardError(
            f"The model has {expected:,} parameters, the file has {stored:,}.",
            location=str(weights),
            hint="Use the weights that match this model.toml.",
        )
