"""`regard plan`: forecast what a run needs before it starts. `regard.plan` does the work; this file displays it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251
from rich.table import Table  # noqa: TID251

from regard.base import limits
from regard.base.errors import RegardError
from regard.base.formatting import format_duration, pluralize
from regard.cli.console import make_console
from regard.cli.options import StringList, option, settings_option
from regard.config import codec
from regard.config.toml_file import parse_settings

if TYPE_CHECKING:
    from regard.config.devices import DeviceSpec
    from regard.config.run import RunConfig
    from regard.plan.compare import Plan
    from regard.plan.forecast import Forecast, Range

EXAMPLES = """
regard plan my-model/run.toml
regard plan run.toml --ranks 2 --write
regard plan run.toml --ranks 512 --device h100
regard plan run.toml --ranks 64 --device a100 --parallel hsdp=8 --mfu 0.4 --price 1.80
"""
PLANNED_LENGTH = 64  # tokens per row of sentence pairs or labeled texts; running text fills rows of data.max_length
GIB, GB = 2**30, 1e9


def plan(
    run_file: Annotated[Path, typer.Argument(metavar="RUN.TOML", help="Run file or run folder.")],
    settings: Annotated[StringList, settings_option("data.batch_tokens=8192")] = None,
    ranks: Annotated[int, option("Number of processes, one per device.", min=1, max=16_384)] = 1,
    device: Annotated[
        str | None, option("Device to plan for: a100, h100, h200. Default: this machine, measured.", metavar="NAME")
    ] = None,
    parallel: Annotated[
        str | None,
        option("ddp, fsdp, hsdp=N, tensor=N, joined by +. Default: the run file's, or compare all.", metavar="LAYOUT"),
    ] = None,
    length: Annotated[
        int | None, option("Tokens per row. Default: data.max_length for running text, else 64.", min=1)
    ] = None,
    mfu: Annotated[
        str | None,
        option(
            "Model FLOPs utilization, e.g. 0.4 or 0.3-0.5. Default: the device's.",
            metavar="SHARE",
        ),
    ] = None,
    price: Annotated[
        str | None, option("USD per device-hour, e.g. 2.50 or 2-4. Default: the device's.", metavar="USD")
    ] = None,
    probe: Annotated[bool, option("Time a few steps on this machine (without --device).")] = True,
    write: Annotated[
        bool,
        option("Write the choice next to the run file; the run then compares it with its actual needs.", "--write"),
    ] = False,
    as_json: Annotated[bool, option("Print the plan as JSON.", "--json")] = False,
) -> None:
    """Forecast memory, collectives, checkpoint size, time and cost of a run before it starts.

    One step runs on meta tensors, so you can plan any number of ranks on any machine. Figures for other devices are
    simulated; time and cost are ranges.
    """
    run = _load_run(run_file, settings)
    from regard.config.devices import find_device
    from regard.plan.compare import make_plan  # these import torch: only when needed
    from regard.plan.layouts import list_candidates, make_candidate
    from regard.plan.outcome import write_plan
    from regard.plan.probe import probe as measure

    if mfu is not None and device is None:
        raise RegardError("--mfu needs --device: this machine is measured.", hint="Add --device, or leave out --mfu.")
    spec = None if device is None else find_device(device)
    if length is None:
        length = run.data.max_length if run.model.task == "causal_lm" else min(PLANNED_LENGTH, run.data.max_length)
    per_host = ranks if spec is None else spec.per_host
    candidates = (
        list_candidates(run, ranks, per_host) if parallel is None else [make_candidate(run, parallel, ranks, per_host)]
    )
    rows = max(1, run.data.batch_tokens // length)
    measured = measure(run, rows=rows, length=length) if spec is None and probe else None
    result = make_plan(
        run,
        candidates,
        length=length,
        memory=limits.total_memory() // ranks if spec is None else spec.memory,
        device=spec,
        mfu=_parse_range(mfu, "--mfu"),
        price=_parse_range(price, "--price"),
        probe=measured,
        report=lambda text: typer.echo(f"simulating {text}", err=True),
    )
    if write:
        if result.choice is None:
            raise RegardError(f"No plan to write: {result.reasons[0]}", location=str(run_file))
        path = write_plan(run_file / "run.toml" if run_file.is_dir() else run_file, _to_dict(result.choice, spec))
        typer.echo(f"wrote {path}", err=True)
    if as_json:
        typer.echo(json.dumps([_to_dict(forecast, spec) for forecast in result.forecasts], indent=1))
        return
    _print_plan(result, spec, ranks)


def _load_run(path: Path, settings: Sequence[str] | None) -> "RunConfig":
    run = codec.RUN_FILES.load(path / "run.toml" if path.is_dir() else path, parse_settings(settings or []))
    from regard.training.vocabularies import expect_vocabularies  # imports torch: only when needed

    return expect_vocabularies(run)


def _parse_range(text: str | None, location: str) -> "Range | None":
    if text is None:
        return None
    try:
        low, *rest = (float(part) for part in text.split("-"))
        high = rest[0] if rest else low
    except (ValueError, IndexError):
        low, high = 1.0, 0.0
    if not 0 < low <= high or (location == "--mfu" and high > 1):
        raise RegardError(f"'{text}' is neither a number nor a range.", location=location, hint="Give 0.4 or 0.3-0.5.")
    return low, high


def _print_plan(plan: "Plan", device: "DeviceSpec | None", ranks: int) -> None:
    run, first = plan.run, plan.forecasts[0] if plan.forecasts else None
    machine = "this machine" if device is None else f"{device.name} ({device.memory / GB:.0f} GB)"
    batches = pluralize(run.gradient_accumulation, "batch", "batches")
    tokens = f"{plan.rows} x {plan.length} tokens per batch, {batches} per step"
    typer.echo(f"{pluralize(ranks, 'rank')} on {machine}, {tokens}, {run.train.precision}, simulated")
    if first is not None:
        size = f"{first.parameters:,} parameters, {first.flops:.3g} FLOP per step, {run.train.steps:,} steps"
        typer.echo(f"{size}, {first.checkpoint_bytes / GB:.2f} GB per checkpoint\n")
    table = Table("", box=None, pad_edge=False)
    for heading in ("memory", "fits", "states", "collectives per step", "sent", "per step", "all", "cost"):
        table.add_column(heading, justify="right")
    for forecast in plan.forecasts:
        table.add_row(*_format_row(forecast), style="bold" if forecast is plan.choice else "")
    make_console().print(table)
    typer.echo()
    for reason in plan.reasons:
        typer.echo(f"- {reason}")
    if plan.choice is not None and plan.choice.settings:
        changes = " ".join(f"--set {name}={json.dumps(value)}" for name, value in plan.choice.settings.items())
        typer.echo(f"- Settings of {plan.choice.name}: {changes.replace(chr(34), '')}")
    typer.echo("- Python and torch add about 0.4 GiB per process.") if device is None else None
    if device is not None:
        for figure, source in device.sources.items():
            typer.echo(f"- Source of {figure}: {source}")


def _format_row(forecast: "Forecast") -> list[str]:
    simulation = forecast.simulation
    states = simulation.weights + simulation.optimizer_state + simulation.ema
    calls = ", ".join(f"{count:,} {kind.replace('_', '-')}" for kind, count in sorted(forecast.collectives.items()))
    return [
        forecast.name,
        f"{forecast.peak / GIB:.2f} GiB",
        "yes" if forecast.fits else "no",
        f"{states / GIB:.2f} GiB",
        calls or "none",
        f"{forecast.wire_bytes / GB:,.3g} GB",
        _format_range(forecast.seconds, lambda value: f"{value:.3g} s"),
        _format_range(forecast.hours, lambda value: format_duration(3600 * value)),
        _format_range(forecast.cost, lambda value: f"${value:,.0f}"),
    ]


def _format_range(values: "Range | None", write: Any) -> str:
    if values is None:
        return "-"
    low, high = map(write, values)
    return str(low) if low == high else f"{low} - {high}"


def _to_dict(forecast: "Forecast", device: "DeviceSpec | None") -> dict[str, Any]:
    simulation = forecast.simulation
    return {
        "layout": forecast.name,
        "settings": dict(forecast.settings),
        "ranks": forecast.layout.world_size,
        "device": "this machine" if device is None else device.name,
        "is_simulated": True,
        "fits": forecast.fits,
        "parameters": forecast.parameters,
        "peak_bytes": forecast.peak,
        "tensor_bytes": simulation.peak,
        "start_bytes": forecast.start_bytes,
        "weight_bytes": simulation.weights,
        "optimizer_bytes": simulation.optimizer_state,
        "ema_bytes": simulation.ema,
        "checkpoint_bytes": forecast.checkpoint_bytes,
        "wire_bytes": forecast.wire_bytes,
        "collectives": dict(forecast.collectives),
        "flops": forecast.flops,
        "steps": forecast.steps,
        "seconds": forecast.seconds,
        "hours": forecast.hours,
        "cost": forecast.cost,
    }
