"""The rules of the corpus doctor; `rules.toml` has their severities, and titles and explanations for the report."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal

from regard.base.errors import RegardError

Severity = Literal["remove", "notice"]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of defect. A cleaned corpus drops lines of severity `remove` and keeps lines of severity `notice`."""

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


_TEXTS = tomllib.loads((files("regard.data.doctor.rules") / "rules.toml").read_text(encoding="utf-8"))
RULES = tuple(Rule(name, **texts) for name, texts in _TEXTS.items())
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
