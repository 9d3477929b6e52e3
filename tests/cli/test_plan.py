"""`regard plan` as a user calls it."""

import json
from pathlib import Path

from regard.config.codec import RUN_FILES
from tests.commands import run_command
from tests.plan.runs import make_run


def write_run(folder: Path) -> str:
    path = folder / "run.toml"
    RUN_FILES.save(make_run(train__step_tokens=1024), path)
    return str(path)


def test_table_of_a_device(tmp_path: Path) -> None:
    done = run_command(
        "plan", write_run(tmp_path), "--ranks", "2", "--device", "a100", "--parallel", "fsdp", columns=200
    )
    assert done.code == 0, done.errors
    assert "2 ranks on a100 (80 GB)" in done.output
    assert "simulated" in done.output
    assert "5 all-gather, 3 all-reduce, 3 reduce-scatter" in done.output
    assert "Source of price: https://" in done.output


def test_json_of_this_machine_names_the_checkpoint(tmp_path: Path) -> None:
    done = run_command("plan", write_run(tmp_path), "--no-probe", "--json")
    assert done.code == 0, done.errors
    (forecast,) = json.loads(done.output)
    assert forecast["layout"] == "one process"
    assert forecast["seconds"] is None
    assert forecast["checkpoint_bytes"] > 3 * 4 * forecast["parameters"]
    assert forecast["collectives"] == {}


def test_wrong_values_are_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    for option, value in (("--mfu", "1.5"), ("--price", "free"), ("--device", "abacus"), ("--parallel", "magic")):
        done = run_command("plan", path, "--device", "h100", option, value)
        assert done.code == 1, value
        assert option in done.errors


def test_the_share_of_the_peak_needs_a_device(tmp_path: Path) -> None:
    done = run_command("plan", write_run(tmp_path), "--mfu", "0.4")
    assert done.code == 1
    assert "--mfu needs --device" in done.errors
