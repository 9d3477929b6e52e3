"""The results of `regard evaluate` as tables on a terminal."""

from collections.abc import Sequence
from typing import Any

import typer  # noqa: TID251
from rich.markup import escape  # noqa: TID251
from rich.table import Table  # noqa: TID251

from regard.base.formatting import pluralize
from regard.cli.console import make_console

LEFT_ALIGNED = ("signature", "description", "output", "flags")  # columns of text, not of numbers
TableRows = list[tuple[str, ...]]
METRIC_NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER (lower is better)",
    "exact_match": "exact match",
    "wer": "word error rate (lower is better)",
}


def print_evaluation(evaluation: dict[str, Any]) -> None:
    """Print all parts of an evaluation that are present."""
    if "texts" in evaluation:
        typer.echo(pluralize(evaluation["texts"], "text"))
    if "scores" in evaluation:
        rows = [
            (METRIC_NAMES[name], f"{entry['value']:.2f}", entry["signature"])
            for name, entry in evaluation["scores"].items()
        ]
        _print_table("", ("metric", "score", "signature"), rows)
    for key, title in (("likelihood", ""), ("calibrated_likelihood", "with the fitted temperature")):
        if key in evaluation:
            headings = ("likelihood of references" if "scores" in evaluation else "likelihood", "value", "description")
            _print_table(title, headings, _format_likelihood_rows(evaluation[key]))
    if evaluation.get("by_length"):
        columns = ("source words", "texts", "BLEU", "chrF", "exact match")
        _print_table("by source length", columns, [_format_length_row(entry) for entry in evaluation["by_length"]])
    if evaluation.get("by_frequency"):
        columns = ("count in training text", "in references", "in output", "correct", "F1")
        _print_table(
            "by word frequency", columns, [_format_frequency_row(entry) for entry in evaluation["by_frequency"]]
        )
    if "comparisons" in evaluation:
        columns = ("paired bootstrap", "this", "other", "difference (95 % interval)", "p")
        _print_table("", columns, [_format_comparison_row(entry) for entry in evaluation["comparisons"]])
    if "probes" in evaluation:
        _print_repetition_probe(evaluation["probes"]["repetition"])
        _print_gender_probe(evaluation["probes"])


def _format_length_row(bucket: dict[str, Any]) -> tuple[str, ...]:
    return (
        _format_range(bucket),
        f"{bucket['texts']:,}",
        *(f"{bucket[name]:.2f}" for name in ("bleu", "chrf", "exact_match")),
    )


def _format_frequency_row(bucket: dict[str, Any]) -> tuple[str, ...]:
    counts = (f"{bucket[name]:,}" for name in ("references", "hypotheses", "correct"))
    return (_format_range(bucket), *counts, f"{bucket['f1']:.2f}")


def _format_comparison_row(comparison: dict[str, Any]) -> tuple[str, ...]:
    difference = f"{comparison['difference']:+.2f} ({comparison['low']:+.2f} to {comparison['high']:+.2f})"
    return (
        METRIC_NAMES[comparison["metric"]],
        f"{comparison['baseline']:.2f}",
        f"{comparison['candidate']:.2f}",
        difference,
        f"{comparison['p']:.4f}",
    )


def _format_likelihood_rows(likelihood: dict[str, Any]) -> TableRows:
    rows: TableRows = [
        ("perplexity", f"{likelihood['perplexity']:.2f}", f"of {likelihood['tokens']:,} tokens"),
        ("bits per byte", f"{likelihood['bits_per_byte']:.4f}", f"of {likelihood['bytes']:,} bytes"),
        ("accuracy", f"{likelihood['accuracy']:.4f}", "most probable token is correct"),
        ("confidence", f"{likelihood['confidence']:.4f}", "mean probability of the most probable token"),
        ("calibration error", f"{likelihood['calibration_error']:.4f}", "ECE, 10 bins of equal width"),
        ("calibration error", f"{likelihood['calibration_error_equal_mass']:.4f}", "ECE, 10 bins of equal mass"),
    ]
    return [*rows, ("temperature", f"{likelihood['temperature']:.4f}", "")] if likelihood["temperature"] != 1 else rows


def _print_repetition_probe(probe: dict[str, Any]) -> None:
    cases = probe["cases"]
    rows = []
    for case in cases:
        numbers = (str(case["excess"]), f"{case['relevance']:.2f}")
        rows.append((f"{case['word']} x {case['times']}", _shorten(case["output"]), *numbers, _format_flags(case)))
    title = f"repetitive input: {probe['flagged']} of {len(cases)} outputs flagged"
    _print_table(title, ("input", "output", "excess repeats", "relevance", "flags"), rows)


def _print_gender_probe(probes: dict[str, Any]) -> None:
    gender = probes["gender"]
    if gender is None:
        typer.echo(f"\n{probes['skipped']}")
        return
    rows = []
    for name, key, pronoun_note in (
        ("He is a ...", "he", f"{gender['he_kept']} of {gender['pairs']} 'er'"),
        ("She is a ...", "she", f"{gender['she_kept']} of {gender['pairs']} 'sie'"),
        ("The ... is", "unspecified", ""),
    ):
        rows.append((name, *(str(gender[key][form]) for form in ("masculine", "feminine", "unclear")), pronoun_note))
    _print_table(
        "gender of professions, English to German", ("", "masculine", "feminine", "unclear", "pronoun kept"), rows
    )


def _format_flags(case: dict[str, Any]) -> str:
    return ", ".join(name for name in ("oscillates", "detached") if case[name])


def _format_range(bucket: dict[str, Any]) -> str:
    if bucket["high"] is None:
        return f"{bucket['low']:,} and more"
    return f"{bucket['low']:,}" if bucket["low"] == bucket["high"] else f"{bucket['low']:,} to {bucket['high']:,}"


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _print_table(title: str, columns: tuple[str, ...], rows: Sequence[Sequence[str]]) -> None:
    typer.echo(f"\n{title}" if title else "")
    table = Table(*columns, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "left" if column.header in LEFT_ALIGNED else "right"
    for column in table.columns:
        column.overflow = "fold"  # a truncated signature is useless
    for row in rows:
        table.add_row(*map(escape, row))
    make_console().print(table)
