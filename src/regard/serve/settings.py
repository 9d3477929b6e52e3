"""Server settings from defaults, a TOML file, environment variables and options; later sources take precedence.

Every size that a client controls has a limit here.
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
from regard.store.export_folder import Engine

ENVIRONMENT_PREFIX = "REGARD_SERVE_"
KEY_BYTES = 32
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitsConfig(_Table):
    """Limits of one request; larger requests get a 413 or 422 response before memory is allocated."""

    body_bytes: PositiveInt = 250_000
    """Bytes of a request body: enough for `characters` in any encoding."""
    file_bytes: PositiveInt = 2_000_000
    """Bytes of a `/translate_file` request body."""
    media_bytes: PositiveInt = 10_000_000
    """Bytes of a request body with images or audio clips."""
    files: PositiveInt = 16
    """Images or audio clips in a request."""
    pixels: Annotated[int, Field(gt=0, le=PIXELS)] = 1 << 24
    """Pixels of an image before scaling: 4096 x 4096."""
    characters: PositiveInt = 10_000
    """Characters of all texts of a request."""
    texts: PositiveInt = 64
    """Texts in a request."""
    tokens: PositiveInt = 4096
    """Tokens of a prompt, or of a text to embed or classify; patches of an image, vectors of a clip (20 ms each)."""
    sentence_tokens: PositiveInt = 512
    """Tokens of a sentence to translate; its translation has at most `max_length_ratio` times as many plus 50."""
    file_lines: PositiveInt = 20_000
    """Lines, and tags, of a file to translate; members of an archive have limits of their own."""
    file_sentences: PositiveInt = 5000
    """Sentences of a file to translate."""
    new_tokens: PositiveInt = 1024
    """Generated tokens of a text."""
    n: PositiveInt = 8
    """Generated texts per input: `n` and `alternatives`."""
    beam_size: PositiveInt = 16
    rows: PositiveInt = 128
    """Beams of a text; required phrases and terms of n tokens need at least n + 1."""
    stop: PositiveInt = 4
    """Stop strings of a request; also required or forbidden phrases."""
    stop_characters: PositiveInt = 100
    """Characters of a stop string, a phrase, or a form in a glossary."""


class QueueConfig(_Table):
    """Queueing and batching of requests."""

    max_waiting: PositiveInt = 256
    """Waiting texts, images or audio clips per model; further requests get a 429 response."""
    batch_tokens: PositiveInt = 8192
    """Token budget of a batch, padding and beams included."""
    batch_texts: PositiveInt = 32
    window_ms: Annotated[float, Field(ge=0, le=1000)] = 10.0
    """Milliseconds to wait after a batch for the next requests of its clients."""
    uploads: PositiveInt = 16
    """Concurrent requests with images or audio, and concurrent file translations; further requests get a 429
    response."""
    timeout: PositiveFloat = 60.0
    """Seconds that a request may wait to start before it gets a 503 response."""


class DeadlinesConfig(_Table):
    """Time limits of a connection, in seconds; it is closed afterwards."""

    headers: PositiveFloat = 10.0
    body: PositiveFloat = 30.0
    """Also the time limit for a client to continue reading its response."""
    keep_alive: PositiveInt = 75
    """Idle seconds before a connection is closed; use more than your proxy's timeout (nginx: 60)."""
    drain: PositiveInt = 30
    """Seconds to finish accepted requests after SIGTERM."""


class SuggestionsConfig(_Table):
    """Suggested translations (`/suggest`)."""

    file: Path | None = None
    """SQLite database that they are stored in, created if needed; without it the server refuses them."""
    per_minute: PositiveInt = 60
    """Suggestions per minute and key (without keys: per address)."""
    max_count: PositiveInt = 100_000
    """Suggestions in the file; further ones get a 507 response."""


class ServeConfig(_Table):
    """Server settings."""

    models: dict[str, Path] = Field(min_length=1)
    """Model folders by the name that clients use."""
    adapters: dict[str, Path] = {}
    """LoRA adapters of these models by the name that clients use: adapter folders or run folders."""
    chat_templates: dict[str, Path] = {}
    """Jinja chat templates by model or adapter name."""
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    engine: Engine = "auto"
    """auto: CTranslate2 for translation models that it can represent, exported at the first start."""
    keys_file: Path | None = None
    """File of key hashes, one per line: `name sha256` (see `regard serve --new-key`)."""
    open_routes: tuple[str, ...] = ()
    """Paths that need no key, e.g. ["/health", "/ready"] for probes."""
    reload_keys: tuple[str, ...] = ()
    """Names of keys that may reload models (`POST /reload/NAME`). Without keys, local programs may."""
    hosts: tuple[str, ...] = ()
    """Additional `Host` names that a server without keys accepts, besides localhost."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of trusted proxies, whose `X-Forwarded-For` identifies the client for
    `requests_per_minute`."""
    requests_per_minute: NonNegativeInt = 0
    """Requests per minute and key (without keys: per address); 0 for no limit."""
    threads: PositiveInt | None = None
    log_format: Literal["text", "json"] = "text"
    limits: LimitsConfig = LimitsConfig()
    queue: QueueConfig = QueueConfig()
    deadlines: DeadlinesConfig = DeadlinesConfig()
    suggestions: SuggestionsConfig = SuggestionsConfig()
    blame: bool = False
    """Show clients the training samples that may have taught a word (`/blame`), if the run folder has them."""


SERVE_FILES: SettingsFile[ServeConfig] = SettingsFile(ServeConfig)


def read_settings(
    path: Path | None, environment: Mapping[str, str], settings: Sequence[str], changes: Mapping[str, Any]
) -> ServeConfig:
    """Merge settings from a file, the environment, `a.b=value` strings and options; later sources take precedence.

    An environment variable is REGARD_SERVE_ plus the setting name, with two underscores for a dot:
    REGARD_SERVE_PORT=80, REGARD_SERVE_LIMITS__TEXTS=8.

    Raises:
        ConfigError: A setting is unknown or invalid.
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
    """Raise an error for a public address without keys.

    Raises:
        RegardError: The address is reachable from other machines and there are no keys.
    """
    if not is_loopback(host) and not has_keys:
        raise RegardError(
            f"The server would be open to everyone who can reach {host}.",
            hint="Create a key with `regard serve --new-key NAME --keys keys.txt` and give --keys keys.txt, "
            "or listen on 127.0.0.1.",
        )


def is_loopback(host: str) -> bool:
    """Return whether an address is only reachable from this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def hash_key(key: str) -> str:
    """Return the hash of a key, as in the keys file. Keys are random, so a plain hash is enough."""
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
    """Create a random key, add its hash to a keys file, and return the key, which is not stored."""
    if not name.replace("-", "").replace("_", "").isalnum():
        raise RegardError(f"'{name}' is not a valid key name.", hint="Use letters, digits, - and _.")
    key = secrets.token_urlsafe(KEY_BYTES)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{name} {hash_key(key)}\n")
    path.chmod(0o600)
    return key
