"""`regard info`: versions, devices, memory and extras of this installation."""

import json
import os
import platform
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251

from regard.base.extras import EXTRAS, install_command, list_missing
from regard.base.files import write_atomic
from regard.base.formatting import pluralize
from regard.base.limits import count_cores, total_memory
from regard.base.version import __version__
from regard.cli.options import option

if TYPE_CHECKING:
    from regard.training.selftest import SelfTestResult

REPORT = Path("regard-selftest.json")  # in the current folder


def info(
    as_json: Annotated[bool, option("Print one JSON object.", "--json")] = False,
    selftest: Annotated[
        bool,
        option(
            f"Train small models on every device (up to five minutes), check the results, and write {REPORT} for a bug "
            "report.",
            "--selftest",
        ),
    ] = False,
) -> None:
    """Show versions, devices, memory and extras, or test this machine."""
    if selftest:
        raise typer.Exit(_run_selftest(as_json=as_json))
    facts = collect_info()
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
    else:
        _print_info(facts)


def collect_info() -> dict[str, Any]:
    """Collect the values that --json prints."""
    import torch  # only when needed

    from regard.training.device import prefers_bfloat16

    gpus = {f"cuda:{index}": torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())}
    gpus |= {"mps": _find_processor()} if torch.backends.mps.is_available() else {}
    return {
        "regard": __version__,
        "folder": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or torch.version.hip,
        "system": f"{platform.system()} {platform.machine()}",
        "devices": [
            {
                "name": name,
                "model": model,
                "precision": "bfloat16" if prefers_bfloat16(name) else "float32",
            }
            for name, model in {"cpu": _find_processor(), **gpus}.items()
        ],
        "cores": count_cores(),
        "threads": torch.get_num_threads(),
        "memory": total_memory(),
        "available_memory": int(available_memory()) or None,
        "extras": {
            extra: {
                "purpose": purpose,
                "missing": (missing := list_missing(extra)),
                "install": install_command(extra) if missing else None,
            }
            for extra, (_, purpose) in EXTRAS.items()
        },
    }


def _run_selftest(*, as_json: bool) -> int:
    """Run the self-test, print a line per check and write the report; return the exit code."""
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # before torch is imported: gloo warns about host names
    from regard.training.selftest import run_selftest  # imports torch: only when needed

    if not as_json:
        typer.echo(_format_row("", "check", "model", "device", "precision", "value", "limit"))
    with tempfile.TemporaryDirectory(prefix="regard-selftest-") as folder:
        results = run_selftest(Path(folder), (lambda _: None) if as_json else _print_result)
    facts = {name: value for name, value in collect_info().items() if name not in ("folder", "extras")}
    counts = Counter(result.verdict for result in results)
    report = {**facts, "passed": not counts["FAIL"], "results": [asdict(result) for result in results]}
    write_atomic(REPORT, json.dumps(report, indent=1).encode() + b"\n")
    if as_json:
        typer.echo(json.dumps(report))
    else:
        summary = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        typer.echo(f"\n{summary}. Attach {REPORT} to a bug report; it has no paths and no names.")
    return int(not report["passed"])


def _print_result(result: "SelfTestResult") -> None:
    value = "" if result.value is None else f"{result.value:.2g}"
    limit = "" if result.limit is None else f"{result.limit:g}"
    row = (result.verdict, result.check, result.model, result.device, result.precision, value, limit)
    typer.echo(f"{_format_row(*row)} {result.detail}".rstrip())


def _format_row(*cells: str) -> str:
    return " ".join(cell.ljust(width) for cell, width in zip(cells, (8, 12, 11, 7, 9, 7, 6), strict=True))


def _print_info(facts: dict[str, Any]) -> None:
    """Print one value per line; lines are not wrapped, so commands can be copied."""
    limit = f", set by OMP_NUM_THREADS={os.environ['OMP_NUM_THREADS']}" if "OMP_NUM_THREADS" in os.environ else ""
    available = f", {facts['available_memory'] / 1e9:.1f} GB available" if facts["available_memory"] else ""
    lines = [
        ("regard", f"{facts['regard']} in {facts['folder']}"),
        ("Python", f"{facts['python']} ({facts['system']})"),
        ("torch", facts["torch"]),
        *(("device", _describe_device(device)) for device in facts["devices"]),
        ("threads", f"{facts['threads']} of {pluralize(facts['cores'], 'core')}{limit}"),
        ("memory", f"{facts['memory'] / 1e9:.1f} GB{available}"),
    ]
    for extra, details in facts["extras"].items():
        state = "not installed" if details["missing"] else "installed"
        lines.append(("extra", f"{extra}, for {details['purpose']}: {state}"))
        if details["missing"]:
            lines.append(("", details["install"]))
    for name, text in lines:
        typer.echo(f"{name:<8} {text}")


def _describe_device(device: dict[str, str]) -> str:
    units = "has" if device["precision"] == "bfloat16" else "has no"
    precision = f"{units} bfloat16 matrix units: trains in {device['precision']} by default"
    return f"{device['name']}, {device['model']}; {precision}"


def _find_processor() -> str:
    """Return the processor name reported by the system."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def available_memory() -> float:
    """Return the bytes that a new process can use without swapping, or 0 if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0.0)
