"""The rules of the corpus doctor: each has a name, a severity, and a title and explanation for the report."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from regard.base.errors import RegardError

Severity = Literal["remove", "notice"]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of defect. A cleaned corpus leaves out lines of severity `remove` and keeps those of severity `notice`."""

    name: str
    severity: Severity
    title: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a rule flags a line, and the character spans of source and target that it refers to."""

    rule: str
    reason: str
    source_spans: tuple[Span, ...] = ()
    target_spans: tuple[Span, ...] = ()


def shorten(items: Iterable[str]) -> str:
    """Join the first items, shortened, so that the result stays short for any input.

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
        "For a stretch of lines, the lengths of the two sides are unrelated: the files are shifted against each other, "
        "usually because a line is missing or was split on one side. Repair the file at the first line of the stretch "
        "and check again. Removing the lines is the second-best solution.",
    ),
    Rule(
        "empty",
        "remove",
        "Empty side",
        "One side has no text. A model would learn to produce empty translations, or to invent text.",
    ),
    Rule(
        "swapped-languages",
        "remove",
        "Languages swapped",
        "The source is in the language of the target, and the target in the language of the source. Exchange them.",
    ),
    Rule(
        "wrong-language",
        "remove",
        "Wrong language",
        "A text is not in the language of its side: it is untranslated, or in a third language. Lists of foreign "
        "names are sometimes flagged by mistake.",
    ),
    Rule(
        "copy",
        "remove",
        "Untranslated copy",
        "Both sides are the same sentence. From many copies, a model learns to copy instead of translating.",
    ),
    Rule(
        "mojibake",
        "remove",
        "Garbled characters",
        "Letters such as ä or é have become pairs such as Ã¤ or Ã©: a program opened the file in the wrong "
        "encoding. Export it again as UTF-8.",
    ),
    Rule(
        "replacement-character",
        "remove",
        "Lost characters",
        "The character \ufffd replaces a letter that a program could not decode. Only the original file still has "
        "the letter.",
    ),
    Rule(
        "control-character",
        "remove",
        "Control characters",
        "Invisible control codes (NUL, escape, a lone carriage return, ...) that a conversion left behind.",
    ),
    Rule(
        "too-long",
        "remove",
        "Too long",
        "The text is much longer than the rest: probably a paragraph, a table or a document on one line.",
    ),
    Rule(
        "ratio",
        "remove",
        "Unusual length ratio",
        "One side is far longer or shorter than is usual in this corpus: text was cut off or added, or the two sides "
        "are different sentences.",
    ),
    Rule(
        "truncated",
        "remove",
        "Truncated text",
        "One side stops in the middle of its sentence: it is short for its partner and lacks the final punctuation, or "
        "it has exactly the maximum length of an export. A model would learn to stop early. Export the text again "
        "without a maximum length.",
    ),
    Rule(
        "duplicate",
        "remove",
        "Duplicate",
        "The same line occurs earlier in the corpus. The first occurrence stays.",
    ),
    Rule(
        "leaked-pair",
        "remove",
        "Leaked pair",
        "The same pair is in the validation or test data. A model that trains on it has seen the answer, so its score "
        "is meaningless.",
    ),
    Rule(
        "leaked-source",
        "remove",
        "Leaked source",
        "The same source is in the validation or test data, with another translation or label.",
    ),
    Rule(
        "leaked-target",
        "notice",
        "Leaked target",
        "The same target sentence is in the validation or test data, for another source.",
    ),
    Rule(
        "near-duplicate",
        "notice",
        "Near duplicate",
        "The line differs from an earlier one in a few characters. A few near duplicates are harmless; thousands cost "
        "training time and add little.",
    ),
    Rule(
        "repeated-source",
        "notice",
        "Source translated in several ways",
        "The same source occurs earlier with another target or label. This may be correct (a sentence has many "
        "translations) or an inconsistency.",
    ),
    Rule(
        "repeated-target",
        "notice",
        "Target of several sources",
        "The same target occurs earlier with another source.",
    ),
    Rule(
        "numbers",
        "notice",
        "Numbers differ",
        "A number on one side has no counterpart on the other. Numbers up to twelve may be spelled out.",
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
        "The two sides have different brackets: perhaps part of the text or a single bracket is missing.",
    ),
    Rule(
        "tags",
        "notice",
        "Tags on one side only",
        "A tag such as <b> or a placeholder such as {0} or %s has no counterpart on the other side. A model would "
        "learn to drop or to invent them. Restore them, or remove them from both sides.",
    ),
    Rule(
        "html-entity",
        "notice",
        "HTML entities",
        "Entities such as &amp; or &#39; stand in place of a character. Decode them before training.",
    ),
    Rule(
        "invisible-character",
        "notice",
        "Invisible characters",
        "Zero-width spaces, soft hyphens, writing-direction marks and the like. Some languages need them; "
        "elsewhere they split words that look whole.",
    ),
    Rule(
        "normal-form",
        "notice",
        "Mixed Unicode normal forms",
        "Accents are separate characters here and part of the letter in most other lines (NFD and NFC), or vice versa. "
        "Both look the same but are different tokens. Convert the text to NFC, or train with "
        "--set tokenizer.normalize.form=nfc.",
    ),
    Rule(
        "long-word",
        "notice",
        "Very long word",
        "More than 100 characters without a space: a file path, encoded data, or words without spaces between them.",
    ),
)
RULE_BITS = {rule.name: 1 << number for number, rule in enumerate(RULES)}


def select_rules(remove: tuple[str, ...] = (), keep: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """All rules, with severity `remove` for those in `remove` and severity `notice` for those in `keep`.

    >>> [rule.severity for rule in select_rules(remove=("numbers",)) if rule.name == "numbers"]
    ['remove']
    """
    unknown = [name for name in (*remove, *keep) if name not in RULE_BITS]
    if unknown:
        raise RegardError(f"There is no rule '{unknown[0]}'.", hint=f"Use one of: {', '.join(RULE_BITS)}.")
    conflicting = [name for name in remove if name in keep]
    if conflicting:
        raise RegardError(
            f"Rule '{conflicting[0]}' is both removed and kept.", hint="Give it to one of the two options."
        )
    return tuple(_with_severity(rule, remove, keep) for rule in RULES)


def _with_severity(rule: Rule, remove: tuple[str, ...], keep: tuple[str, ...]) -> Rule:
    if rule.name in remove:
        return replace(rule, severity="remove")
    return replace(rule, severity="notice") if rule.name in keep else rule
