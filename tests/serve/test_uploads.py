"""Uploads beyond the limit."""

import socket
import time
from pathlib import Path

from regard.serve.settings import ServeConfig
from tests.serve.factories import classify, run_in_thread
from tests.tasks.media_models import make_png


def test_too_many_uploads_wait_elsewhere(media_folders: dict[str, Path]) -> None:
    """Clients that send their bodies slowly hold their places; others get 429 until they are gone."""
    models = {"shapes": media_folders["shapes"]}
    settings = ServeConfig(models=models, queue={"uploads": 2}, deadlines={"body": 1.0})
    head = b"POST /classify HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    with run_in_thread(settings) as server:
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        for connection in slow:
            connection.sendall(head + b"Content-Length: 1000\r\n\r\n--b\r\n")
        end = time.monotonic() + 5
        while (response := classify(server, [make_png()])).status_code != 429:
            assert time.monotonic() < end
        assert response.headers["retry-after"] == "1"
        while classify(server, [make_png()]).status_code != 200:
            assert time.monotonic() < end, "slow bodies have a deadline"
            time.sleep(0.05)
        for connection in slow:
            connection.close()
