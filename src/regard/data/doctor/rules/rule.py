"""What the doctor looks for: every rule has a name, a severity and an explanation for the people who own the text."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from regard.base.errors import RegardError

Severity = Literal["remove", "notice"]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be wrong with a line. `remove`: a cleaned corpus leaves the line out; `notice`: it stays."""

    name: str
    severity: Severity
    title: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that spoke about a line: why it did, and which parts of the two texts it means (in characters)."""

    rule: str
    reason: str
    source_spans: tuple[Span, ...] = ()
    target_spans: tuple[Span, ...] = ()


def shorten(items: Iterable[str]) -> str:
    """A few of the items in a line that stays short, whatever a corpus holds.

    >>> shorten(["a", "b", "a", "x" * 1000])
    'a, b, xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'
    """
    unique_items = list(dict.fromkeys(items))
    shortened = [item if len(item) <= 60 else f"{item[:40]}..." for item in unique_items[:5]]
    return ", ".join([*shortened, "..."] if len(unique_items) > 5 else shortened)


RULES = (
    Rule(
        "misaligned",
        "remove",
        "Misaligned stretch",
        "For a whole stretch of lines the lengths of the two sides have nothing to do with each other: the files "
        "slipped against each other there, usually because a line is missing or was split on one side. Mend the "
        "file at the first line of the stretch and check again; leaving the lines out is the second-best cure.",
    ),
    Rule(
        "empty",
        "remove",
        "Empty side",
        "One side has no text. A model would learn to answer with silence, or to make text up.",
    ),
    Rule(
        "swapped-languages",
        "remove",
        "Languages swapped",
        "The source reads like the target's language and the target like the source's. Exchange the two sides.",
    ),
    Rule(
        "wrong-language",
        "remove",
        "Wrong language",
        "A side does not read like the rest of its column: left untranslated, or in a third language. Lists of "
        "foreign names are sometimes caught too.",
    ),
    Rule(
        "copy",
        "remove",
        "Untranslated copy",
        "Both sides are the same sentence. A model that sees many copies learns to copy instead of translating.",
    ),
    Rule(
        "mojibake",
        "remove",
        "Garbled characters",
        "Letters such as ä or é turned into pairs such as Ã¤ or Ã©: the file was once opened in the wrong "
        "encoding. Export it again as UTF-8.",
    ),
    Rule(
        "replacement-character",
        "remove",
        "Lost characters",
        "The sign \ufffd stands where a program could not read the original letter. The letter is gone; only the "
        "original file still has it.",
    ),
    Rule(
        "control-character",
        "remove",
        "Control characters",
        "Invisible codes that are no text (NUL, escape, a lone carriage return, ...), left by a conversion.",
    ),
    Rule(
        "too-long",
        "remove",
        "Far too long",
        "Much longer than the rest of the corpus: probably a paragraph, a table or a whole document in one line.",
    ),
    Rule(
        "ratio",
        "remove",
        "Lengths do not fit",
        "One side is far longer or shorter than translations in this corpus are: something was cut off, added, or "
        "belongs to another sentence.",
    ),
    Rule(
        "duplicate",
        "remove",
        "Duplicate",
        "The same line stood in the corpus before. The first one stays.",
    ),
    Rule(
        "leaked-pair",
        "remove",
        "Pair of the held-out data",
        "The same pair is in the validation or test data. A model that trained on it is examined with the answer "
        "in its pocket, and its score says nothing.",
    ),
    Rule(
        "leaked-source",
        "remove",
        "Source of the held-out data",
        "The same source is in the validation or test data, with another translation or label.",
    ),
    Rule(
        "leaked-target",
        "notice",
        "Target of the held-out data",
        "The same target sentence is in the validation or test data, for another source.",
    ),
    Rule(
        "near-duplicate",
        "notice",
        "Nearly a duplicate",
        "Only a few characters differ from an earlier line. A few of them do no harm; thousands teach little for "
        "their cost.",
    ),
    Rule(
        "repeated-source",
        "notice",
        "Source translated in several ways",
        "The same source stood before with another target or label. That may be right (a sentence has many "
        "translations) or an inconsistency to settle.",
    ),
    Rule(
        "repeated-target",
        "notice",
        "Target of several sources",
        "The same target stood before with another source.",
    ),
    Rule(
        "numbers",
        "notice",
        "Numbers differ",
        "A number on one side has no counterpart on the other. Numbers up to twelve may be written as words.",
    ),
    Rule(
        "links",
        "notice",
        "Web or e-mail addresses differ",
        "An address on one side is missing or different on the other.",
    ),
    Rule(
        "brackets",
        "notice",
        "Brackets differ",
        "The two sides do not have the same brackets: perhaps a part was left out, or one sign was lost.",
    ),
    Rule(
        "html-entity",
        "notice",
        "HTML codes",
        "Codes such as &amp; or &#39; stand where the sign itself should be. Decode them before training.",
    ),
    Rule(
        "invisible-character",
        "notice",
        "Invisible characters",
        "Zero-width spaces, soft hyphens, writing-direction marks and the like. Some languages need them; "
        "elsewhere they split words that look whole.",
    ),
    Rule(
        "long-word",
        "notice",
        "Very long word",
        "A stretch of more than 100 characters without a space: a file path, encoded data, or words that were glued.",
    ),
)
RULE_BITS = {rule.name: 1 << number for number, rule in enumerate(RULES)}


def select_rules(remove: tuple[str, ...] = (), keep: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """The rules with other severities: those named in `remove` remove, those named in `keep` only notice.

    >>> [rule.severity for rule in select_rules(remove=("numbers",)) if rule.name == "numbers"]
    ['remove']
    """
    unknown = [name for name in (*remove, *keep) if name not in RULE_BITS]
    if unknown:
        raise RegardError(f"There is no rule '{unknown[0]}'.", fix=f"Rules: {', '.join(RULE_BITS)}.")
    conflicting = [name for name in remove if name in keep]
    if conflicting:
        raise RegardError(f"Rule '{conflicting[0]}' is to be removed and kept.", fix="Name it once.")
    return tuple(_with_severity(rule, remove, keep) for rule in RULES)


def _with_severity(rule: Rule, remove: tuple[str, ...], keep: tuple[str, ...]) -> Rule:
    if rule.name in remove:
        return replace(rule, severity="remove")
    return replace(rule, severity="notice") if rule.name in keep else rule
