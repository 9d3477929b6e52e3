"""The part of the Hugging Face Hub's HTTP API that `huggingface_hub` uses to create, upload and download a model."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Repository:
    """Files of the one commit."""

    private: bool
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass
class HubStub:
    """State of the server."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    tokens: set[str | None] = field(default_factory=set)
    address: str = ""


@contextmanager
def run_hub() -> Iterator[HubStub]:
    """Serve an empty Hub on a free port."""
    stub = HubStub()

    class Handler(_Handler):
        hub = stub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: HubStub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Write nothing."""

    def do_GET(self) -> None:
        path = self._begin()
        match path:
            case ["api", "models", owner, name, *rest]:
                if (repository := self.hub.repositories.get(f"{owner}/{name}")) is None:
                    self._send_error(404, "RepoNotFound")
                elif rest and rest[0] == "revision" and rest[1] not in ("main", COMMIT):
                    self._send_error(404, "RevisionNotFound")
                elif rest and rest[0] == "tree":
                    self._send(
                        [
                            {"type": "file", "path": path, "size": len(content), "oid": hash_blob(content)}
                            for path, content in repository.files.items()
                        ]
                    )
                else:
                    self._send(
                        {
                            "id": f"{owner}/{name}",
                            "modelId": f"{owner}/{name}",
                            "sha": COMMIT,
                            "private": repository.private,
                            "tags": [],
                            "downloads": 0,
                            "likes": 0,
                            "siblings": [{"rfilename": path} for path in repository.files],
                        }
                    )
            case [owner, name, "resolve", _, *file]:
                self._send_file(f"{owner}/{name}", "/".join(file))
            case _:
                self._send_error(404, "EntryNotFound")

    do_HEAD = do_GET  # noqa: N815 - names of http.server

    def do_POST(self) -> None:
        path = self._begin()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match path:
            case ["api", "repos", "create"]:
                document = json.loads(body)
                owner, name = document.get("organization") or "anna", document["name"]
                private = document.get("visibility") == "private" or bool(document.get("private"))
                if f"{owner}/{name}" in self.hub.repositories:
                    self._send({"url": f"{self.hub.address}/{owner}/{name}"}, 409)
                    return
                self.hub.repositories[f"{owner}/{name}"] = Repository(private)
                self._send({"url": f"{self.hub.address}/{owner}/{name}"})
            case ["api", "validate-yaml"]:
                self._send({"errors": [], "warnings": []})
            case ["api", "models", _, _, "preupload", _]:
                names = [file["path"] for file in json.loads(body)["files"]]
                modes = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
                self._send({"files": modes})
            case ["api", "models", owner, name, "commit", _]:
                for line in body.splitlines():
                    entry = json.loads(line)
                    if entry["key"] == "file":
                        content = base64.b64decode(entry["value"]["content"])
                        self.hub.repositories[f"{owner}/{name}"].files[entry["value"]["path"]] = content
                url = f"{self.hub.address}/{owner}/{name}/commit/{COMMIT}"
                self._send({"success": True, "commitOid": COMMIT, "commitUrl": url, "hookOutput": ""})
            case _:
                self._send_error(404, "EntryNotFound")

    def _begin(self) -> list[str]:
        path = urlsplit(self.path).path
        self.hub.requests.append(f"{self.command} {path}")
        self.hub.tokens.add(self.headers.get("Authorization"))
        return path.strip("/").split("/")

    def _send(self, document: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self._write(json.dumps(document).encode(), status, {"Content-Type": "application/json", **(headers or {})})

    def _send_error(self, status: int, code: str) -> None:
        self._send({"error": code}, status, {"X-Error-Code": code, "X-Error-Message": code})

    def _send_file(self, repository: str, name: str) -> None:
        content = self.hub.repositories[repository].files.get(name)
        if content is None:
            self._send_error(404, "EntryNotFound")
            return
        self._write(content, 200, {"ETag": f'"{hash_blob(content)}"', "X-Repo-Commit": COMMIT})

    def _write(self, content: bytes, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def hash_blob(content: bytes) -> str:
    """Return the id of a blob of git."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324 - git's
