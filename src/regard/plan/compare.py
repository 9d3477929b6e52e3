"""Compare parallelism layouts of a run: which ones fit into memory, and which is the cheapest."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from regard.config.codec import RUN_FILES
from regard.config.devices import DeviceSpec
from regard.config.run import RunConfig
from regard.plan.forecast import Forecast, Range, count_batches, make_forecast
from regard.plan.layouts import LayoutCandidate
from regard.plan.probe import Probe
from regard.plan.simulate import simulate

GIB = 2**30
SIMILAR = 0.01  # times that differ by less than this count as equal; the simpler layout wins
NOTABLE = 1.1  # a layout whose ranks send more than this many times the bytes is reported as slower for that reason


@dataclass(frozen=True)
class Plan:
    """Forecasts of several candidates and the choice among them."""

    run: RunConfig
    rows: int  # per batch
    length: int  # tokens per row
    forecasts: tuple[Forecast, ...]
    choice: Forecast | None  # the cheapest that fits
    reasons: tuple[str, ...]


def make_plan(
    run: RunConfig,
    candidates: Sequence[LayoutCandidate],
    *,
    length: int,
    memory: int,
    device: DeviceSpec | None = None,
    mfu: Range | None = None,
    price: Range | None = None,
    probe: Probe | None = None,
    report: Callable[[str], object] = lambda _: None,
) -> Plan:
    """Simulate every candidate; if one does not fit, retry with activation checkpointing.

    Args:
        run: Settings of the run.
        candidates: The layouts to compare.
        length: Tokens per row.
        memory: Memory in bytes of one device, or of one rank's share of this machine.
        device: A device of the table; None for this machine.
        mfu: Lowest and highest share of the peak arithmetic; default: the range of the table.
        price: USD per device and hour; default: the range of the table.
        probe: Measured seconds of this machine.
        report: Called with a message before every simulation.
    """
    rows = max(1, run.data.batch_tokens // length)
    forecasts: list[Forecast] = []
    for candidate in candidates:
        layout = candidate.layout
        if layout is None:
            continue
        for should_recompute in (False, True):
            if should_recompute and (run.train.checkpoint_activations or forecasts[-1].fits):
                continue
            changes = {**candidate.settings, **({"train.checkpoint_activations": True} if should_recompute else {})}
            variant = RUN_FILES.change(run, changes)
            name = candidate.name + (", recomputing activations" if should_recompute else "")
            report(name)
            simulation = simulate(
                variant,
                layout,
                rows=rows,
                length=length,
                batches=count_batches(variant, layout),
                on_cpu=device is None,
            )
            forecasts.append(
                make_forecast(
                    variant,
                    layout,
                    simulation,
                    name=name,
                    settings=changes,
                    length=length,
                    device=device,
                    memory=memory,
                    mfu=mfu,
                    price=price,
                    seconds=None if probe is None else probe.count_seconds(variant, layout, simulation),
                )
            )
    choice = _choose(forecasts)
    refusals: dict[str, list[str]] = {}
    for candidate in candidates:
        if candidate.layout is None:
            refusals.setdefault(candidate.refusal, []).append(candidate.name)
    refused = (f"Not {', '.join(names)}: {refusal}" for refusal, names in refusals.items())
    reasons = (*_explain(run, forecasts, choice), *refused)
    return Plan(run, rows, length, tuple(forecasts), choice, reasons)


def _choose(forecasts: Sequence[Forecast]) -> Forecast | None:
    """Return the fastest layout that fits (all use the same devices, so time is cost); ties go to the simplest."""
    fitting = [forecast for forecast in forecasts if forecast.fits]
    if not fitting:
        return None
    quickest = min(_time(forecast) for forecast in fitting)

    def complexity(forecast: Forecast) -> tuple[int, int]:
        layout = forecast.layout
        return 2 * (layout.shards > 1) + (layout.replicas > 1) + 2 * (layout.tensor > 1), forecast.peak

    return min((forecast for forecast in fitting if _time(forecast) <= quickest * (1 + SIMILAR)), key=complexity)


def _time(forecast: Forecast) -> float:
    return 0.0 if forecast.seconds is None else sum(forecast.seconds)


def _explain(run: RunConfig, forecasts: Sequence[Forecast], choice: Forecast | None) -> Iterator[str]:
    if not forecasts:
        yield "No layout supports this run."
        return
    if choice is None:
        least = min(forecasts, key=lambda forecast: forecast.peak - forecast.memory)
        missing = (least.peak - least.memory) / GIB
        yield (
            f"No layout fits into memory. The closest, {least.name}, lacks {missing:.1f} GiB: use more ranks, "
            f"a smaller data.batch_tokens (now {run.data.batch_tokens:,}), or devices with more memory."
        )
    elif len(forecasts) > 1:
        free = (choice.memory - choice.peak) / GIB
        yield f"{choice.name} is the cheapest that fits, with {free:.1f} GiB to spare."
        for forecast in forecasts:
            if forecast is not choice:
                yield _explain_other(forecast, choice)
    if any(forecast.is_here and forecast.peak == forecast.start_bytes for forecast in forecasts):
        yield "Memory peaks at startup, when the weights of both the parent and the new model are in memory."


def _explain_other(forecast: Forecast, choice: Forecast) -> str:
    if not forecast.fits:
        return f"{forecast.name} lacks {(forecast.peak - forecast.memory) / GIB:.1f} GiB."
    if forecast.seconds is None or choice.seconds is None:
        return f"{forecast.name} also fits."
    more = _time(forecast) / _time(choice) - 1
    if more <= SIMILAR:
        return f"{forecast.name} takes the same time; {choice.name} is simpler or needs less memory."
    causes = []
    if forecast.transfer > choice.transfer * NOTABLE:
        causes.append(f"a rank sends for {forecast.transfer:.2g} s per step instead of {choice.transfer:.2g}")
    elif forecast.wire_bytes > choice.wire_bytes * NOTABLE:
        amounts = f"{forecast.wire_bytes / 1e9:,.2f} GB per step instead of {choice.wire_bytes / 1e9:,.2f}"
        causes.append(f"a rank sends {amounts}")
    if forecast.has_checkpointed_activations and not choice.has_checkpointed_activations:
        causes.append("it computes every forward pass twice")
    if forecast.batches * forecast.layout.data_world_size > choice.batches * choice.layout.data_world_size:
        causes.append("some of its ranks wait for the others")
    why = f": {', and '.join(causes)}" if causes else ""
    factor = f"{100 * more:.0f}% longer" if more < 1 else f"{1 + more:.1f} times as long"
    return f"{forecast.name} takes {factor}{why}."
