"""Terminal tables of `regard evaluate` results."""

from collections.abc import Sequence
from math import log2
from typing import Any

import typer  # noqa: TID251
from rich.markup import escape  # noqa: TID251
from rich.table import Table  # noqa: TID251

from regard.base.formatting import pluralize, truncate
from regard.cli.console import make_console

MAX_MATRIX_LABELS = 8  # a wider confusion matrix is not readable
MAX_CONFUSIONS = 10
LEFT_ALIGNED = ("predicted as", "signature", "description", "output", "flags")  # text columns, not numbers
TableRows = list[tuple[str, ...]]
LOWER_IS_BETTER = " (lower is better)"
METRIC_NAMES = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "ter": "TER" + LOWER_IS_BETTER,
    "exact_match": "exact match",
    "wer": "word error rate" + LOWER_IS_BETTER,
    "cer": "character error rate" + LOWER_IS_BETTER,
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "matthews": "Matthews correlation",
    "entity_f1": "entity F1",
    "retrieval_at_1": "retrieval@1",
}


def print_evaluation(evaluation: dict[str, Any]) -> None:
    """Print every section that the evaluation contains."""
    for key, noun in (("texts", "text"), ("images", "image"), ("audio", "audio clip")):
        if key in evaluation:
            typer.echo(pluralize(evaluation[key], noun) + _describe_engines(evaluation))
    if "by_label" in evaluation:
        _print_label_report(evaluation)
    elif "scores" in evaluation:
        rows = [
            (METRIC_NAMES[name], f"{entry['value']:.2f}", entry["signature"])
            for name, entry in evaluation["scores"].items()
        ]
        _print_table("", ("metric", "score", "signature"), rows)
    if "bits_per_pixel" in evaluation:
        entry = evaluation["bits_per_pixel"]
        low, high = entry["interval"]
        rows = [("bits per pixel" + LOWER_IS_BETTER, f"{entry['value']:.3f}", f"{low:.3f} to {high:.3f}")]
        _print_table("", ("likelihood", "value", "95 % interval"), rows)
        uniform = log2(entry["colors"])
        typer.echo(f"\nFor comparison, {entry['colors']} equally probable colors have {uniform:.2f} bits per pixel.")
    if "pseudo_likelihood" in evaluation:
        entry = evaluation["pseudo_likelihood"]
        rows = [
            ("pseudo-perplexity", f"{entry['pseudo_perplexity']:.2f}", f"of {entry['tokens']:,} tokens, each masked"),
            ("accuracy", f"{entry['accuracy']:.4f}", "most probable token is correct"),
        ]
        _print_table("", ("pseudo-likelihood", "value", "description"), rows)
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
        comparisons, systems = evaluation["comparisons"], evaluation["systems"]
        names = ("paired bootstrap", "this", "other", "p")
        _print_table("", names, [_format_comparison_row(entry) for entry in comparisons])
        typer.echo("\nIn brackets: 95 % intervals of the differences.")
        typer.echo("\n".join(_describe_comparison(entry, systems) for entry in comparisons))
    if "quality" in evaluation:
        entry, limit = evaluation["quality"], f"a chrF below {evaluation['quality']['chrf']:.1f}"
        rows = [("accepted as good", f"{entry['accepted']:.1%}", f"of them, at most {entry['bound']:.1%} have {limit}")]
        _print_table("", ("quality estimate", "value", "description"), rows)
    if "probes" in evaluation:
        _print_repetition_probe(evaluation["probes"]["repetition"])
        _print_gender_probe(evaluation["probes"])


def _describe_engines(evaluation: dict[str, Any]) -> str:
    """Return a note on the engines that ran the models, unless it was PyTorch."""
    engines = [evaluation[key] for key in ("engine", "other_engine") if key in evaluation]
    return f", translated by {' and '.join(dict.fromkeys(engines))}" if set(engines) - {"torch"} else ""


