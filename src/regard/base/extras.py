"""Optional dependencies, imported on first use. If one is missing, the error shows the install command."""

import importlib
import json
import shlex
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from regard.base.errors import RegardError

EXTRAS = {  # by extra: the modules that it installs, and what needs them
    "formats": (("fsspec", "polib", "pyarrow", "zstandard"), "URLs, gettext, Parquet, .zst"),
    "documents": (("markdown_it", "yaml"), "translating Markdown and YAML files"),
    "images": (("PIL",), "reading image files"),
    "audio": (("soundfile",), "reading .flac files"),
    "language": (("lingua",), "language detection in `regard check`"),
    "onnx": (("onnx", "onnxruntime", "onnxscript"), "`regard export --to onnx` and `--to web`"),
    "hub": (("huggingface_hub",), "`hf://` addresses of `regard export` and `regard import`"),
    "huggingface": (("transformers",), "verifying `regard export --to huggingface`"),
    "peft": (("peft", "transformers"), "verifying `regard export --to peft`"),
    "cluster": (("datatrove",), "corpus preparation on a cluster"),
    "ctranslate2": (("ctranslate2",), '`regard export --to ctranslate2`, `regard.load(..., engine="ctranslate2")`'),
    "serve": (
        ("fastapi", "httptools", "jinja2", "python_multipart", "prometheus_client", "starlette", "uvicorn"),
        "`regard serve`",
    ),
    "tensorboard": (("tensorboard",), "`regard train --track tensorboard`"),
    "wandb": (("wandb",), "`regard train --track wandb`"),
    "mlflow": (("mlflow",), "`regard train --track mlflow`"),
}


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """Import an optional dependency.

    Args:
        module: The module to import.
        extra: The extra of Regard that installs it.
        purpose: The feature that needs the module; the error message starts with it.

    Raises:
        RegardError: If the module is not installed.

    >>> import_optional("no_such_module", "formats", "Reading .xyz")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    regard.base.errors.RegardError: Reading .xyz needs the package 'no_such_module'.
      fix:   pip install ...[formats]...
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RegardError(f"{purpose} needs the package '{module}'.", hint=install_command(extra)) from error


def list_missing(extra: str) -> list[str]:
    """Return the modules of an extra that are not installed."""
    return [module for module in EXTRAS[extra][0] if find_spec(module) is None]


def install_command(extra: str) -> str:
    """Return the pip command that adds an extra to this installation: from a checkout, a file or an index."""
    checkout = Path(__file__).parents[3]
    if (checkout / "pyproject.toml").is_file() and (checkout / "src" / "regard").is_dir():
        return f"pip install -e {shlex.quote(f'{checkout}[{extra}]')}"
    try:
        installed = distribution("regard")
        record = json.loads(installed.read_text("direct_url.json") or "{}")  # PEP 610: what pip installed it from
    except (PackageNotFoundError, ValueError):
        return f"pip install {shlex.quote(f'regard[{extra}]')}"
    url = urlsplit(str(record.get("url", "")))
    if url.scheme != "file":
        return f"pip install {shlex.quote(f'regard[{extra}] @ {url.geturl()}' if url.scheme else f'regard[{extra}]')}"
    path = Path(unquote(url.path))
    if path.exists():
        return f"pip install {shlex.quote(f'{path}[{extra}]')}"
    requirements = (requirement.partition(";") for requirement in installed.requires or ())  # the file is gone
    names = [name.strip() for name, _, marker in requirements if f"extra == '{extra}'" in marker.replace('"', "'")]
    return f"pip install {shlex.join(names)}"
