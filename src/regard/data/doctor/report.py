"""The report: one HTML file that a translator can read, with no script and nothing loaded from anywhere.

Text of the corpus is escaped, characters that do not show are spelled out, and the page forbids itself by a content
security policy to load or run anything at all.
"""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from unicodedata import category

from regard.data.doctor import charts
from regard.data.doctor.examine import Diagnosis
from regard.data.doctor.explain import Sample
from regard.data.doctor.rules import Rule, Span
from regard.data.doctor.statistics import Statistics
from regard.data.doctor.words import plural, summary
from regard.data.example import Defects

_MOST = 400  # characters of a text that are shown


def page(name: str, diagnosis: Diagnosis, samples: Mapping[str, Sequence[Sample]], defects: Defects) -> str:
    """The whole page; `name` says what was checked."""
    body = "\n".join(
        [
            _top(name, diagnosis),
            _rules(diagnosis, samples),
            _leaks(diagnosis),
            _shape(diagnosis.statistics),
            _alignment(diagnosis),
            _reading(diagnosis, defects),
            _footer(diagnosis),
        ]
    )
    style = files("regard.data.doctor").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>Corpus check: {visible(name)}</title>\n<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _top(name: str, diagnosis: Diagnosis) -> str:
    told = summary(diagnosis)
    share = f"{told.removed / max(told.rows, 1):.2%}"
    numbers = [
        (told.rows, "pairs read" if diagnosis.learned.pairs else "lines read"),
        (told.rows - told.removed, "stay in a cleaned corpus"),
        (told.removed, f"should be left out ({share})"),
        (told.noticed, "stay, but deserve a look"),
    ]
    cards = "".join(f'<div class="number"><b>{count:,}</b><span>{label}</span></div>' for count, label in numbers)
    advice = "".join(f"<li>{visible(line)}</li>" for line in told.advice)
    first = f'<h2>What to do first</h2>\n<ul class="advice">{advice}</ul>' if advice else ""
    return (
        f'<header><h1>Corpus check</h1><p class="files">{visible(name)}</p>'
        f'<p class="verdict {told.mood}">{escape(told.verdict)}</p></header>\n'
        f'<div class="numbers">{cards}</div>\n{first}'
    )


def _rules(diagnosis: Diagnosis, samples: Mapping[str, Sequence[Sample]]) -> str:
    parts = []
    for severity, title, words in (
        (
            "remove",
            "Left out of a cleaned corpus",
            "These lines would harm a model. They go to a quarantine file, with the reason.",
        ),
        ("notice", "Worth a look", "These lines stay. Nothing is wrong with many of them."),
    ):
        rules = [rule for rule in diagnosis.rules if rule.severity == severity]
        spoke = [rule for rule in rules if len(diagnosis.rows(rule.name))]
        parts.append(f'<h2>{title}</h2>\n<p class="why">{words}</p>')
        parts += [_rule(diagnosis, rule, samples.get(rule.name, ())) for rule in spoke]
        silent = ", ".join(rule.title.lower() for rule in rules if rule not in spoke)
        if silent:
            parts.append(f'<p class="none">Nothing found: {escape(silent)}.</p>')
    return "\n".join(parts)


def _rule(diagnosis: Diagnosis, rule: Rule, samples: Sequence[Sample]) -> str:
    count = len(diagnosis.rows(rule.name))
    shown = "".join(_example(sample) for sample in samples)
    spread = "from where it begins" if rule.name == "misaligned" else "spread over the corpus"
    more = f"{len(samples)} of {plural(count, 'line')}, {spread}" if len(samples) < count else "all of them"
    color = "bad" if rule.severity == "remove" else "fair"
    return (
        f'<details><summary><b>{escape(rule.title)}</b><span class="count {color}">{count:,}</span>'
        f'<span class="share">{count / len(diagnosis.verdicts):.2%}</span></summary>\n'
        f'<p class="why">{escape(rule.why)}</p>\n'
        f'<p class="note">Rule <code>{rule.name}</code>. Shown: {more}.</p>{shown}</details>'
    )


def _example(sample: Sample) -> str:
    example, finding = sample.example, sample.finding
    texts = f'<p dir="auto">{_marked(example.source, finding.source)}</p>'
    if example.target is not None:
        texts += f'<p dir="auto">{_marked(example.target, finding.target)}</p>'
    if sample.other is not None:
        texts += f'<p class="label">{visible(str(sample.other.where))}</p>'
        sides = (sample.other.source, sample.other.target)
        texts += "".join(f'<p class="other" dir="auto">{_marked(text, ())}</p>' for text in sides if text is not None)
    return (
        f'<div class="example"><div class="where">{visible(str(example.where))} · {visible(finding.reason)}</div>'
        f'<div class="texts">{texts}</div></div>'
    )


