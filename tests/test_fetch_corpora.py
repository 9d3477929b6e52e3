"""scripts/fetch_corpora.py downloads, resumes and verifies files; its table names what the benchmarks read."""

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from bench import corpora
from scripts import fetch_corpora

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    ranges: list[str | None] = []  # noqa: RUF012 - one list for all requests
    has_ranges = True

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.ranges.append(wanted)
        if "/missing" in self.path:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.has_ranges else 0
        if start >= len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        is_cut = "/cut" in self.path and not start
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start : start + 1000] if is_cut else CONTENT[start:])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        pass


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server on this machine that sends CONTENT for any path."""
    monkeypatch.setattr(_Handler, "ranges", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def make_file(url: str = "a.bin", path: str = "corpus/a.bin", sha256: str = SHA256) -> fetch_corpora.CorpusFile:
    return fetch_corpora.CorpusFile(url=url, path=path, sha256=sha256)


def test_fetch_file_writes_the_content(address: str, tmp_path: Path) -> None:
    file = make_file()
    assert not fetch_corpora.is_correct(file, tmp_path)
    fetch_corpora.fetch_file(address, file, tmp_path)
    assert (tmp_path / "corpus/a.bin").read_bytes() == CONTENT
    assert fetch_corpora.is_correct(file, tmp_path)


def test_fetch_file_compresses_plain_text(address: str, tmp_path: Path) -> None:
    file = make_file(path="corpus/a.gz")
    fetch_corpora.fetch_file(address, file, tmp_path)
    assert gzip.decompress((tmp_path / "corpus/a.gz").read_bytes()) == CONTENT
    assert fetch_corpora.is_correct(file, tmp_path)


def test_fetch_file_resumes_after_a_cut_connection(address: str, tmp_path: Path) -> None:
    file = make_file("cut.bin")
    with pytest.raises(fetch_corpora.FetchError, match="Run the command again"):
        fetch_corpora.fetch_file(address, file, tmp_path)
    assert (tmp_path / "corpus/a.bin.part").stat().st_size == 1000
    fetch_corpora.fetch_file(address, file, tmp_path)
    assert (tmp_path / "corpus/a.bin").read_bytes() == CONTENT
    assert _Handler.ranges == [None, "bytes=1000-"]


@pytest.mark.parametrize("has_ranges", [True, False])
def test_fetch_file_with_all_bytes_present_finishes(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_ranges: bool
) -> None:
    monkeypatch.setattr(_Handler, "has_ranges", has_ranges)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/a.bin.part").write_bytes(CONTENT)
    fetch_corpora.fetch_file(address, make_file(), tmp_path)
    assert (tmp_path / "corpus/a.bin").read_bytes() == CONTENT


def test_fetch_file_deletes_a_file_with_another_sum(address: str, tmp_path: Path) -> None:
    with pytest.raises(fetch_corpora.FetchError, match="expected 0000"):
        fetch_corpora.fetch_file(address, make_file(sha256="0000"), tmp_path)
    assert list((tmp_path / "corpus").iterdir()) == []


def test_fetch_file_refuses_other_protocols(tmp_path: Path) -> None:
    with pytest.raises(fetch_corpora.FetchError, match="only https"):
        fetch_corpora.fetch_file("file:///etc", make_file("passwd"), tmp_path)


def write_table(path: Path, base: str, url: str = "a.bin") -> list[str]:
    file = f'{{ url = "{url}", path = "x/a.bin", sha256 = "{SHA256}" }}'
    path.write_text(f'[x]\nlicense = "none"\npage = "p"\nbase = "{base}"\nfiles = [{file}]\n')
    return ["--table", str(path), "--data", str(path.parent / "data")]


def test_main_lists_without_download_then_downloads_once(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = write_table(tmp_path / "table.toml", address)
    assert fetch_corpora.main(options) == 0
    assert "1 of 1 files missing" in capsys.readouterr().out
    assert _Handler.ranges == []
    for _ in range(2):
        assert fetch_corpora.main(["x", *options]) == 0
    assert _Handler.ranges == [None]
    assert fetch_corpora.main(options) == 0
    assert "x: complete" in capsys.readouterr().out


def test_main_reports_a_missing_file(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = write_table(tmp_path / "table.toml", address, "missing.bin")
    assert fetch_corpora.main(["x", *options]) == 1
    assert "404" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        fetch_corpora.main(["unknown", *options])


def test_split_europarl_keeps_pairs_of_usual_length(tmp_path: Path) -> None:
    lines = {"en": "one two three\nshort\na b c d\ne f g\n", "de": "eins zwei drei\nkurz kurz kurz\nx y z\nu v w\n"}
    with tarfile.open(tmp_path / fetch_corpora.EUROPARL_ARCHIVE, "w:gz") as archive:
        for language, text in lines.items():
            member = tarfile.TarInfo(f"europarl-v7.de-en.{language}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    fetch_corpora.split_europarl(tmp_path, {"valid": 1, "test": 1, "train": 5})
    written = {
        name: gzip.decompress((tmp_path / f"{name}.gz").read_bytes()).decode() for name in ("valid.de", "train.en")
    }
    assert written == {"valid.de": "eins zwei drei\n", "train.en": "e f g\n"}


def test_table_has_licenses_and_sums() -> None:
    table = fetch_corpora.read_table()
    assert set(table) == set(corpora.CORPORA)
    for name, corpus in table.items():
        assert corpus.license
        assert corpus.base.startswith("https://")
        for file in corpus.files:
            assert file.path.startswith(f"{name}/")
            assert len(file.sha256) == 64 or name == "europarl_deen"


@pytest.mark.parametrize("name", ["multi30k", "tinyshakespeare"])
def test_sums_match_the_corpora_where_present(name: str) -> None:
    data = fetch_corpora.ROOT.parent / "shared/data"
    if not (data / name).is_dir():
        pytest.skip(f"{data / name} is not here")
    assert [
        file.path for file in fetch_corpora.read_table()[name].files if not fetch_corpora.is_correct(file, data)
    ] == []


def test_require_exits_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "DATA", tmp_path)
    with pytest.raises(SystemExit, match=r"python scripts/fetch_corpora\.py multi30k europarl_deen$"):
        corpora.require("multi30k", "europarl_deen")
    (tmp_path / "multi30k").mkdir()
    corpora.require("multi30k")


def test_tokenize_benchmark_without_corpus_fails_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.tokenize", "--quick"]
    environment = {"REGARD_DATA": str(tmp_path), "PATH": "", "PYTHONPATH": str(fetch_corpora.ROOT / "src")}
    done = subprocess.run(command, cwd=fetch_corpora.ROOT, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "fetch_corpora.py europarl_deen" in done.stderr
