"""What `regard evaluate` found, as tables on a terminal."""

from collections.abc import Sequence
from typing import Any

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251
from rich.markup import escape  # noqa: TID251
from rich.table import Table  # noqa: TID251

LEFT_ALIGNED = ("signature", "what it is", "out", "flags")  # columns of words, not of numbers
TableRows = list[tuple[str, ...]]
METRIC_NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER (lower is better)",
    "exact_match": "exact match",
    "wer": "word error rate (lower is better)",
}


def print_evaluation(evaluation: dict[str, Any]) -> None:
    """Print everything that was found, part by part."""
    if "texts" in evaluation:
        typer.echo(f"{evaluation['texts']:,} texts")
    if "scores" in evaluation:
        rows = [
            (METRIC_NAMES[name], f"{entry['value']:.2f}", entry["signature"])
            for name, entry in evaluation["scores"].items()
        ]
        _print_table("", ("score", "", "signature"), rows)
    if "certainty" in evaluation:
        _print_table("", ("given texts", "", "what it is"), _format_likelihood_rows(evaluation["certainty"]))
    if "fitted" in evaluation:
        _print_table(
            "with the fitted temperature",
            ("given texts", "", "what it is"),
            _format_likelihood_rows(evaluation["fitted"]),
        )
    if evaluation.get("by_length"):
        columns = ("words of the source", "texts", "BLEU", "chrF", "exact match")
        _print_table("by length", columns, [_format_length_row(entry) for entry in evaluation["by_length"]])
    if evaluation.get("by_frequency"):
        columns = ("times in the training text", "in references", "written", "right", "F1")
        _print_table(
            "by frequency of words", columns, [_format_frequency_row(entry) for entry in evaluation["by_frequency"]]
        )
    if "comparisons" in evaluation:
        columns = ("paired bootstrap", "this", "other", "difference, 95 %", "p")
        _print_table("", columns, [_format_comparison_row(entry) for entry in evaluation["comparisons"]])
    if "probes" in evaluation:
        _print_repetition_probe(evaluation["probes"]["garbage"])
        _print_gender_probe(evaluation["probes"])


def _format_length_row(bucket: dict[str, Any]) -> tuple[str, ...]:
    return (
        _format_range(bucket),
        f"{bucket['texts']:,}",
        *(f"{bucket[name]:.2f}" for name in ("bleu", "chrf", "exact_match")),
    )


def _format_frequency_row(bucket: dict[str, Any]) -> tuple[str, ...]:
    counts = (f"{bucket[name]:,}" for name in ("references", "hypotheses", "right"))
    return (_format_range(bucket), *counts, f"{bucket['f1']:.2f}")


def _format_comparison_row(comparison: dict[str, Any]) -> tuple[str, ...]:
    difference = f"{comparison['difference']:+.2f} ({comparison['low']:+.2f} to {comparison['high']:+.2f})"
    return (
        METRIC_NAMES[comparison["metric"]],
        f"{comparison['one']:.2f}",
        f"{comparison['other']:.2f}",
        difference,
        f"{comparison['p']:.4f}",
    )


def _format_likelihood_rows(likelihood: dict[str, Any]) -> TableRows:
    rows: TableRows = [
        ("perplexity", f"{likelihood['perplexity']:.2f}", f"of {likelihood['tokens']:,} tokens"),
        ("bits per byte", f"{likelihood['bits_per_byte']:.4f}", f"of {likelihood['bytes']:,} bytes"),
        ("accuracy", f"{likelihood['accuracy']:.4f}", "first choices that are right"),
        ("confidence", f"{likelihood['confidence']:.4f}", "their mean probability"),
        ("calibration error", f"{likelihood['calibration_error']:.4f}", "10 bins of equal width"),
        ("calibration error", f"{likelihood['calibration_error_equal_mass']:.4f}", "10 bins of equal mass"),
    ]
    return [*rows, ("temperature", f"{likelihood['temperature']:.4f}", "")] if likelihood["temperature"] != 1 else rows


def _print_repetition_probe(probe: dict[str, Any]) -> None:
    cases = probe["cases"]
    rows = []
    for case in cases:
        numbers = (str(case["excess"]), f"{case['relevance']:.2f}")
        rows.append((f"{case['word']} x {case['times']}", _shorten(case["output"]), *numbers, _format_flags(case)))
    title = f"garbage in: {probe['flagged']} of {len(cases)} flagged"
    _print_table(title, ("in", "out", "repeats more", "relevance", "flags"), rows)


def _print_gender_probe(probes: dict[str, Any]) -> None:
    gender = probes["gender"]
    if gender is None:
        typer.echo(f"\n{probes['skipped']}")
        return
    rows = []
    for name, key, pronouns_kept in (
        ("He is a ...", "he", f"{gender['he_kept']} of {gender['pairs']} 'er'"),
        ("She is a ...", "she", f"{gender['she_kept']} of {gender['pairs']} 'sie'"),
        ("The ... is", "unsaid", ""),
    ):
        rows.append((name, *(str(gender[key][form]) for form in ("masculine", "feminine", "unclear")), pronouns_kept))
    _print_table("men and women", ("", "masculine", "feminine", "unclear", "pronoun kept"), rows)


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
        column.overflow = "fold"  # a signature that is cut off is none
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)
