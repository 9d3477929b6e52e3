"""Settings of the server."""

import re
from pathlib import Path

import pytest

from regard.base.errors import ConfigError, RegardError
from regard.serve.settings import (
    DeadlinesConfig,
    LimitsConfig,
    QueueConfig,
    ServeConfig,
    add_key,
    check_bind,
    hash_key,
    read_keys,
    read_settings,
)
from tests.serve.factories import KEY


def test_a_public_address_needs_keys() -> None:
    check_bind("127.0.0.1", has_keys=False)
    check_bind("::1", has_keys=False)
    check_bind("0.0.0.0", has_keys=True)  # noqa: S104
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"):  # noqa: S104
        with pytest.raises(RegardError, match="open to everyone"):
            check_bind(host, has_keys=False)


def test_the_default_address_is_this_machine(folders: dict[str, Path]) -> None:
    assert ServeConfig(models=folders).host == "127.0.0.1"


def test_keys_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    for content in ("", "# nothing\n", f"alice {KEY}\n", "alice\n"):
        path.write_text(content)
        with pytest.raises(RegardError):
            read_keys(path)


def test_settings_come_from_a_file_the_environment_and_options(tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    path.write_text('port = 1\n[models]\na = "folder"\n[limits]\ntexts = 3\nn = 2\n')
    environment = {"REGARD_SERVE_PORT": "2", "REGARD_SERVE_LIMITS__TEXTS": "5", "OTHER": "x"}
    settings = read_settings(path, environment, ["limits.n=4"], {"host": "::1"})
    assert (settings.port, settings.limits.texts, settings.limits.n, settings.host) == (2, 5, 4, "::1")
    with pytest.raises(ConfigError):
        read_settings(path, {"REGARD_SERVE_NONSENSE": "1"}, [], {})
    with pytest.raises(ConfigError):
        read_settings(None, {}, [], {})  # no model


def test_new_keys_are_stored_as_hashes(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    keys = [add_key(path, name) for name in ("alice", "bob")]
    assert read_keys(path) == {hash_key(keys[0]): "alice", hash_key(keys[1]): "bob"}
    assert all(key not in path.read_text() for key in keys)
    assert path.stat().st_mode & 0o77 == 0


def test_serve_guide_states_the_default_limits() -> None:
    page = (Path(__file__).parents[2] / "docs/guides/serve.md").read_text(encoding="utf-8")
    stated = dict(re.findall(r"^\| `((?:limits|queue|deadlines)\.\w+)` \| ([\d,]+) \|", page, flags=re.MULTILINE))
    tables = {"limits": LimitsConfig(), "queue": QueueConfig(), "deadlines": DeadlinesConfig()}
    defaults = {f"{name}.{key}": value for name, table in tables.items() for key, value in table}
    assert {name: float(value.replace(",", "")) for name, value in stated.items()} == defaults
