"""Run the application with uvicorn: deadlines, logs, graceful shutdown."""

import json
import logging
import signal
import socket
import sys
from contextlib import suppress

import uvicorn

from regard.base.errors import RegardError
from regard.base.formatting import escape_control_characters
from regard.base.limits import raise_descriptor_limit
from regard.serve.app import MEDIA_ROUTES, make_app
from regard.serve.protocol import MAX_HEADER_BYTES, ConnectionLimits, make_protocol
from regard.serve.settings import ServeConfig, check_bind
from regard.serve.state import ServerState

FIELDS = ("request_id", "method", "route", "status", "milliseconds", "key", "refusal")
BACKLOG = 2048
STARTUP_FAILURE = 3  # as uvicorn's own command
MAX_CONNECTIONS = 1000
DESCRIPTORS = 4 * MAX_CONNECTIONS  # the default limit is often 1,024


def run_server(settings: ServeConfig) -> None:
    """Serve until SIGTERM or Ctrl-C; accepted requests are finished first."""
    check_bind(settings.host, has_keys=settings.keys_file is not None)
    check_port(settings.host, settings.port)
    if settings.threads is not None:
        import torch

        torch.set_num_threads(settings.threads)
    _configure_logs(settings.log_format)
    raise_descriptor_limit(DESCRIPTORS)
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises the signal again after draining
    server = uvicorn.Server(make_config(settings, ServerState(settings)))
    with suppress(KeyboardInterrupt):  # uvicorn raises it again, too
        server.run()
    if not server.started:
        sys.exit(STARTUP_FAILURE)


def check_port(host: str, port: int) -> None:
    """Check that the server can listen here, before it loads any model.

    Raises:
        RegardError: The port is in use or not allowed, or the address does not belong to this machine.
    """
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        message = f"Cannot listen on port {port} of {host}: {error.strerror}."
        raise RegardError(message, hint="Choose another port: --port N.") from error


def make_config(settings: ServeConfig, state: ServerState) -> uvicorn.Config:
    """Return the uvicorn settings."""
    deadlines = settings.deadlines
    return uvicorn.Config(
        make_app(settings, state),
        host=settings.host,
        port=settings.port,
        http=make_protocol(make_limits(settings), state.is_queue_full),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=deadlines.keep_alive,
        timeout_graceful_shutdown=deadlines.drain,
        backlog=BACKLOG,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )


def make_limits(settings: ServeConfig) -> ConnectionLimits:
    """Return the connection limits; a chunked body has more bytes than its content."""
    deadlines, limits = settings.deadlines, settings.limits
    message_bytes, media_bytes = (2 * size + MAX_HEADER_BYTES for size in (limits.file_bytes, limits.media_bytes))
    media = {route.encode(): media_bytes for route in MEDIA_ROUTES}
    return ConnectionLimits(deadlines.headers, deadlines.body, message_bytes, media, MAX_CONNECTIONS)


class Formatter(logging.Formatter):
    """Formats each record as one line, text or JSON."""

    def __init__(self, form: str) -> None:
        super().__init__("%(asctime)s  %(levelname)s  %(message)s", "%H:%M:%S")
        self.form = form

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; control characters are escaped, except the line breaks of a traceback."""
        fields = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if self.form == "json":
            content = {"time": record.created, "level": record.levelname, "message": record.getMessage(), **fields}
            if record.exc_info:
                content["error"] = self.formatException(record.exc_info)
            return json.dumps(content)
        record.message, record.asctime = record.getMessage(), self.formatTime(record, self.datefmt)
        line = "  ".join([self.formatMessage(record), *(f"{name}={value}" for name, value in fields.items())])
        error = self.formatException(record.exc_info).split("\n") if record.exc_info else []
        return "\n".join(map(escape_control_characters, [line, *error]))


def _configure_logs(form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter(form))
    for name in ("regard.serve", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
