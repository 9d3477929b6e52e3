"""The export target `web`: a static folder that runs a model in the browser, without a server.

index.html, page.js, style.css   the page
worker.js                        tokenizer, search and model (a web worker)
look.js, look.css                story and heads of a translation, as `regard look` shows them
service.js                       caches the files for offline use
pipeline.json, *.onnx, *.json    the model, as the target `onnx` writes it
runtime/                         onnxruntime-web, copied from an installed package

Any static host works. The export downloads nothing, and the page loads no files from other hosts.
"""

import hashlib
import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.exchange.export import ExportOptions, ExportReport
from regard.exchange.onnx.write import write_pipeline
from regard.store.model_folder import read_model
from regard.text.tokenizer import Tokenizer

PAGE_FILES = ("index.html", "page.js", "style.css", "worker.js")
LOOK_FILES = ("look.css", "look.js")  # of a translation model, whose graphs return attention weights
SERVICE = "service.js"
RUNTIME_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
TASKS = ("translation", "causal_lm", "text_classification")
_MODELS = ("BPE", "Unigram", "WordLevel")
_NORMALIZERS = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Prepend", "Replace")


def export(model: Path, folder: Path, options: ExportOptions) -> ExportReport:
    """Write a page that runs a translation model, a language model or a classifier."""
    runtime = find_runtime(options.runtime)
    stored = read_model(model)
    if stored.settings.task not in TASKS:
        raise RegardError(
            f"The web page does not support the task '{stored.settings.task}'.",
            location=str(model),
            hint=f"Use `--to onnx` and your own page. Supported tasks: {', '.join(TASKS)}.",
        )
    for tokenizer in {stored.tokenizers.source, stored.tokenizers.target}:
        check_tokenizer(tokenizer, location=str(model))
    dtype = options.dtype or "int8"
    parity = write_pipeline(stored, folder, dtype, attention=True)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    static = files("regard.exchange.web") / "static"
    is_translator = stored.settings.task == "translation"
    for name in (*PAGE_FILES, *LOOK_FILES) if is_translator else PAGE_FILES:
        (folder / name).write_bytes((static / name).read_bytes())
    (folder / "runtime").mkdir()
    for name in RUNTIME_FILES:
        shutil.copyfile(runtime / name, folder / "runtime" / name)
    write_service_worker(folder, (static / SERVICE).read_text(encoding="utf-8"))
    notes = (
        *parity.describe(),
        f"Try it: python -m http.server --directory {folder.name.removesuffix('.tmp')}",
        "Put the folder on any static host; offline use needs https (or localhost).",
    )
    return ExportReport(f"page with {size / 1e6:.1f} MB of model ({dtype})", notes)


def find_runtime(folder: Path | None) -> Path:
    """Return the folder with the files of onnxruntime-web.

    Args:
        folder: The npm package or its `dist`. Default: `node_modules/onnxruntime-web` here or in a parent folder.
    """
    here = Path.cwd()
    candidates = [folder] if folder else [path / "node_modules/onnxruntime-web" for path in (here, *here.parents)]
    for candidate in candidates:
        for path in (candidate, candidate / "dist"):
            if all((path / name).is_file() for name in RUNTIME_FILES):
                return path
    raise RegardError(
        "onnxruntime-web was not found: it runs the model in the browser.",
        location=str(folder or here),
        hint="npm install onnxruntime-web, then pass --runtime node_modules/onnxruntime-web.",
    )


def write_service_worker(folder: Path, script: str) -> None:
    """Write the service worker with the list of all files and a version that changes with their content."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    names = ["./", *(path.relative_to(folder).as_posix() for path in paths)]
    header = f"const VERSION={json.dumps(digest.hexdigest()[:16])},FILES={json.dumps(names)};\n"
    (folder / SERVICE).write_text(header + script, encoding="utf-8")


def check_tokenizer(tokenizer: Tokenizer, *, location: str) -> None:
    """Raise an error if the page does not implement the tokenizer; it implements all kinds that Regard learns."""
    document: dict[str, Any] = json.loads(tokenizer.content)
    pre_tokenizer, normalizer = document["pre_tokenizer"] or {}, document["normalizer"] or {}
    is_split = pre_tokenizer.get("type") == "Split" and len(pre_tokenizer["pattern"].get("String", "")) == 1
    is_byte_level = pre_tokenizer.get("type") == "ByteLevel" and not pre_tokenizer.get("add_prefix_space")
    is_known = (
        document["model"]["type"] in _MODELS
        and (is_split or (is_byte_level and pre_tokenizer.get("use_regex", True)))
        and all(step["type"] in _NORMALIZERS for step in normalizer.get("normalizers", ()))
    )
    if not is_known:
        raise RegardError(
            "The page does not implement this tokenizer.",
            location=location,
            hint="Use `--to onnx`, or train with a tokenizer that Regard learns.",
        )
