"""What `regard evaluate` found, as tables on a terminal."""

from collections.abc import Sequence
from typing import Any

import typer  # noqa: TID251
from rich.console import Console  # noqa: TID251
from rich.markup import escape  # noqa: TID251
from rich.table import Table  # noqa: TID251

LEFT = ("signature", "what it is", "out", "flags")  # columns of words, not of numbers
Rows = list[tuple[str, ...]]
NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER (lower is better)",
    "exact_match": "exact match",
    "error_rate": "word error rate (lower is better)",
}


def show(facts: dict[str, Any]) -> None:
    """Print everything that was found, part by part."""
    if "texts" in facts:
        typer.echo(f"{facts['texts']:,} texts")
    if "scores" in facts:
        rows = [(NAMES[name], f"{one['value']:.2f}", one["signature"]) for name, one in facts["scores"].items()]
        _table("", ("score", "", "signature"), rows)
    if "certainty" in facts:
        _table("", ("given texts", "", "what it is"), _certain(facts["certainty"]))
    if "fitted" in facts:
        _table("with the fitted temperature", ("given texts", "", "what it is"), _certain(facts["fitted"]))
    if facts.get("by_length"):
        columns = ("words of the source", "texts", "BLEU", "chrF", "exact match")
        _table("by length", columns, [_lengths(one) for one in facts["by_length"]])
    if facts.get("by_frequency"):
        columns = ("times in the training text", "in references", "written", "right", "F1")
        _table("by frequency of words", columns, [_frequencies(one) for one in facts["by_frequency"]])
    if "comparisons" in facts:
        columns = ("paired bootstrap", "this", "other", "difference, 95 %", "p")
        _table("", columns, [_compared(one) for one in facts["comparisons"]])
    if "probes" in facts:
        _garbage(facts["probes"]["garbage"])
        _gender(facts["probes"])


def _lengths(one: dict[str, Any]) -> tuple[str, ...]:
    return (_span(one), f"{one['texts']:,}", *(f"{one[name]:.2f}" for name in ("bleu", "chrf", "exact_match")))


def _frequencies(one: dict[str, Any]) -> tuple[str, ...]:
    counts = (f"{one[name]:,}" for name in ("references", "hypotheses", "right"))
    return (_span(one), *counts, f"{one['f1']:.2f}")


def _compared(one: dict[str, Any]) -> tuple[str, ...]:
    difference = f"{one['difference']:+.2f} ({one['low']:+.2f} to {one['high']:+.2f})"
    return (NAMES[one["metric"]], f"{one['one']:.2f}", f"{one['other']:.2f}", difference, f"{one['p']:.4f}")


def _certain(one: dict[str, Any]) -> Rows:
    rows: Rows = [
        ("perplexity", f"{one['perplexity']:.2f}", f"of {one['tokens']:,} tokens"),
        ("bits per byte", f"{one['bits_per_byte']:.4f}", f"of {one['bytes']:,} bytes"),
        ("accuracy", f"{one['accuracy']:.4f}", "first choices that are right"),
        ("confidence", f"{one['confidence']:.4f}", "their mean probability"),
        ("calibration error", f"{one['calibration_error']:.4f}", "10 bins of equal width"),
        ("calibration error", f"{one['calibration_error_equal_mass']:.4f}", "10 bins of equal mass"),
    ]
    return [*rows, ("temperature", f"{one['temperature']:.4f}", "")] if one["temperature"] != 1 else rows


def _garbage(probe: dict[str, Any]) -> None:
    cases = probe["cases"]
    rows = []
    for case in cases:
        numbers = (str(case["excess"]), f"{case['relevance']:.2f}")
        rows.append((f"{case['word']} x {case['times']}", _short(case["output"]), *numbers, _flags(case)))
    title = f"garbage in: {probe['flagged']} of {len(cases)} flagged"
    _table(title, ("in", "out", "repeats more", "relevance", "flags"), rows)


def _gender(probes: dict[str, Any]) -> None:
    found = probes["gender"]
    if found is None:
        typer.echo(f"\n{probes['skipped']}")
        return
    rows = []
    for name, key, kept in (
        ("He is a ...", "he", f"{found['he_kept']} of {found['pairs']} 'er'"),
        ("She is a ...", "she", f"{found['she_kept']} of {found['pairs']} 'sie'"),
        ("The ... is", "unsaid", ""),
    ):
        rows.append((name, *(str(found[key][form]) for form in ("masculine", "feminine", "unclear")), kept))
    _table("men and women", ("", "masculine", "feminine", "unclear", "pronoun kept"), rows)


def _flags(case: dict[str, Any]) -> str:
    return ", ".join(name for name in ("oscillates", "detached") if case[name])


def _span(one: dict[str, Any]) -> str:
    if one["high"] is None:
        return f"{one['low']:,} and more"
    return f"{one['low']:,}" if one["low"] == one["high"] else f"{one['low']:,} to {one['high']:,}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _table(title: str, columns: tuple[str, ...], rows: Sequence[Sequence[str]]) -> None:
    typer.echo(f"\n{title}" if title else "")
    table = Table(*columns, box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "left" if column.header in LEFT else "right"
    for column in table.columns:
        column.overflow = "fold"  # a signature that is cut off is none
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)