def _leaks(diagnosis: Diagnosis) -> str:
    if not diagnosis.leaks:
        return ""
    rows = "".join(
        f"<tr><td>{visible(leak.held_out)} in {visible(leak.corpus)}</td><td>{leak.lines:,}</td>"
        f"<td>{leak.pairs:,}</td><td>{leak.sources:,}</td><td>{leak.targets:,}</td></tr>"
        for leak in diagnosis.leaks
    )
    return (
        '<h2>Shared with the held-out data</h2>\n<p class="why">How many lines of the held-out data are also in the '
        "other corpus: as a pair, by their source, by their target. Case and spacing do not count.</p>\n"
        '<div class="card wide"><table><tr><th></th><th>lines</th><th>same pair</th><th>same source</th>'
        f"<th>same target</th></tr>{rows}</table></div>"
    )


def _shape(statistics: Statistics) -> str:
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
        f"<h3>Length of the {side.name}</h3>{charts.lengths(side.lengths, 'characters')}" for side in statistics.sides
    )
    if statistics.ratios is not None:
        pictures += f"<h3>Length of the target against its source</h3>{charts.ratios(statistics.ratios)}"
    return f'<h2>How long the lines are</h2>\n{table}\n<div class="card">{pictures}</div>'


def _alignment(diagnosis: Diagnosis) -> str:
    alignment = diagnosis.alignment
    if alignment is None or not len(alignment.windows):
        return ""
    verdict = (
        plural(len(alignment.slips), "misaligned stretch", "misaligned stretches")
        if alignment.slips
        else "No slip found."
    )
    return (
        '<h2>Do the two sides stay together?</h2>\n<p class="why">Long sentences have long translations. Each bar says '
        "how closely the lengths of the two sides go together in one part of the corpus: high is good, and where the "
        f'bars drop, the files slipped.</p>\n<div class="card"><h3>{verdict}</h3>'
        f"{charts.correlations(alignment, len(diagnosis.verdicts))}</div>"
    )


def _reading(diagnosis: Diagnosis, defects: Defects) -> str:
    met = [f"{kind}: {count:,}, first at {defects.first_location[kind]}" for kind, count in defects.counts.items()]
    lines = "".join(f"<li>{visible(line)}</li>" for line in [*diagnosis.remarks, *met])
    return f'<h2>Met while reading</h2>\n<ul class="advice">{lines}</ul>' if lines else ""


def _footer(diagnosis: Diagnosis) -> str:
    usual = diagnosis.learned.lengths
    words = [f"longer than {longest:,.0f} characters is far too long" for longest in usual.longest[:1]]
    if diagnosis.learned.pairs:
        words.append(
            f"a target is {usual.ratio:.2f} times as long as its source, give or take a factor of {usual.times:.1f}"
        )
    return (
        f"<footer><p>Learned from this corpus: {'; '.join(words)}; and what each side reads like.</p>"
        "<p>Made by <code>regard check</code>. <code>regard check --write DIR</code> writes the cleaned corpus and the "
        "quarantine file; <code>--keep RULE</code> and <code>--remove RULE</code> change what is left out.</p></footer>"
    )


def _marked(text: str, spans: Sequence[Span]) -> str:
    """A text with its parts marked, cut to where the first mark is if it is long."""
    begin = max(0, spans[0][0] - _MOST // 4) if spans and len(text) > _MOST else 0
    end = min(len(text), begin + _MOST)
    parts, place = ["…" if begin else ""], begin
    for start, stop in spans:
        if start >= end or stop <= begin:
            continue
        start, stop = max(start, begin), min(stop, end)
        parts += [visible(text[place:start]), f"<mark>{visible(text[start:stop])}</mark>"]
        place = stop
    parts += [visible(text[place:end]), "…" if end < len(text) else ""]
    if not text.strip():
        return f'<span class="none">({"only spaces" if text else "empty"})</span>'
    return "".join(parts)


def visible(text: str) -> str:
    r"""Escaped for HTML, with characters that do not show as their codes.

    >>> visible("</script>\x00")
    '&lt;/script&gt;<span class="code">U+0000</span>'
    """
    if text.isprintable():
        return escape(text)
    return "".join(escape(sign) if _shows(sign) else f'<span class="code">U+{ord(sign):04X}</span>' for sign in text)


def _shows(sign: str) -> bool:
    return sign.isprintable() or sign in "\n\t" or category(sign) == "Zs"
