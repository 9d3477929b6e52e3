"""Run `regard` commands (JSON: lists of arguments) one after another in this process, which imports torch only once.

Each command reads the same standard input. After the output of each command comes a form feed. A server gets one
request; its response is printed too, and the server is stopped.
"""

import http.client
import io
import json
import signal
import sys
import threading
import time
from contextlib import suppress

from regard.cli import main


def send_request(port: int, text: str) -> None:
    """Wait until the server listens, print its translation of a text, and stop the server."""
    body, headers = json.dumps({"q": text}), {"Content-Type": "application/json"}
    while True:
        with suppress(ConnectionRefusedError):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("POST", "/translate", body, headers)
            response = connection.getresponse()
            print(response.status, response.read().decode())  # noqa: T201
            signal.raise_signal(signal.SIGINT)
            return
        time.sleep(0.05)


def run_commands(commands: list[list[str]], text: str) -> None:
    """Run commands until one fails; exits with its code."""
    for arguments in commands:
        sys.argv = ["regard", *arguments]
        sys.stdin = io.TextIOWrapper(io.BytesIO(f"{text}\n".encode()))
        if arguments[0] == "serve":
            port = int(arguments[arguments.index("--port") + 1])
            threading.Thread(target=send_request, args=(port, text), daemon=True).start()
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
        print("\f", flush=True)  # noqa: T201


if __name__ == "__main__":
    run_commands(json.loads(sys.argv[1]), sys.argv[2])
