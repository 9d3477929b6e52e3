"""Settings of the server: defaults, a TOML file, environment variables and options, later ones win.

Everything that a client can make large has a limit here.
"""

import hashlib
import ipaddress
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt

from regard.base.errors import RegardError
from regard.base.limits import PIXELS
from regard.config.toml_file import SettingsFile, parse_settings, read_toml

ENVIRONMENT_PREFIX = "REGARD_SERVE_"
KEY_BYTES = 32
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitsConfig(_Table):
    """What one request may ask for; more is answered with 413 or 422 before anything is allocated."""

    body_bytes: PositiveInt = 250_000
    """Bytes of a request's body: enough for `characters`, however they are written."""
    file_bytes: PositiveInt = 2_000_000
    """Bytes of a request's body of `/translate_file`."""
    media_bytes: PositiveInt = 10_000_000
    """Bytes of a request's body with images or audio clips."""
    files: PositiveInt = 16
    """Images or audio clips in a request."""
    pixels: Annotated[int, Field(gt=0, le=PIXELS)] = 1 << 24
    """Pixels of an image before it is scaled to the size that the model reads: 4096 x 4096."""
    characters: PositiveInt = 10_000
    """Characters of all texts of a request."""
    texts: PositiveInt = 64
    """Texts in a request."""
    tokens: PositiveInt = 4096
    """Tokens of a prompt, or of a text to embed or to label; patches of an image, vectors of a clip (20 ms each)."""
    sentence_tokens: PositiveInt = 512
    """Tokens of a sentence to translate; its translation has at most `max_length_ratio` times as many, and 50."""
    file_lines: PositiveInt = 20_000
    """Lines of a file to translate, in HTML tags."""
    file_sentences: PositiveInt = 5000
    """Sentences of a file to translate."""
    new_tokens: PositiveInt = 1024
    """Generated tokens of a text."""
    n: PositiveInt = 8
    """Texts to generate for one text: `n` and `alternatives`."""
    beam_size: PositiveInt = 16
    rows: PositiveInt = 128
    """Beams of a text; required phrases multiply them by one more than their number of tokens."""
    stop: PositiveInt = 4
    """Stop strings of a request; also required or forbidden phrases."""
    stop_characters: PositiveInt = 100
    """Characters of a stop string or a phrase."""


class QueueConfig(_Table):
    """How requests wait and join batches."""

    max_waiting: PositiveInt = 256
    """Texts, images or audio clips that wait for one model; more are answered with 429."""
    batch_tokens: PositiveInt = 8192
    """Token budget of a batch, padding and beams included."""
    batch_texts: PositiveInt = 32
    window_ms: Annotated[float, Field(ge=0, le=1000)] = 10.0
    """Milliseconds to wait, after a batch, for the next one of the clients that it answered."""
    uploads: PositiveInt = 16
    """Requests with images or audio that are received and decoded, and files that are translated, at a time; more are
    answered with 429."""
    timeout: PositiveFloat = 60.0
    """Seconds that a request may wait for its start; then it is answered with 503."""


class DeadlinesConfig(_Table):
    """Seconds that a connection has for each part of a request; then it is closed."""

    headers: PositiveFloat = 10.0
    body: PositiveFloat = 30.0
    """Also the time in which a client must go on reading its answer."""
    keep_alive: PositiveInt = 75
    """Idle seconds before a connection is closed; more than a proxy in front keeps its own (nginx: 60)."""
    drain: PositiveInt = 30
    """Seconds after SIGTERM for accepted requests."""


class ServeConfig(_Table):
    """All settings of a server."""

    models: dict[str, Path] = Field(min_length=1)
    """Model folders by the name that clients use."""
    adapters: dict[str, Path] = {}
    """LoRA adapters of these models by the name that clients use: adapter folders, or folders of runs."""
    chat_templates: dict[str, Path] = {}
    """Jinja files by the name of a model or adapter: how a conversation becomes a prompt."""
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    engine: Literal["auto", "torch", "ctranslate2"] = "auto"
    keys_file: Path | None = None
    """File of key hashes, one per line: `name sha256` (see `regard serve --new-key`)."""
    open_routes: tuple[str, ...] = ()
    """Paths that need no key, for example ["/health", "/ready"] for probes."""
    reload_keys: tuple[str, ...] = ()
    """Names of keys that may reload models (`POST /reload/NAME`). Without keys, programs on this machine may."""
    hosts: tuple[str, ...] = ()
    """Further names in the `Host` header that a server without keys answers to, beside localhost."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies in front: their `X-Forwarded-For` names the client for `requests_per_minute`."""
    requests_per_minute: NonNegativeInt = 0
    """Requests of each key (without keys: of each address) in a minute; 0: no limit."""
    threads: PositiveInt | None = None
    log_format: Literal["text", "json"] = "text"
    limits: LimitsConfig = LimitsConfig()
    queue: QueueConfig = QueueConfig()
    deadlines: DeadlinesConfig = DeadlinesConfig()


SERVE_FILES: SettingsFile[ServeConfig] = SettingsFile(ServeConfig)


def read_settings(
    path: Path | None, environment: Mapping[str, str], settings: Sequence[str], changes: Mapping[str, Any]
) -> ServeConfig:
    """Join the settings of a file, of the environment, of `a.b=value` texts and of options; later ones win.

    An environment variable is REGARD_SERVE_ and the name of a setting, with two underscores for a point:
    REGARD_SERVE_PORT=80, REGARD_SERVE_LIMITS__TEXTS=8.

    Raises:
        ConfigError: A setting is unknown or has a wrong value.
    """
    variables = [
        f"{name.removeprefix(ENVIRONMENT_PREFIX).lower().replace('__', '.')}={value}"
        for name, value in sorted(environment.items())
        if name.startswith(ENVIRONMENT_PREFIX)
    ]
    table = {} if path is None else read_toml(path)
    all_changes = {**parse_settings(variables), **parse_settings(list(settings)), **changes}
    return SERVE_FILES.parse(table, all_changes, location="the command line" if path is None else str(path))


def check_bind(host: str, *, has_keys: bool) -> None:
    """Refuse to listen on a public address without keys.

    Raises:
        RegardError: The address is reachable from other machines, and there are no keys.
    """
    if not is_loopback(host) and not has_keys:
        raise RegardError(
            f"The server would be open to everyone who can reach {host}.",
            hint="Create a key with `regard serve --new-key NAME --keys keys.txt` and give --keys keys.txt, "
            "or listen on 127.0.0.1.",
        )


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def hash_key(key: str) -> str:
    """Return the hash of a key, as the keys file has it. Keys are random, so that a plain hash is enough."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> dict[str, str]:
    """Read a keys file: the name of each key by its hash.

    Raises:
        RegardError: A line is not `name sha256`, or there is no key.
    """
    keys: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, digest = line.strip().partition(" ")
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            hint = "Write keys with `regard serve --new-key NAME --keys FILE`."
            raise RegardError(f"Line {number} is not a name and a sha256.", location=str(path), hint=hint)
        keys[digest] = name
    if not keys:
        raise RegardError("The file has no keys.", location=str(path), hint="Add one: `regard serve --new-key NAME`.")
    return keys


def add_key(path: Path, name: str) -> str:
    """Create a random key, add its hash to a keys file, and return the key, which is stored nowhere."""
    if not name.replace("-", "").replace("_", "").isalnum():
        raise RegardError(f"'{name}' is no name for a key.", hint="Use letters, digits, - and _.")
    key = secrets.token_urlsafe(KEY_BYTES)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{name} {hash_key(key)}\n")
    path.chmod(0o600)
    return key
