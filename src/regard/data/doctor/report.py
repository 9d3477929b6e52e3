"""The HTML report of `regard check`: one self-contained file for translators, without scripts.

Text of the corpus is escaped, and invisible characters are shown as code points. A content security policy prevents the
page from loading or running anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from unicodedata import category

from regard.base.formatting import pluralize
from regard.data.doctor import charts
from regard.data.doctor.check import CorpusReport
from regard.data.doctor.findings import FlaggedExample
from regard.data.doctor.rules.rule import Rule, Span
from regard.data.doctor.statistics import Statistics
from regard.data.doctor.summary import summarize
from regard.data.example import Defects

_MAX_CHARACTERS = 400  # shown per text


def render_page(
    name: str, corpus_report: CorpusReport, samples: Mapping[str, Sequence[FlaggedExample]], defects: Defects
) -> str:
    """Render the report as an HTML page.

    Args:
        name: The title of the checked corpus, e.g. its file names.
        corpus_report: The result of `check_corpus`.
        samples: Flagged lines by rule name (see `sample_flagged`).
        defects: The irregularities that the readers counted.
    """
    body = "\n".join(
        [
            _render_header(name, corpus_report),
            _render_rules(corpus_report, samples),
            _render_leaks(corpus_report),
            _render_statistics(corpus_report.statistics),
            _render_alignment(corpus_report),
            _render_defects(corpus_report, defects),
            _render_footer(corpus_report),
        ]
    )
    style = files("regard.data.doctor").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>Corpus check: {escape_visibly(name)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _render_header(name: str, corpus_report: CorpusReport) -> str:
    corpus_summary = summarize(corpus_report)
    share = f"{corpus_summary.removed / max(corpus_summary.rows, 1):.2%}"
    numbers = [
        (corpus_summary.rows, "pairs read" if corpus_report.profile.has_pairs else "lines read"),
        (corpus_summary.rows - corpus_summary.removed, "to keep"),
        (corpus_summary.removed, f"to remove ({share})"),
        (corpus_summary.noticed, "to keep, but to review"),
    ]
    cards = "".join(f'<div class="number"><b>{count:,}</b><span>{label}</span></div>' for count, label in numbers)
    advice = "".join(f"<li>{escape_visibly(line)}</li>" for line in corpus_summary.advice)
    advice_section = f'<h2>What to do first</h2>\n<ul class="advice">{advice}</ul>' if advice else ""
    return (
        f'<header><h1>Corpus check</h1><p class="files">{escape_visibly(name)}</p>'
        f'<p class="verdict {corpus_summary.grade}">{escape(corpus_summary.verdict)}</p></header>\n'
        f'<div class="numbers">{cards}</div>\n{advice_section}'
    )


def _render_rules(corpus_report: CorpusReport, samples: Mapping[str, Sequence[FlaggedExample]]) -> str:
    parts = []
    for severity, title, explanation in (
        (
            "remove",
            "Lines to remove",
            "These lines harm a model. The cleaned corpus omits them; a quarantine file lists them with reasons.",
        ),
        ("notice", "Lines to review", "The cleaned corpus keeps these lines. Many of them are correct."),
    ):
        rules = [rule for rule in corpus_report.rules if rule.severity == severity]
        rules_with_findings = [rule for rule in rules if len(corpus_report.find_rows(rule.name))]
        parts.append(f'<h2>{title}</h2>\n<p class="why">{explanation}</p>')
        parts += [_render_rule(corpus_report, rule, samples.get(rule.name, ())) for rule in rules_with_findings]
        rules_without_findings = ", ".join(rule.title.lower() for rule in rules if rule not in rules_with_findings)
        if rules_without_findings:
            parts.append(f'<p class="none">Nothing found: {escape(rules_without_findings)}.</p>')
    return "\n".join(parts)


def _render_rule(corpus_report: CorpusReport, rule: Rule, samples: Sequence[FlaggedExample]) -> str:
    count = len(corpus_report.find_rows(rule.name))
    examples = "".join(_render_example(sample) for sample in samples)
    spread = "the first of each stretch" if rule.name == "misaligned" else "spread over the corpus"
    shown_note = f"{len(samples)} of {pluralize(count, 'line')}, {spread}" if len(samples) < count else "all lines"
    color = "bad" if rule.severity == "remove" else "fair"
    return (
        f'<details><summary><b>{escape(rule.title)}</b><span class="count {color}">{count:,}</span>'
        f'<span class="share">{count / len(corpus_report.verdicts):.2%}</span></summary>\n'
        f'<p class="why">{escape(rule.explanation)}</p>\n'
        f'<p class="note">Rule <code>{rule.name}</code>. Shown: {shown_note}.</p>{examples}</details>'
    )


def _render_example(sample: FlaggedExample) -> str:
    example, finding = sample.example, sample.finding
    texts = f'<p dir="auto">{_mark_spans(example.source, finding.source_spans)}</p>'
    if example.target is not None:
        texts += f'<p dir="auto">{_mark_spans(example.target, finding.target_spans)}</p>'
    if sample.original is not None:
        texts += f'<p class="label">{escape_visibly(str(sample.original.location))}</p>'
        sides = (sample.original.source, sample.original.target)
        texts += "".join(
            f'<p class="other" dir="auto">{_mark_spans(text, ())}</p>' for text in sides if text is not None
        )
    heading = f"{escape_visibly(str(example.location))} · {escape_visibly(finding.reason)}"
    return f'<div class="example"><div class="where">{heading}</div><div class="texts">{texts}</div></div>'


def _render_leaks(corpus_report: CorpusReport) -> str:
    if not corpus_report.leaks:
        return ""
    rows = [
        (f"{leak.held_out} in {leak.corpus}", leak.lines, leak.pairs, leak.sources, leak.targets)
        for leak in corpus_report.leaks
    ]
    return (
        '<h2>Leakage: lines shared with held-out data</h2>\n<p class="why">How many lines of the validation or test '
        "data also occur in the other corpus, as a pair, by source or by target. Case and spacing are ignored.</p>\n"
        + _render_table(("lines", "same pair", "same source", "same target"), rows)
    )


def _render_table(headings: Sequence[str], rows: Iterable[tuple[str, *tuple[float, ...]]]) -> str:
    """Render a table of numbers, each row with its name."""
    head = "".join(f"<th>{heading}</th>" for heading in ("", *headings))
    body = "".join(
        f"<tr><td>{escape_visibly(name)}</td>{''.join(f'<td>{number:,.0f}</td>' for number in numbers)}</tr>"
        for name, *numbers in rows
    )
    return f'<div class="card wide"><table><tr>{head}</tr>{body}</table></div>'


def _render_statistics(statistics: Statistics) -> str:
    rows = [
        (side.name, side.characters, side.words, side.min_length, side.median_length, side.max_length)
        for side in statistics.sides
    ]
    table = _render_table(("characters", "words", "shortest", "median", "longest"), rows)
    pictures = "".join(
        f"<h3>Length of the {side.name}</h3>{charts.draw_lengths(side.lengths, 'characters')}"
        for side in statistics.sides
    )
    if statistics.ratios is not None:
        pictures += f"<h3>Length of the target relative to the source</h3>{charts.draw_ratios(statistics.ratios)}"
    return f'<h2>Line lengths</h2>\n{table}\n<div class="card">{pictures}</div>'


def _render_alignment(corpus_report: CorpusReport) -> str:
    alignment = corpus_report.alignment
    if alignment is None or not len(alignment.correlations):
        return ""
    count = len(alignment.misaligned)
    verdict = (
        pluralize(count, "misaligned stretch", "misaligned stretches") if count else "No misaligned stretch found."
    )
    return (
        '<h2>Alignment of source and target</h2>\n<p class="why">Long sentences have long translations. Each bar shows '
        "how strongly the lengths of source and target correlate in one part of the corpus. High bars are good; where "
        f'they drop, the files are misaligned.</p>\n<div class="card"><h3>{verdict}</h3>'
        f"{charts.draw_correlations(alignment, len(corpus_report.verdicts))}</div>"
    )


def _render_defects(corpus_report: CorpusReport, defects: Defects) -> str:
    defect_lines = [
        f"{kind}: {count:,}, first at {defects.first_location[kind]}" for kind, count in defects.counts.items()
    ]
    lines = "".join(f"<li>{escape_visibly(line)}</li>" for line in [*corpus_report.remarks, *defect_lines])
    return f'<h2>Irregularities in the files</h2>\n<ul class="advice">{lines}</ul>' if lines else ""


def _render_footer(corpus_report: CorpusReport) -> str:
    length_statistics = corpus_report.profile.lengths
    sentences = [
        f"a {corpus_report.statistics.sides[0].name} of more than {max_length:,.0f} characters is too long"
        for max_length in length_statistics.max_lengths[:1]
    ]
    if corpus_report.profile.has_pairs:
        sentences.append(
            f"a target is {length_statistics.ratio:.2f} times as long as its source, "
            f"within a factor of {length_statistics.ratio_factor:.1f}"
        )
    return (
        f"<footer><p>Learned from this corpus: {'; '.join(sentences)}; and a language profile of each side.</p>"
        "<p>Written by <code>regard check</code>. <code>regard check --write DIR</code> writes the cleaned corpus "
        "and the quarantine file; <code>--keep RULE</code> and <code>--remove RULE</code> change which lines "
        "are removed.</p></footer>"
    )


def _mark_spans(text: str, spans: Sequence[Span]) -> str:
    """Highlight spans of a text; a long text is cut to a window around the first span."""
    window_start = max(0, spans[0][0] - _MAX_CHARACTERS // 4) if spans and len(text) > _MAX_CHARACTERS else 0
    window_end = min(len(text), window_start + _MAX_CHARACTERS)
    parts, position = ["…" if window_start else ""], window_start
    for start, stop in spans:
        if start >= window_end or stop <= window_start:
            continue
        start, stop = max(start, window_start), min(stop, window_end)
        parts += [escape_visibly(text[position:start]), f"<mark>{escape_visibly(text[start:stop])}</mark>"]
        position = stop
    parts += [escape_visibly(text[position:window_end]), "…" if window_end < len(text) else ""]
    if not text.strip():
        return f'<span class="none">({"only spaces" if text else "empty"})</span>'
    return "".join(parts)


def escape_visibly(text: str) -> str:
    r"""Escape text for HTML and show invisible characters as code points.

    >>> escape_visibly("</script>\x00")
    '&lt;/script&gt;<span class="code">U+0000</span>'
    """
    if text.isprintable():
        return escape(text)
    return "".join(
        escape(character) if _is_visible(character) else f'<span class="code">U+{ord(character):04X}</span>'
        for character in text
    )


def _is_visible(character: str) -> bool:
    return character.isprintable() or character in "\n\t" or category(character) == "Zs"