def _print_label_report(evaluation: dict[str, Any]) -> None:
    rows = []
    for name, entry in evaluation["scores"].items():
        low, high = evaluation["intervals"][name]
        interval = f"{_format_value(name, low)} to {_format_value(name, high)}"
        rows.append((METRIC_NAMES[name], _format_value(name, entry["value"]), interval, entry["signature"]))
    _print_table("", ("metric", "score", "95 % interval", "signature"), rows)
    label, accuracy = evaluation["majority_label"], evaluation["majority_accuracy"]
    typer.echo(f"\nFor comparison, always predicting '{label}' has an accuracy of {accuracy:.2f}.")
    entries, unit = evaluation["by_label"], "label"
    if evaluation["by_entity"]:
        entries, unit = evaluation["by_entity"], "entity"
    columns = (unit, "precision", "recall", "F1", "expected", "predicted")
    _print_table(f"by {unit}", columns, [_format_label_row(entry) for entry in entries])
    if len(evaluation["matrix"]["labels"]) <= MAX_MATRIX_LABELS:
        labels, counts = evaluation["matrix"]["labels"], evaluation["matrix"]["counts"]
        rows = [(label, *(f"{count:,}" for count in row)) for label, row in zip(labels, counts, strict=True)]
        _print_table("confusion matrix: expected labels in rows, predicted in columns", ("", *labels), rows)
    elif evaluation["confusions"]:
        confusions = [
            (entry["expected"], entry["predicted"], f"{entry['count']:,}")
            for entry in evaluation["confusions"][:MAX_CONFUSIONS]
        ]
        errors = sum(entry["count"] for entry in evaluation["confusions"])
        _print_table(
            f"most frequent of {pluralize(errors, 'error')}", ("expected", "predicted as", "count"), confusions
        )


def _format_label_row(entry: dict[str, Any]) -> tuple[str, ...]:
    scores = (f"{entry[name]:.2f}" for name in ("precision", "recall", "f1"))
    return (entry["label"], *scores, *(f"{entry[name]:,}" for name in ("expected", "predicted")))


def _format_value(name: str, value: float) -> str:
    return f"{value:.4f}" if name == "matthews" else f"{value:.2f}"


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
    return (
        METRIC_NAMES[comparison["metric"]],
        *(_format_value(comparison["metric"], comparison[name]) for name in ("baseline", "candidate")),
        f"{comparison['p']:.4f}",
    )


def _describe_comparison(comparison: dict[str, Any], systems: dict[str, str]) -> str:
    """Describe how much better or worse this system is than the other; the interval has the same sign."""
    metric, difference = comparison["metric"], comparison["difference"]  # other minus this
    name, baseline, candidate = (
        METRIC_NAMES[metric].removesuffix(LOWER_IS_BETTER),
        systems["baseline"],
        systems["candidate"],
    )
    if difference == 0:
        return f"{baseline} and {candidate} have the same {name}."
    is_better = (difference > 0) == METRIC_NAMES[metric].endswith(LOWER_IS_BETTER)
    bounds = sorted(comparison[bound] if difference > 0 else 0 - comparison[bound] for bound in ("low", "high"))
    value, low, high = (_format_value(metric, value) for value in (abs(difference), *bounds))
    doubt = "" if comparison["is_significant"] else ", not significant"
    return (
        f"{baseline} is {value} {name} {'better' if is_better else 'worse'} than {candidate} ({low} to {high}{doubt})."
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
        rows.append((f"{case['word']} x {case['times']}", truncate(case["output"], 40), *numbers, _format_flags(case)))
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


def _print_table(title: str, columns: tuple[str, ...], rows: Sequence[Sequence[str]]) -> None:
    typer.echo(f"\n{title}" if title else "")
    table = Table(*map(escape, columns), box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "left" if column.header in LEFT_ALIGNED else "right"
    for column in table.columns:
        column.overflow = "fold"  # a truncated signature is useless
    for row in rows:
        table.add_row(*map(escape, row))
    make_console().print(table)
