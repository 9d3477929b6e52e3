"""Special tokens by role, and the place in `tokenizer.json` where the roles are kept.

The file is Hugging Face's, and has a legitimate place for names of special tokens: the `special_tokens` of its
`TemplateProcessing` post-processor, a table from a name to the ids and tokens that a template may insert. We write our
roles there ("pad", "bos", ..., "language:de") with a template that inserts nothing. So one file holds everything,
and whoever else reads it gets the same ids. Special tokens are `added_tokens` with `special = true`; the user's extra
tokens are those with `special = false`.

Special tokens come after the learned pieces and are not part of the model, so that no text, not even "<pad>", is
ever cut into one. Only the kinds that can meet something unknown need `unknown` inside, as their last piece.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from regard.base.errors import RegardError
from regard.config.run import Specials

ROLES = ("pad", "bos", "eos", "unk", "mask", "cls", "sep")
LANGUAGE_PREFIX = "language:"


@dataclass(frozen=True)
class SpecialIds:
    """The id of each role's token. Roles may share one."""

    pad: int
    bos: int
    eos: int
    unk: int
    mask: int
    cls: int
    sep: int
    languages: dict[str, int] = field(default_factory=dict)
    extra: dict[str, int] = field(default_factory=dict)
    """The user's own tokens: text, where they stand in it, is never cut."""

    def language_id(self, name: str) -> int:
        """The tag that says which language to write, e.g. <2de> for "de"."""
        if name not in self.languages:
            available = ", ".join(self.languages) or "none"
            raise RegardError(
                f"The vocabulary has no tag for the language '{name}' (it has: {available}).",
                fix=f'Learn it with specials.languages = [..., "{name}"].',
            )
        return self.languages[name]

    @property
    def control(self) -> frozenset[int]:
        """All ids that are not text: every role's but the user's extra tokens."""
        return frozenset([*(getattr(self, role) for role in ROLES), *self.languages.values()])


def language_tag(language: str) -> str:
    """The text of a language's tag.

    >>> language_tag("de")
    '<2de>'
    """
    return f"<2{language}>"


def texts_by_role(specials: Specials) -> dict[str, str]:
    """The text of each role's token, in the order of their ids."""
    roles = {role: str(getattr(specials, role)) for role in ROLES}
    return roles | {f"{LANGUAGE_PREFIX}{language}": language_tag(language) for language in specials.languages}


def special_token_texts(specials: Specials) -> list[str]:
    """All special and extra tokens, each once, in the order of their ids."""
    tokens = [*texts_by_role(specials).values(), *specials.extra]
    if too_short := [text for text in tokens if len(text) < 2]:
        raise RegardError(
            f"The special token '{too_short[0]}' is too short: a single character is a piece of ordinary text.",
            fix=f"Give it a longer name, e.g. <{too_short[0] or 'pad'}>.",
        )
    if duplicates := sorted(set(specials.extra) & set(texts_by_role(specials).values())):
        raise RegardError(f"'{duplicates[0]}' cannot be both a special and an extra token.", fix="Rename one of them.")
    return list(dict.fromkeys(tokens))


def to_document_parts(specials: Specials, ids: dict[str, int]) -> dict[str, Any]:
    """The two parts of a file that hold special tokens, given the id of each text."""
    extra = set(specials.extra)
    added_tokens = [
        {"id": ids[text], "content": text, "single_word": False, "lstrip": False, "rstrip": False}
        | {"normalized": False, "special": text not in extra}
        for text in sorted(special_token_texts(specials), key=ids.__getitem__)
    ]
    roles = {name: {"id": name, "ids": [ids[text]], "tokens": [text]} for name, text in texts_by_role(specials).items()}
    sequences = [{"Sequence": {"id": part, "type_id": 0}} for part in ("A", "B")]
    template = {"type": "TemplateProcessing", "single": sequences[:1], "pair": sequences, "special_tokens": roles}
    return {"added_tokens": added_tokens, "post_processor": template}


def read_special_ids(document: dict[str, Any], where: str | None = None) -> SpecialIds:
    """The ids by role, from a file's document."""
    template = document.get("post_processor") or {}
    ids_by_role = {name: entry["ids"][0] for name, entry in template.get("special_tokens", {}).items() if entry["ids"]}
    if missing := [role for role in ROLES if role not in ids_by_role]:
        raise RegardError(
            f"The file does not say which token has the role: {', '.join(missing)}.",
            where=where,
            fix="Learn it with `regard tokenizer learn`, or add the roles to `special_tokens` of a TemplateProcessing.",
        )
    languages = {
        name.removeprefix(LANGUAGE_PREFIX): ids_by_role[name]
        for name in ids_by_role
        if name.startswith(LANGUAGE_PREFIX)
    }
    return SpecialIds(
        **{role: ids_by_role[role] for role in ROLES},
        languages=dict(sorted(languages.items(), key=lambda item: item[1])),
        extra=dict(_iter_extra_tokens(document["added_tokens"])),
    )


def _iter_extra_tokens(added_tokens: Iterable[dict[str, Any]]) -> Iterable[tuple[str, int]]:
    return ((token["content"], token["id"]) for token in added_tokens if not token["special"])
