"""`regard serve`: serve models over HTTP to LibreTranslate and OpenAI clients and to browsers."""

import os
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.cli.options import ENGINE_NAMES, Engine, StringList, file_option, option
from regard.store.model_path import find_model

EXAMPLES = """
regard serve my-model
regard serve en-de=runs/german my-book --port 8080
regard serve my-model --adapter law=runs/law --adapter news=runs/news
regard serve --new-key alice --keys keys.txt
regard serve my-model --host 0.0.0.0 --keys keys.txt
regard serve --config serve.toml --set limits.texts=16
"""
_address, _security, _work = (partial(option, panel=panel) for panel in ("Address", "Security", "Work"))


class LogFormat(StrEnum):
    """Log formats."""

    text = "text"
    json = "json"


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="Model folders; NAME=FOLDER sets a model's name."),
    ] = None,
    adapter: Annotated[
        StringList,
        _work(
            "LoRA adapter of one of the models (a run or adapter folder), served as a model of its own. Repeatable.",
            metavar="NAME=FOLDER",
        ),
    ] = None,
    host: Annotated[str | None, _address("Address to listen on.", metavar="ADDRESS", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, _address("Port.", min=0, max=65535, show_default="8000")] = None,
    keys: Annotated[
        Path | None, _security("File of key hashes; every request then needs a key.", metavar="FILE")
    ] = None,
    new_key: Annotated[
        str | None, _security("Create a key with this name, add it to --keys, print it and exit.", metavar="NAME")
    ] = None,
    open_route: Annotated[
        StringList, _security("Path that needs no key, e.g. /health. Repeatable.", metavar="PATH")
    ] = None,
    reload_key: Annotated[
        StringList, _security("Name of a key that may reload models. Repeatable.", metavar="NAME")
    ] = None,
    trusted_proxy: Annotated[
        StringList, _security("Proxy whose X-Forwarded-For header is trusted. Repeatable.", metavar="ADDRESS")
    ] = None,
    engine: Annotated[
        Engine | None,
        _work(
            "Engine that runs the models. auto: CTranslate2 for translation models if it is installed, else PyTorch. "
            "The export is made once, next to MODEL.",
            metavar=ENGINE_NAMES,
            show_default="auto",
        ),
    ] = None,
    threads: Annotated[int | None, _work("Number of PyTorch threads.", min=1)] = None,
    chat_template: Annotated[
        StringList, _work("Jinja chat template for /v1/chat/completions. Repeatable.", metavar="NAME=FILE")
    ] = None,
    log_format: Annotated[LogFormat | None, _work("Log format.", metavar="[text|json]", show_default="text")] = None,
    suggestions: Annotated[
        Path | None,
        _work(
            "SQLite database that stores suggested translations (/suggest and the page), for `regard tune`. "
            "Default: they are refused.",
            metavar="FILE",
        ),
    ] = None,
    config: Annotated[Path | None, file_option("TOML settings file.")] = None,
    changes: Annotated[
        StringList, option("Override a setting, e.g. limits.texts=16. Repeatable.", "--set", metavar="NAME=VALUE")
    ] = None,
) -> None:
    """Serve models over HTTP until Ctrl-C or SIGTERM.

    LibreTranslate and OpenAI clients work unchanged; /openapi.json describes all routes. The server listens on
    localhost only, unless --host and --keys are given.
    """
    for module in ("fastapi", "uvicorn", "httptools", "python_multipart", "prometheus_client"):
        import_optional(module, "serve", "`regard serve`")
    from regard.serve.settings import add_key, read_settings

    if new_key is not None:
        if keys is None:
            raise RegardError("--new-key needs --keys.", hint="Add --keys keys.txt.")
        typer.echo(add_key(keys, new_key))
        return
    if not (models or config or changes or any(name.startswith("REGARD_SERVE_MODELS") for name in os.environ)):
        raise RegardError("There is no model to serve.", hint="Give a model folder: `regard serve my-model`.")
    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "keys_file": None if keys is None else str(keys),
        "open_routes": open_route,
        "reload_keys": reload_key,
        "trusted_proxies": trusted_proxy,
        "engine": None if engine is None else engine.value,
        "threads": threads,
        "log_format": None if log_format is None else log_format.value,
        "suggestions.file": None if suggestions is None else str(suggestions),
        "models": _parse_models(models) if models else None,
        "adapters": _parse_folders(adapter) if adapter else None,
        "chat_templates": dict(map(_split_name, chat_template)) if chat_template else None,
    }
    changed_options = {name: value for name, value in options.items() if value is not None}
    settings = read_settings(config, os.environ, changes or [], changed_options)
    from regard.serve.server import run_server

    run_server(settings)


def _parse_models(texts: list[str]) -> dict[str, str]:
    folders = _parse_folders(texts)
    for folder in folders.values():
        find_model(Path(folder))
    return folders


def _parse_folders(texts: list[str]) -> dict[str, str]:
    """Return model or adapter folders by name.

    >>> _parse_folders(["runs/german/", "en-de=models/a"])
    {'german': 'runs/german/', 'en-de': 'models/a'}
    """
    folders: dict[str, str] = {}
    for text in texts:
        name, folder = _split_name(text) if "=" in text else (Path(text).absolute().name, text)
        if name in folders:
            raise RegardError(f"The name '{name}' is used twice.", hint="Give names: NAME=FOLDER.")
        folders[name] = folder
    return folders


def _split_name(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not name or not path:
        raise RegardError(f"'{text}' is not NAME=PATH.", hint="Write for example my-model=folder.")
    return name, path
