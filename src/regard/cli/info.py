"""`regard info`: versions, devices, memory and extras of this installation."""

import json
import os
import platform
from pathlib import Path
from typing import Annotated, Any

import typer  # noqa: TID251

from regard.base.extras import EXTRAS, install_command, list_missing
from regard.base.formatting import pluralize
from regard.base.limits import count_cores, total_memory
from regard.base.version import __version__
from regard.cli.options import option


def info(as_json: Annotated[bool, option("Print one JSON object.", "--json")] = False) -> None:
    """Show versions, devices, memory and extras."""
    facts = collect_info()
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
    else:
        _print_info(facts)


def collect_info() -> dict[str, Any]:
    """Collect the values that --json prints."""
    import torch  # only when needed

    from regard.training.device import prefers_bfloat16

    names = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    return {
        "regard": __version__,
        "folder": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "devices": [
            {
                "name": name,
                "model": _find_processor() if name == "cpu" else torch.cuda.get_device_name(name),
                "precision": "bfloat16" if prefers_bfloat16(name) else "float32",
            }
            for name in names
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
