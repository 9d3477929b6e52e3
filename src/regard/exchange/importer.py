"""Import of a model from files of another program into a model folder of Regard."""

import json
from pathlib import Path

from torch import Tensor

from regard.base.arguments import as_path
from regard.base.errors import DamagedError, RegardError
from regard.base.files import AnyPath, backup_path
from regard.base.progress import begin
from regard.exchange.gguf.read import read_gguf
from regard.exchange.hub import download_model, is_hub_address
from regard.exchange.huggingface.read import read_folder
from regard.exchange.imported_model import ImportedModel
from regard.exchange.provenance import ORIGIN_FILE
from regard.store.model_folder import write_model
from regard.tasks.embedding import EMBEDDING_FILE
from regard.text.chat_template import CHAT_TEMPLATE_FILE, check_chat_template

GGUF_SUFFIX = ".gguf"


def import_model(source: AnyPath, out: AnyPath, *, replace: bool = False) -> ImportedModel:
    """Read a Hugging Face folder or a GGUF file and write it as a model folder of Regard.

    Args:
        source: A folder with config.json, safetensors and tokenizer.json, a .gguf file with a Llama model, or an
            address "hf://owner/name" of the Hugging Face Hub.
        out: The model folder to create.
        replace: Replace an older folder.

    Returns:
        The imported model.

    Raises:
        RegardError: The model is not supported, or a file is damaged.
    """
    folder = as_path("out", out)
    if folder.exists() and not replace:
        hint = "Choose another name (--out), or add --replace."
        raise RegardError("The folder already exists.", location=str(folder), hint=hint)
    if is_hub_address(source):
        with download_model(str(source)) as path:
            return _convert(path, folder, replace=replace)
    return _convert(as_path("source", source), folder, replace=replace)


def _convert(path: Path, folder: Path, *, replace: bool) -> ImportedModel:
    """Read a model and write it as a model folder."""
    begin("reading the weights")
    model = _read(path)
    advance = begin("writing the model", len(model.weights))

    def fetch(tensor: Tensor) -> Tensor:
        advance(1)
        return tensor

    files = {ORIGIN_FILE: model.origin.to_bytes()}
    if model.embedding is not None:
        files[EMBEDDING_FILE] = (json.dumps({"format": 1, **model.embedding}) + "\n").encode()
    if model.chat_template is not None:
        check_chat_template(model.chat_template, location=str(path))
        files[CHAT_TEMPLATE_FILE] = model.chat_template.encode()
    card = model.card or f"# {path.name}\n\nImported from {model.origin.kind} ({model.origin.architecture}).\n"
    write_model(
        folder,
        model.settings,
        model.tokenizers,
        model.weights,
        card,
        replace=replace,
        backup=backup_path(folder),
        files=files,
        fetch=fetch,
    )
    return model


def _read(path: Path) -> ImportedModel:
    try:
        if path.is_dir():
            return read_folder(path)
        if path.suffix == GGUF_SUFFIX:
            return read_gguf(path)
        message = (
            "There is no such file or folder." if not path.exists() else "This is neither a folder nor a .gguf file."
        )
    except (OSError, ValueError, RuntimeError, MemoryError) as error:  # whatever an untrusted file causes
        location = str(getattr(error, "filename", None) or path)
        message = f"The model cannot be read: {str(error)[:200] or type(error).__name__}."
        raise DamagedError(message, location=location, hint="Check that its files are readable and intact.") from error
    raise RegardError(message, location=str(path), hint="Give a Hugging Face folder or a GGUF file.")
