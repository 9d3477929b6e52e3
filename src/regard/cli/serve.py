"""`regard serve`: serve models over HTTP, for clients of LibreTranslate and OpenAI, and for a browser."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.cli.options import StringList, file_option, option
from regard.store.model_path import find_model

EXAMPLES = """
regard serve my-model
regard serve en-de=runs/german my-book --port 8080
regard serve my-model --adapter law=runs/law --adapter news=runs/news
regard serve --new-key alice --keys keys.txt
regard serve my-model --host 0.0.0.0 --keys keys.txt
regard serve --config serve.toml --set limits.texts=16
"""
ADDRESS, SECURITY, WORK = "Address", "Security", "Work"


class ServeEngine(StrEnum):
    """The engines that run a served model."""

    auto = "auto"
    torch = "torch"
    ctranslate2 = "ctranslate2"


class LogFormat(StrEnum):
    """Forms of the log."""

    text = "text"
    json = "json"


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="Model folders; NAME=FOLDER gives a model another name than its folder."),
    ] = None,
    adapter: Annotated[
        StringList,
        option(
            "LoRA adapter of one of the models (a run or adapter folder), which clients see as a model. Repeatable.",
            metavar="NAME=FOLDER",
            panel=WORK,
        ),
    ] = None,
    host: Annotated[
        str | None, option("Address to listen on.", metavar="ADDRESS", show_default="127.0.0.1", panel=ADDRESS)
    ] = None,
    port: Annotated[int | None, option("Port.", min=0, max=65535, show_default="8000", panel=ADDRESS)] = None,
    keys: Annotated[
        Path | None, file_option("File of key hashes; every request then needs a key.", panel=SECURITY)
    ] = None,
    new_key: Annotated[
        str | None,
        option("Create a key with this name, add it to --keys, print it and exit.", metavar="NAME", panel=SECURITY),
    ] = None,
    open_route: Annotated[
        StringList, option("Path that needs no key, e.g. /health; repeatable.", metavar="PATH", panel=SECURITY)
    ] = None,
    reload_key: Annotated[
        StringList, option("Name of a key that may reload models; repeatable.", metavar="NAME", panel=SECURITY)
    ] = None,
    trusted_proxy: Annotated[
        StringList,
        option("Proxy whose X-Forwarded-For names the client; repeatable.", metavar="ADDRESS", panel=SECURITY),
    ] = None,
    engine: Annotated[
        ServeEngine | None,
        option(
            "auto takes CTranslate2 if an export passed its proof.",
            metavar="[auto|torch|ctranslate2]",
            show_default="auto",
            panel=WORK,
        ),
    ] = None,
    threads: Annotated[int | None, option("Threads of PyTorch.", min=1, panel=WORK)] = None,
    chat_template: Annotated[
        StringList, option("Jinja file for /v1/chat/completions; repeatable.", metavar="NAME=FILE", panel=WORK)
    ] = None,
    log_format: Annotated[
        LogFormat | None, option("Form of the log.", metavar="[text|json]", show_default="text", panel=WORK)
    ] = None,
    config: Annotated[Path | None, file_option("TOML file of settings.")] = None,
    changes: Annotated[
        StringList, option("Change a setting, e.g. limits.texts=16; repeatable.", "--set", metavar="NAME=VALUE")
    ] = None,
) -> None:
    """Serve models over HTTP until Ctrl-C or SIGTERM.

    Clients of LibreTranslate and OpenAI work unchanged; /openapi.json describes all routes. The server listens on this
    machine only, unless --host and --keys are given.
    """
    for module in ("fastapi", "uvicorn", "httptools", "multipart", "prometheus_client"):
        import_optional(module, "serve", "`regard serve`")
    from regard.serve.settings import add_key, read_settings

    if new_key is not None:
        if keys is None:
            raise RegardError("There is no file for the key.", hint="Name one: --keys keys.txt.")
        typer.echo(add_key(keys, new_key))
        return
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
    """Return the folder of each model or adapter by its name.

    >>> _parse_folders(["runs/german/", "en-de=models/a"])
    {'german': 'runs/german/', 'en-de': 'models/a'}
    """
    folders: dict[str, str] = {}
    for text in texts:
        name, folder = _split_name(text) if "=" in text else (Path(text).absolute().name, text)
        if name in folders:
            raise RegardError(f"Two of them have the name '{name}'.", hint="Give names: NAME=FOLDER.")
        folders[name] = folder
    return folders


def _split_name(text: str) -> tuple[str, str]:
    name, _, path = text.partition("=")
    if not name or not path:
        raise RegardError(f"'{text}' is not NAME=PATH.", hint="Write for example my-model=folder.")
    return name, path
