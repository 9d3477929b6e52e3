"""The report: one HTML file that a translator can read, with no script and nothing loaded from anywhere.

Text of the corpus is escaped, characters that do not show are spelled out, and the page forbids itself by a content
security policy to load or run anything at all.
"""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from unicodedata import category

from regard.base.plural import pluralize
from regard.data.doctor import charts
from regard.data.doctor.examine import Diagnosis
from regard.data.doctor.findings import FlaggedExample
from regard.data.doctor.rules.rule import Rule, Span
from regard.data.doctor.statistics import Statistics
from regard.data.doctor.summary import summarize
from regard.data.example import Defects

_MAX_CHARACTERS = 400  # characters of a text that are shown


def render_page(
    name: str, diagnosis: Diagnosis, samples: Mapping[str, Sequence[FlaggedExample]], defects: Defects
) -> str:
    """The whole page; `name` says what was checked."""
    body = "\n".join(
        [
            _render_header(name, diagnosis),
            _render_rules(diagnosis, samples),
            _render_leaks(diagnosis),
            _render_statistics(diagnosis.statistics),
            _render_alignment(diagnosis),
            _render_defects(diagnosis, defects),
            _render_footer(diagnosis),
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


def _render_header(name: str, diagnosis: Diagnosis) -> str:
    corpus_summary = summarize(diagnosis)
    share = f"{corpus_summary.removed / max(corpus_summary.rows, 1):.2%}"
    numbers = [
        (corpus_summary.rows, "pairs read" if diagnosis.profile.has_pairs else "lines read"),
        (corpus_summary.rows - corpus_summary.removed, "stay in a cleaned corpus"),
        (corpus_summary.removed, f"should be left out ({share})"),
        (corpus_summary.noticed, "stay, but deserve a look"),
    ]
    cards = "".join(f'<div class="number"><b>{count:,}</b><span>{label}</span></div>' for count, label in numbers)
    advice = "".join(f"<li>{escape_visibly(line)}</li>" for line in corpus_summary.advice)
    advice_section = f'<h2>What to do first</h2>\n<ul class="advice">{advice}</ul>' if advice else ""
    return (
        f'<header><h1>Corpus check</h1><p class="files">{escape_visibly(name)}</p>'
        f'<p class="verdict {corpus_summary.grade}">{escape(corpus_summary.verdict)}</p></header>\n'
        f'<div class="numbers">{cards}</div>\n{advice_section}'
    )


def _render_rules(diagnosis: Diagnosis, samples: Mapping[str, Sequence[FlaggedExample]]) -> str:
    parts = []
    for severity, title, explanation in (
        (
            "remove",
            "Left out of a cleaned corpus",
            "These lines would harm a model. They go to a quarantine file, with the reason.",
        ),
        ("notice", "Worth a look", "These lines stay. Nothing is wrong with many of them."),
    ):
        rules = [rule for rule in diagnosis.rules if rule.severity == severity]
        rules_with_findings = [rule for rule in rules if len(diagnosis.find_rows(rule.name))]
        parts.append(f'<h2>{title}</h2>\n<p class="why">{explanation}</p>')
        parts += [_render_rule(diagnosis, rule, samples.get(rule.name, ())) for rule in rules_with_findings]
        rules_without_findings = ", ".join(rule.title.lower() for rule in rules if rule not in rules_with_findings)
        if rules_without_findings:
            parts.append(f'<p class="none">Nothing found: {escape(rules_without_findings)}.</p>')
    return "\n".join(parts)


def _render_rule(diagnosis: Diagnosis, rule: Rule, samples: Sequence[FlaggedExample]) -> str:
    count = len(diagnosis.find_rows(rule.name))
    examples = "".join(_render_example(sample) for sample in samples)
    spread = "from where it begins" if rule.name == "misaligned" else "spread over the corpus"
    shown_note = f"{len(samples)} of {pluralize(count, 'line')}, {spread}" if len(samples) < count else "all of them"
    color = "bad" if rule.severity == "remove" else "fair"
    return (
        f'<details><summary><b>{escape(rule.title)}</b><span class="count {color}">{count:,}</span>'
        f'<span class="share">{count / len(diagnosis.verdicts):.2%}</span></summary>\n'
        f'<p class="why">{escape(rule.explanation)}</p>\n'
        f'<p class="note">Rule <code>{rule.name}</code>. Shown: {shown_note}.</p>{examples}</details>'
    )


def _render_example(sample: FlaggedExample) -> str:
    example, finding = sample.example, sample.finding
    texts = f'<p dir="auto">{_mark_spans(example.source, finding.source_spans)}</p>'
    if example.target is not None:
        texts += f'<p dir="auto">{_mark_spans(example.target, finding.target_spans)}</p>'
    if sample.original is not None:
        texts += f'<p class="label">{escape_visibly(str(sample.original.where))}</p>'
        sides = (sample.original.source, sample.original.target)
        texts += "".join(
            f'<p class="other" dir="auto">{_mark_spans(text, ())}</p>' for text in sides if text is not None
        )
    return (
        f'<div class="example"><div class="where">{escape_visibly(str(example.where))} · {escape_visibly(finding.reason)}</div>'
        f'<div class="texts">{texts}</div></div>'
    )


def _render_leaks(diagnosis: Diagnosis) -> str:
    if not diagnosis.leaks:
        return ""
    rows = "".join(
        f"<tr><td>{escape_visibly(leak.held_out)} in {escape_visibly(leak.corpus)}</td><td>{leak.lines:,}</td>"
        f"<td>{leak.pairs:,}</td><td>{leak.sources:,}</td><td>{leak.targets:,}</td></tr>"
        for leak in diagnosis.leaks
    )
    return (
        '<h2>Shared with the held-out data</h2>\n<p class="why">How many lines of the held-out data are also in the '
        "other corpus: as a pair, by their source, by their target. Case and spacing do not count.</p>\n"
        '<div class="card wide"><table><tr><th></th><th>lines</th><th>same pair</th><th>same source</th>'
        f"<th>same target</th></tr>{rows}</table></div>"
    )


def _render_statistics(statistics: Statistics) -> str:
    rows = "".join(
        f"<tr><td>{side.name}</td><td>{side.characters:,}</td><td>{side.words:,}</td><td>{side.shortest:,}</td>"
        f"<td>{side.median:,.0f}</td><td>{side.longest:,}</td></tr>"
        for side in statistics.sides
    )
    table = (
        '<div class="card wide"><table><tr><th></th><th>characters</th><th>words</th><th>shortest</th><th>median</th>'
        f"<th>longest</th></tr>{rows}</table></div>"
    )
    pictures = "".join(
        f"<h3>Length of the {side.name}</h3>{charts.draw_lengths(side.lengths, 'characters')}"
        for side in statistics.sides
    )
    if statistics.ratios is not None:
        pictures += f"<h3>Length of the target against its source</h3>{charts.draw_ratios(statistics.ratios)}"
    return f'<h2>How long the lines are</h2>\n{table}\n<div class="card">{pictures}</div>'


def _render_alignment(diagnosis: Diagnosis) -> str:
    alignment = diagnosis.alignment
    if alignment is None or not len(alignment.correlations):
        return ""
    verdict = (
        pluralize(len(alignment.misaligned), "misaligned stretch", "misaligned stretches")
        if alignment.misaligned
        else "No slip found."
    )
    return (
        '<h2>Do the two sides stay together?</h2>\n<p class="why">Long sentences have long translations. Each bar says '
        "how closely the lengths of the two sides go together in one part of the corpus: high is good, and where the "
        f'bars drop, the files slipped.</p>\n<div class="card"><h3>{verdict}</h3>'
        f"{charts.draw_correlations(alignment, len(diagnosis.verdicts))}</div>"
    )


def _render_defects(diagnosis: Diagnosis, defects: Defects) -> str:
    defect_lines = [
        f"{kind}: {count:,}, first at {defects.first_location[kind]}" for kind, count in defects.counts.items()
    ]
    lines = "".join(f"<li>{escape_visibly(line)}</li>" for line in [*diagnosis.remarks, *defect_lines])
    return f'<h2>Met while reading</h2>\n<ul class="advice">{lines}</ul>' if lines else ""


def _render_footer(diagnosis: Diagnosis) -> str:
    length_statistics = diagnosis.profile.lengths
    sentences = [
        f"longer than {max_length:,.0f} characters is far too long" for max_length in length_statistics.max_lengths[:1]
    ]
    if diagnosis.profile.has_pairs:
        sentences.append(
            f"a target is {length_statistics.ratio:.2f} times as long as its source, give or take a factor of {length_statistics.ratio_factor:.1f}"
        )
    return (
        f"<footer><p>Learned from this corpus: {'; '.join(sentences)}; and what each side reads like.</p>"
        "<p>Made by <code>regard check</code>. <code>regard check --write DIR</code> writes the cleaned corpus and the "
        "quarantine file; <code>--keep RULE</code> and <code>--remove RULE</code> change what is left out.</p></footer>"
    )


def _mark_spans(text: str, spans: Sequence[Span]) -> str:
    """A text with its parts marked, cut to where the first mark is if it is long."""
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
    r"""Escaped for HTML, with characters that do not show as their codes.

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
