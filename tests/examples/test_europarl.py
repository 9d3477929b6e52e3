"""`examples/europarl/run_all.py` chooses learning rates, trains four models and skips what is done."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.config.codec import RUN_FILES
from regard.config.toml_file import parse_settings

EUROPARL = Path(__file__).parents[2] / "examples" / "europarl"
SIZES = ["--preset", "tiny", "--step-tokens", "512"]
BEST = {"regard": 0.006, "hugging-face": 0.002, "marian": 0.0005}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(EUROPARL))
    for name in ("run", "run_all"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import run_all  # type: ignore[import-not-found]

    return run_all


def test_every_model_is_trained_once_with_the_best_rate(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[tuple[str, list[str]]] = []
    measured: set[str] = set()

    def run(comparison: Any, name: str, command: list[str]) -> float:
        """Write what the command would, and return the seconds of its steps."""
        commands.append((name, command))
        folder = comparison.runs / name
        folder.mkdir(parents=True, exist_ok=True)
        if name == "corpus":
            (folder / "best").mkdir(exist_ok=True)
            (comparison.runs / "shards" / "train").mkdir(parents=True, exist_ok=True)
            if "prepare" in command:
                (comparison.runs / "shards" / "train" / "corpus.json").write_text("{}")
        elif "-trial-" in name:
            assert (folder / "speed.json").is_file() == (name.split("-trial-")[0] in measured)
            if "regard" not in name:
                (folder / "speed.json").write_text("1.5")  # the trials after it read it
                measured.add(name.split("-trial-")[0])
            toolkit, rate = name.split("-trial-")
            (folder / "RESULTS.json").write_text(json.dumps({"loss": 5 + abs(float(rate) - BEST[toolkit])}))
            assert command[-1] == "--trial"
        elif name.endswith("-steps"):
            return 10 + 0.5 * int(name.split("-")[1])
        else:
            (folder / "RESULTS.json").write_text("{}")
            (folder / "test.de").write_text(f"{name}\n")
        return 1.0

    monkeypatch.setattr(script.Comparison, "_run", run)
    arguments = ["--data", str(tmp_path), "--runs", str(tmp_path / "runs"), "--nice", "0", "--jobs", "3"]
    monkeypatch.setattr(sys, "argv", ["run_all.py", *arguments, "--minutes", "10", "--trial-minutes", "2", *SIZES])
    script.main()
    trained = {name: command for name, command in commands if not name.endswith("-steps")}
    assert sum(name == "corpus" for name, _ in commands) == 2
    assert sum("-trial-" in name for name in trained) == 9
    for name, rate in (*BEST.items(), ("regard-adam", BEST["hugging-face"])):
        assert trained[name][trained[name].index("--rate") + 1] == str(rate)
        assert (tmp_path / "runs" / "hypotheses" / f"{name}.de").read_text() == f"{name}\n"
    for name in ("regard", "regard-adam"):  # half a second per step, ten minutes
        assert f"data.prepared='{tmp_path / 'runs' / 'shards'}'" in trained[name]
        assert "train.step_tokens=512" in trained[name]
        assert trained[name][trained[name].index("--preset") + 1] == "tiny"
        assert trained[name][trained[name].index("--steps") + 1] == "1200"
    count = len(commands)
    script.main()
    assert len(commands) == count


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize("recipe", ["muon", "adam"])
def test_recipe_names_settings_that_exist(recipe: str) -> None:
    import run  # type: ignore[import-not-found]

    settings = run.RECIPES[recipe] | {"train.schedule": run.make_schedule(0.003, 1000)}
    changes = parse_settings(f"{name}={value}" for name, value in settings.items())
    lines = {"kind": "lines", "source": "train.en", "target": "train.de"}
    table = {"model": {"preset": "tiny"}, "train": {"steps": 1000}, "data": {"train": [lines]}}
    recipe_run = RUN_FILES.parse(table, changes)
    assert recipe_run.train.schedule.kind == "linear"
    assert recipe_run.train.schedule.lr == 0.003


def test_the_cpu_time_of_a_command_is_measured(script: Any, tmp_path: Path) -> None:
    comparison = script.Comparison(tmp_path, tmp_path / "runs", "pymarian", "tiny", 4096)
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    seconds = comparison._run("busy", [sys.executable, "-c", busy])
    assert 0.25 < seconds < 10
    assert json.loads((tmp_path / "runs" / "logs" / "busy-seconds.json").read_text()) == seconds
    with pytest.raises(script.StoppedError):
        comparison._run("wrong", [sys.executable, "-c", "raise SystemExit(3)"])


def test_a_stop_ends_the_commands(script: Any, tmp_path: Path) -> None:
    """SIGTERM reaches the command that runs, and the script ends with the code of a stop."""
    arguments = ["--data", str(tmp_path), "--runs", str(tmp_path / "runs"), "--nice", "0"]
    command = [sys.executable, str(EUROPARL / "run_all.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own command
        assert process.stdout is not None
        process.stdout.readline()  # the first command has been started
        process.terminate()
        assert process.wait(60) == script.STOPPED
