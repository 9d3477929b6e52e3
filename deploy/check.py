"""Run the steps of the Dockerfile without Docker, and ask the server that they made.

    python deploy/check.py                                     # several minutes and 1.5 GB of downloads
    python deploy/check.py --torch-index https://pypi.org/simple
    python deploy/check.py --installed                         # one minute: the regard of this environment

The steps of the stage `build` run as they stand, in an empty folder instead of the root of an image, with this
interpreter instead of the image's. `useradd` and `USER` need a container and are not run; they are printed.

A pod of jobset.yaml runs as a process with two ranks. It is stopped once, as if its host were drained, and what follows
from its exit codes is read from the manifest.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PYTORCH_INDEX = "https://download.pytorch.org/whl/cpu"
SENTENCES = {"en": "{} dogs play.\n", "de": "{} Hunde spielen.\n"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-index", default=PYTORCH_INDEX, help="package index of PyTorch")
    parser.add_argument("--installed", action="store_true", help="do not run the steps of the Dockerfile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        environment = dict(os.environ) if options.installed else build(root, options.torch_index)
        size = sum(path.lstat().st_size for path in (root / "opt/regard").rglob("*") if not path.is_dir())
        train(root, environment)
        serve(root, environment)
        train_pod(root, environment)
    print("The image trained, the server translated, and a stopped pod resumed and finished.")
    if size:
        print(f"The steps ran. /opt/regard has {size / 1e6:,.0f} MB.")


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


def find_regard(environment: dict[str, str]) -> str:
    """Return the path of the command."""
    path = shutil.which("regard", path=environment["PATH"])
    if path is None:
        raise SystemExit("There is no `regard` on the PATH.")
    return path


def train(root: Path, environment: dict[str, str]) -> None:
    """Train two steps on a few pairs."""
    for language, sentence in SENTENCES.items():
        (root / f"train.{language}").write_text("".join(map(sentence.format, range(200))), encoding="utf-8")
    options = ["--out", "model", "--steps", "2", "--preset", "mini", "--force"]
    command = [find_regard(environment), "train", "--source", "train.en", "--target", "train.de", *options]
    subprocess.run(command, cwd=root, env=environment, check=True)  # noqa: S603


def serve(root: Path, environment: dict[str, str]) -> None:
    """Start the server with the trained model and a key, and translate a sentence."""
    regard = [find_regard(environment), "serve"]
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


def train_pod(root: Path, environment: dict[str, str]) -> None:
    """Run the command of jobset.yaml with two ranks, stop it after its first checkpoint, and let it finish."""
    manifest = yaml.safe_load((ROOT / "deploy/jobset.yaml").read_text())
    folder = root / "data"
    folder.mkdir()
    table = {"source": root / "train.en", "target": root / "train.de"}
    corpus = ", ".join(f'{name} = "{path}"' for name, path in table.items())
    settings = {"data": f'train = [{{ kind = "lines", {corpus} }}]', "model": 'preset = "mini"'}
    settings["train"] = 'steps = 60\nsave_every = 2\nschedule = { kind = "constant", lr = 1e-3 }'
    text = "".join(f"[{name}]\n{lines}\n" for name, lines in settings.items())
    (folder / "run.toml").write_text(text, encoding="utf-8")
    starts: list[subprocess.Popen[bytes]] = []

    def run(_pods: Sequence[int]) -> list[int]:
        """Run the only pod and return its exit code; at first it is stopped."""
        command = read_command(manifest, {"my-model-host-0-0.my-model": "localhost", "--ranks 8": "--ranks 2"})
        command[-1] = command[-1].replace(' --hosts 4 --rendezvous "$first:29400"', "")
        starts.append(subprocess.Popen(command, cwd=folder, env=environment))  # noqa: S603
        while len(starts) == 1 and not list(folder.glob("my-model/checkpoints/step-????????")):
            time.sleep(0.05)
            if starts[0].poll() is not None:
                raise SystemExit("The pod ended before its first checkpoint.")
        if len(starts) == 1:
            starts[0].send_signal(signal.SIGTERM)
        return [starts[-1].wait()]

    manifest["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"completions": 1, "parallelism": 1}
    state = run_jobset(manifest, run)
    if (state, len(starts)) != ("Completed", 2) or not (folder / "my-model/finished.json").is_file():
        raise SystemExit(f"The JobSet ended as {state} after {len(starts)} starts of its pod.")


def read_command(manifest: dict[str, Any], replacements: dict[str, str]) -> list[str]:
    """Return the command of the pods with other texts."""
    (container,) = read_job(manifest)["template"]["spec"]["containers"]
    command = list(container["command"])
    for text, other in replacements.items():
        if text not in command[-1]:
            raise SystemExit(f"The command does not contain {text}.")
        command[-1] = command[-1].replace(text, other)
    return command


def read_job(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the specification of the JobSet's only Job."""
    (replicated,) = manifest["spec"]["replicatedJobs"]
    job: dict[str, Any] = replicated["template"]["spec"]
    return job


def run_jobset(manifest: dict[str, Any], run: Callable[[Sequence[int]], Sequence[int]]) -> str:
    """Do what the controllers of Job and JobSet do: start pods again, all of them or none, depending on exit codes.

    Args:
        manifest: The JobSet.
        run: Runs pods by index and returns their exit codes.

    Returns:
        The JobSet's terminal state, Completed or Failed.
    """
    job, policy, restarts = read_job(manifest), manifest["spec"]["failurePolicy"], 0
    reasons = {"FailJob": "PodFailurePolicy", "Count": "BackoffLimitExceeded"}
    pods: Sequence[int] = range(job["completions"])
    while pods:
        codes = dict(zip(pods, run(pods), strict=True))
        actions = {pod: find_action(job, code) for pod, code in codes.items() if code}
        pods = [pod for pod, action in actions.items() if action == "Ignore"]
        failed = next((reasons[action] for action in ("FailJob", "Count") if action in actions.values()), None)
        if failed is None:
            continue
        rules = (rule["action"] for rule in policy["rules"] if failed in rule["onJobFailureReasons"])
        if next(rules, "RestartJobSet") == "FailJobSet" or restarts == policy["maxRestarts"]:
            return "Failed"
        restarts, pods = restarts + 1, range(job["completions"])
    return "Completed"


def find_action(job: dict[str, Any], code: int) -> str:
    """Return the action of the first rule for the exit code of a pod; without one the failure counts."""
    rules = job["podFailurePolicy"]["rules"]
    return next((str(rule["action"]) for rule in rules if code in rule["onExitCodes"]["values"]), "Count")


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
