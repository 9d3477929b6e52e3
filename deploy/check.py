"""Run the steps of the Dockerfile without Docker, and ask the server that they made.

    python deploy/check.py                                     # several minutes and 1.5 GB of downloads
    python deploy/check.py --torch-index https://pypi.org/simple

The steps of the stage `build` run as they stand, in an empty folder instead of the root of an image, with this
interpreter instead of the image's. `useradd` and `USER` need a container and are not run; they are printed.
"""

import argparse
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTORCH_INDEX = "https://download.pytorch.org/whl/cpu"
SENTENCES = {"en": "{} dogs play.\n", "de": "{} Hunde spielen.\n"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-index", default=PYTORCH_INDEX, help="package index of PyTorch")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        environment = build(root, options.torch_index)
        size = sum(path.lstat().st_size for path in (root / "opt/regard").rglob("*") if not path.is_dir())
        train(root, environment)
        serve(root, environment)
    print(f"The steps ran, the image trained and the server translated. /opt/regard has {size / 1e6:,.0f} MB.")


def read_steps() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments."""
    text = (ROOT / "deploy/Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines]


def build(root: Path, torch_index: str) -> dict[str, str]:
    """Run the steps; return the environment of the image."""
    settings_of_pip = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP"))}
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], **settings_of_pip}
    folder, stage = root, 0

    def inside(text: str) -> str:
        """Replace the folders of the image by those below the root."""
        return text.replace("/opt/regard", f"{root}/opt/regard").replace("/source", f"{root}/source")

    for instruction, argument in read_steps():
        if instruction == "FROM":
            stage += 1
        elif instruction == "WORKDIR":
            folder = Path(inside(argument))
            folder.mkdir(parents=True)
        elif instruction == "ENV":
            for pair in shlex.split(argument):
                name, _, value = pair.partition("=")
                environment[name] = inside(value).replace("$PATH", environment["PATH"])
        elif instruction == "COPY" and stage == 1:
            *sources, target = argument.split()
            for source in sources:
                copy(ROOT / source, folder / target if source in target else folder / target / source)
        elif instruction == "RUN" and stage == 1:
            command = inside(argument).replace(PYTORCH_INDEX, torch_index)
            if command.startswith("python -m venv"):
                command = command.replace("python", sys.executable, 1)
            print(f"RUN {argument}", flush=True)
            subprocess.run(["sh", "-c", command], cwd=folder, env=environment, check=True)  # noqa: S603, S607
        else:
            print(f"not run: {instruction} {argument}")
    return environment


def copy(source: Path, target: Path) -> None:
    """Copy a file, or a folder without compiled files."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


def train(root: Path, environment: dict[str, str]) -> None:
    """Train two steps on a few pairs."""
    for language, sentence in SENTENCES.items():
        (root / f"train.{language}").write_text("".join(map(sentence.format, range(200))), encoding="utf-8")
    options = ["--out", "model", "--steps", "2", "--preset", "mini", "--force"]
    command = [f"{root}/opt/regard/bin/regard", "train", "--source", "train.en", "--target", "train.de", *options]
    subprocess.run(command, cwd=root, env=environment, check=True)  # noqa: S603


def serve(root: Path, environment: dict[str, str]) -> None:
    """Start the server with the trained model and a key, and translate a sentence."""
    regard = [f"{root}/opt/regard/bin/regard", "serve"]
    command = [*regard, "--new-key", "check", "--keys", str(root / "keys.txt")]
    key = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    settings = f'host = "0.0.0.0"\nport = {port}\nkeys_file = "{root}/keys.txt"\nopen_routes = ["/ready"]\n'
    (root / "serve.toml").write_text(f'{settings}[models]\nen-de = "{root}/model"\n')
    server = subprocess.Popen([*regard, "--config", str(root / "serve.toml")], env=environment)  # noqa: S603
    try:
        wait(f"http://127.0.0.1:{port}/ready")
        request = urllib.request.Request(f"http://127.0.0.1:{port}/translate", b'{"q": "Two dogs play."}')
        request.add_header("Content-Type", "application/json")
        request.add_header("Authorization", f"Bearer {key}")
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            print(json.load(answer))
    finally:
        server.terminate()
    if server.wait(60) != 0:
        raise SystemExit(f"The server ended with code {server.returncode}.")


def wait(url: str, seconds: float = 120) -> None:
    """Wait until a server is ready."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
        else:
            return
    raise SystemExit("The server did not become ready.")


if __name__ == "__main__":
    main()
