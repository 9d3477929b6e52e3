"""A child process that renders Jinja templates within limits on CPU time, memory and output.

A template can loop for hours or build a string of gigabytes in one call (`'a' * 10**10`, `| center(10**10)`), even
while Jinja compiles it. Python cannot stop a thread, but the kernel stops a process that exceeds its CPU time or
memory. The child imports only the standard library and Jinja, and renders templates one after another. If it is
stopped, the next template starts a new process.
"""

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

CPU_SECONDS = 0.5
WALL_SECONDS = 10.0  # on Windows, which has no CPU timer
MEMORY_BYTES = 256 << 20  # address space, which only Linux limits
OUTPUT_CHARACTERS = 1_000_000


class TemplateError(Exception):
    """The template cannot be compiled or rendered."""


class TemplateLimitError(TemplateError):
    """The template exceeds a limit."""


class TemplateRefusal(TemplateError):  # noqa: N818 - the template decides; nothing failed
    """The template rejected the variables with `raise_exception`."""


HAS_CPU_TIMER = hasattr(signal, "setitimer")
ERRORS = {error.__name__: error for error in (TemplateError, TemplateLimitError, TemplateRefusal)}


class TemplateProcess:
    """Renders templates in a child process, which starts with the first template. A lock serializes threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def render(self, text: str, variables: Mapping[str, Any] | None) -> str:
        """Return a rendered template; without variables, only compile it and return an empty string.

        Raises:
            TemplateError: The template cannot be compiled or rendered, exceeds a limit, or rejects the variables.
        """
        request = json.dumps([text, variables]).encode() + b"\n"
        with self._lock:
            process = self._process or self._start()
            timer = threading.Timer(WALL_SECONDS, process.kill)
            if not HAS_CPU_TIMER:
                timer.start()
            assert process.stdin is not None  # noqa: S101 - `_start` asks for pipes
            assert process.stdout is not None  # noqa: S101
            try:
                with suppress(BrokenPipeError):
                    process.stdin.write(request)
                    process.stdin.flush()
                line = process.stdout.readline()
            finally:
                timer.cancel()
            if not line.endswith(b"\n"):
                raise TemplateLimitError(self._stop())
        kind, result = json.loads(line)
        if kind != "":
            raise ERRORS[kind](result)
        return str(result)

    def forget(self) -> None:
        """Start a new process for the next template; a forked process must not use its parent's pipes."""
        self.__init__()  # type: ignore[misc]

    def close(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is not None:
                self._stop()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        return self._process

    def _stop(self) -> str:
        """End the process and return the reason."""
        process, self._process = self._process, None
        assert process is not None  # noqa: S101 - callers check it
        process.kill()
        with suppress(BrokenPipeError):
            process.__exit__(None, None, None)  # closes the pipes and waits
        if HAS_CPU_TIMER and process.returncode == -signal.SIGPROF:
            return f"it needs more than {CPU_SECONDS} seconds of CPU time"
        return f"its process ended with code {process.returncode}"


PROCESS = TemplateProcess()
atexit.register(PROCESS.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.forget)


def _refuse(message: object) -> None:
    raise TemplateRefusal(str(message)[:200])


@functools.lru_cache(maxsize=16)
def _compile(text: str) -> Any:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _refuse  # as in `transformers`
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    return environment.from_string(text)


def _render(text: str, variables: dict[str, Any] | None) -> list[str]:
    """Return the kind of an error, empty for none, and its message or the rendered text."""
    try:
        template, parts, size = _compile(text), list[str](), 0
        for part in template.generate(variables) if variables is not None else ():
            parts.append(part)
            size += len(part)
            if size > OUTPUT_CHARACTERS:
                raise TemplateLimitError(f"its output has more than {OUTPUT_CHARACTERS:,} characters")
        return ["", "".join(parts)]
    except MemoryError:
        return [TemplateLimitError.__name__, f"it needs more than {MEMORY_BYTES >> 20} MB of memory"]
    except TemplateError as error:
        return [type(error).__name__, str(error)]
    except Exception as error:
        return [TemplateError.__name__, type(error).__name__]


def _limit_cpu(seconds: float) -> None:
    """Make the kernel end this process after some seconds of CPU time; 0: no limit."""
    if HAS_CPU_TIMER:
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _main() -> None:
    """Render templates from standard input, one request and one response per line."""
    import jinja2.ext
    import jinja2.sandbox  # noqa: F401 - before the limits

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent; this process ends when the pipe closes
    with suppress(ImportError):  # Windows
        import resource

        with suppress(ValueError, OSError):  # macOS does not limit the address space
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for line in sys.stdin.buffer:
        text, variables = json.loads(line)
        _limit_cpu(CPU_SECONDS)
        answer = _render(text, variables)
        _limit_cpu(0)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _main()
