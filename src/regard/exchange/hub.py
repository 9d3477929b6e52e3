"""Models on the Hugging Face Hub: `hf://owner/name` as the target of an export and as the source of an import.

An export uploads the Hugging Face folder (weights in safetensors, tokenizer, model card, parity.json) and the run file.
An import downloads a revision to a temporary folder: safetensors, JSON and text files only, never pickles or code.
`huggingface_hub` sends the token that `hf auth login` stored. The variable HF_ENDPOINT chooses another server.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.files import AnyPath
from regard.base.progress import begin
from regard.exchange.export import ExportOptions, ExportReport, export_model
from regard.store.model_path import RUN

PREFIX = "hf://"
_ADDRESS = re.compile(r"hf://([\w.-]+/[\w.-]+?)/?(?:@([\w./-]+))?")
DOWNLOADED = ("*.safetensors", "*.safetensors.index.json", "*.json", "*.txt", "*.jinja", "*.model", "README.md")


@dataclass(frozen=True)
class HubAddress:
    """A repository of the Hub."""

    repository: str
    """Owner and name."""
    revision: str | None = None
    """Branch, tag or commit; None: the main branch."""


def is_hub_address(text: object) -> bool:
    """Return whether a text is meant as an address of the Hub."""
    return isinstance(text, str) and text.startswith(PREFIX)


def parse_address(text: str) -> HubAddress:
    """Parse an address.

    Raises:
        RegardError: The address has another form.

    >>> parse_address("hf://anna/en-de@v1")
    HubAddress(repository='anna/en-de', revision='v1')
    """
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise RegardError("This is not an address of the Hub.", location=text, hint="Write hf://OWNER/NAME.")
    return HubAddress(match[1], match[2])


def publish_model(model: AnyPath, address: str, options: ExportOptions | None = None) -> ExportReport:
    """Export a model to the Hub. A new repository is private.

    Args:
        model: A model folder, or a run folder (its best model is exported).
        address: The repository, "hf://owner/name".
        options: Options of the Hugging Face export.

    Raises:
        RegardError: No architecture of `transformers` can represent the model, or the Hub refuses the upload.
    """
    target = parse_address(address)
    if target.revision is not None:
        raise RegardError("An export goes to the main branch.", location=address, hint="Leave out the revision.")
    hub = _import_hub()
    with tempfile.TemporaryDirectory() as name:
        folder, report = export_model(model, "huggingface", Path(name) / "model", options)
        notes = report.notes
        if (run := _find_run_file(Path(model))) is not None:
            shutil.copy(run, folder / RUN)
            notes = (*notes, f"{RUN} is included: it names the files of your corpus.")
        begin("uploading to the Hub")
        with _explain_errors(hub, address):
            api = hub.HfApi(endpoint=_find_endpoint())
            api.create_repo(target.repository, private=True, exist_ok=True)
            commit = api.upload_folder(
                repo_id=target.repository, folder_path=folder, commit_message="Export from Regard"
            )
            is_private = api.model_info(target.repository).private
    visibility = "private: its settings on the Hub can make it public" if is_private else "public"
    return replace(report, summary=f"{report.summary}; {visibility}; commit {commit.oid[:8]}", notes=notes)


@contextmanager
def download_model(address: str) -> Iterator[Path]:
    """Download a model of the Hub to a temporary folder, which is deleted at the end of the block.

    Raises:
        RegardError: The repository or revision does not exist, or is not accessible.
    """
    source, hub = parse_address(address), _import_hub()
    begin("downloading from the Hub")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / source.repository.rpartition("/")[2]
        with _explain_errors(hub, address):
            hub.snapshot_download(
                source.repository,
                revision=source.revision,
                local_dir=folder,
                allow_patterns=list(DOWNLOADED),
                endpoint=_find_endpoint(),
            )
        if not any(folder.glob("*.safetensors")):
            hint = "Regard never downloads pickles (.bin, .pt). Convert the model to safetensors first."
            raise RegardError("The repository has no weights in safetensors format.", location=address, hint=hint)
        yield folder


def _import_hub() -> Any:
    return import_optional("huggingface_hub", "hub", "An address hf://OWNER/NAME")


def _find_endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT") or None


def _find_run_file(model: Path) -> Path | None:
    """Return the run file of a model folder inside a run folder, or of the run folder."""
    return next((path for path in (model / RUN, model.absolute().parent / RUN) if path.is_file()), None)


@contextmanager
def _explain_errors(hub: Any, address: str) -> Iterator[None]:
    """Raise a `RegardError` for errors of the Hub and of the connection."""
    try:
        yield
    except hub.errors.RepositoryNotFoundError as error:
        hint = "Check the spelling. For a private or gated repository, run `hf auth login` first."
        raise RegardError("The Hub has no such repository, or hides it.", location=address, hint=hint) from error
    except hub.errors.RevisionNotFoundError as error:
        hint = "Check the part after @."
        raise RegardError("The repository has no such revision.", location=address, hint=hint) from error
    except Exception as error:  # of the Hub, of the connection, or of the HTTP library
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        hint = "Check the connection, and log in with `hf auth login`."
        raise RegardError(f"The Hub does not answer as expected: {reason}", location=address, hint=hint) from error
