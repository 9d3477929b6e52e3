"""The commands run with the limits of Windows, which windows_like/sitecustomize.py imposes on Linux.

Paths have spaces and characters outside ASCII, and the encoding of the standard streams is cp1252.
"""

import ast
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

LIMITS = Path(__file__).parent / "windows_like"
SENTENCES = ("Łódź", "今日は良い天気です", "źdźbło", "明日は雨です")  # cp1252 has few of these characters
SOURCE = Path(__file__).parents[1] / "src/regard"
POSIX_ONLY = re.compile(
    r"fcntl|grp|pty|pwd|resource|syslog|termios|tty|signal\.SIG(ALRM|CHLD|CONT|HUP|KILL|PIPE|PROF|QUIT|STOP|USR\d)"
    r"|signal\.(alarm|setitimer)|os\.(fork|getuid|geteuid|killpg|mkfifo|sched_getaffinity|setsid|sysconf|uname"
    r"|register_at_fork|O_(CLOEXEC|DIRECTORY|NOFOLLOW|NONBLOCK))|socket\.AF_UNIX"
)
NOT_PATHS = ("formatter", "installed", "os", "webbrowser")  # they have methods of the same names
MODEL = "mein Übersetzer"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def start_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run Python in a folder with the limits of Windows."""
    path = os.pathsep.join([str(LIMITS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {"PYTHONPATH": path, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "NO_COLOR": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, check=False)  # noqa: S603


def run_commands(folder: Path, commands: Sequence[Sequence[str]], text: str) -> list[str]:
    """Return the output of each command; they must succeed."""
    process = start_python(folder, str(LIMITS / "run_commands.py"), json.dumps(commands), text)
    assert process.returncode == 0, process.stderr.decode()
    return process.stdout.decode().split("\f\n")


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_commands_run_with_the_limits_of_windows(tmp_path: Path) -> None:
    folder = tmp_path / "zwei Wörter łatwo"
    folder.mkdir()
    for name in ("corpus.a", "corpus.b"):
        (folder / name).write_text("".join(f"{text}\n" for text in SENTENCES * 16), encoding="utf-8")
    commands = [
        ["train", "--source", "corpus.a", "--target", "corpus.b", "--out", MODEL, "--steps", "2", "--force"],
        ["translate", MODEL, "--prefix", SENTENCES[0], "--max-new-tokens", "8"],
        ["look", MODEL, SENTENCES[0], "--max-new-tokens", "8", "--save", "ein Blick auf Łódź.html"],
        ["serve", MODEL, "--host", "127.0.0.1", "--port", str(find_free_port())],
    ]
    trained, translated, looked, served, end = run_commands(folder, commands, SENTENCES[1])
    assert "finished, at step 2" in trained
    assert any(f"source:    {text}" in trained for text in SENTENCES)
    assert f'regard train --resume "{MODEL}"' in trained
    assert translated.startswith(SENTENCES[0])
    assert "ein Blick auf Łódź.html" in looked
    assert SENTENCES[0] in (folder / "ein Blick auf Łódź.html").read_text(encoding="utf-8")
    assert served.startswith('200 {"translatedText":')
    assert end == ""
    assert list(folder.rglob("*.lock")) == []


def test_ranks_are_refused_on_windows_with_a_hint(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name}\n" * 60, encoding="utf-8")
    options = ("--source", "a", "--target", "b", "--out", "model", "--ranks", "2", "--force")
    process = start_python(tmp_path, "-m", "regard", "train", *options)
    assert process.returncode == 1
    assert "Windows does not support --ranks and --hosts" in process.stderr.decode()
    assert "fix:" in process.stderr.decode()


def find_posix_uses(tree: ast.Module) -> list[str]:
    """Return POSIX-only imports, signals and functions that a module needs when it is imported."""
    found, pending = [], list[ast.AST](tree.body)
    while pending:
        node = pending.pop()
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.append(f"{node.value.id}.{node.attr}")
        found += [name for name in names if POSIX_ONLY.fullmatch(name)]
        if isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue  # runs later
        pending.extend(ast.iter_child_nodes(node))
    return found


def test_modules_import_without_posix() -> None:
    codes = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    mentioned = re.compile(rf"\b({POSIX_ONLY.pattern})\b")  # parsing all files takes seconds
    found = {name: find_posix_uses(ast.parse(code)) for name, code in codes.items() if mentioned.search(code)}
    assert {name: uses for name, uses in found.items() if uses} == {"text/template_process.py": ["os.register_at_fork"]}


def test_find_posix_uses_skips_functions() -> None:
    lines = "import fcntl\nx = signal.SIGUSR1\ndef f():\n    import pwd\nclass A:\n    from resource import y\n"
    assert sorted(find_posix_uses(ast.parse(lines))) == ["fcntl", "resource", "signal.SIGUSR1"]


def test_text_files_are_opened_with_an_encoding() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {ast.unparse(node)}"
        for path in SOURCE.rglob("*.py")
        if re.search(r"\bopen\b|_text\b", code := path.read_text(encoding="utf-8"))  # parsing all files takes seconds
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_missing_encoding(node)
    ]
    assert found == []


def is_missing_encoding(call: ast.Call) -> bool:
    """Whether a call of a path's method reads or writes text with the encoding of the locale."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name not in ("open", "read_text", "write_text"):
        return False
    owner = ast.unparse(call.func).rpartition(".")[0]
    if owner in NOT_PATHS or any(keyword.arg == "encoding" for keyword in call.keywords):
        return False
    if name == "open":
        modes = [argument.value for argument in call.args[:2] if isinstance(argument, ast.Constant)]
        return bool(modes) and not any("b" in str(mode) for mode in modes)
    return True


@pytest.mark.parametrize(
    ("line", "is_missing"),
    [("p.read_text()", True), ("p.open('w')", True), ("p.open('rb')", False), ("p.write_text(x, encoding='a')", False)],
)
def test_is_missing_encoding(line: str, is_missing: bool) -> None:
    call = ast.parse(line, mode="eval").body
    assert isinstance(call, ast.Call)
    assert is_missing_encoding(call) is is_missing
