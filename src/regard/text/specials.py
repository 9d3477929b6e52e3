"""Special tokens by role, and how `tokenizer.json` stores the roles.

The file has Hugging Face's format. Its `TemplateProcessing` post-processor has a table `special_tokens` from a name to
the ids and tokens that a template may insert. Regard writes its roles there ("pad", "bos", ..., "language:de"), with a
template that inserts no tokens. A single file is therefore enough, and other programs get the same ids. Special
tokens are `added_tokens` with `special = true`; the user's extra tokens have `special = false`.

Special tokens come after the learned tokens and are not part of the model, so no text, not even "<pad>", is encoded as
one. Only the kinds that can meet unknown characters or words have `unk` in the model, as its last token.
"""

from dataclasses import dataclass, field
from typing import Any

from regard.base.errors import RegardError
from regard.config.tokenizers import SpecialsConfig

ROLES = ("pad", "bos", "eos", "unk", "mask", "cls", "sep")
LANGUAGE_PREFIX = "language:"


@dataclass(frozen=True)
class SpecialIds:
    """The token id of each role. Roles may share an id."""

    pad: int
    bos: int
    eos: int
    unk: int
    mask: int
    cls: int
    sep: int
    languages: dict[str, int] = field(default_factory=dict)
    extra: dict[str, int] = field(default_factory=dict)
    """The user's extra tokens, by text; each occurrence is always a single token."""

    def language_id(self, name: str) -> int:
        """Return the id of the target language's tag, e.g. of <2de> for "de".

        Raises:
            RegardError: The vocabulary has no such tag.
        """
        if name not in self.languages:
            available = ", ".join(self.languages) or "none"
            raise RegardError(
                f"The vocabulary has no tag for the language '{name}' (it has: {available}).",
                hint=f'Learn the tokenizer with specials.languages = [..., "{name}"].',
            )
        return self.languages[name]

    @property
    def control(self) -> frozenset[int]:
        """All ids that do not represent text: every role and language tag, but not the extra tokens."""
        return frozenset([*(getattr(self, role) for role in ROLES), *self.languages.values()])

    @property
    def not_text(self) -> list[int]:
        """Ids that a model must not generate: pad, bos, mask, cls, sep and the language tags.

        Generation allows eos, unk and the user's extra tokens.
        """
        return sorted(self.control - {self.eos, self.unk})


def language_tag(language: str) -> str:
    """Return the text of a language tag.

    >>> language_tag("de")
    '<2de>'
    """
    return f"<2{language}>"


def texts_by_role(specials: SpecialsConfig) -> dict[str, str]:
    """Return the token text of each role, in the order of ids."""
    roles = {role: str(getattr(specials, role)) for role in ROLES}
    return roles | {f"{LANGUAGE_PREFIX}{language}": language_tag(language) for language in specials.languages}


def special_token_texts(specials: SpecialsConfig) -> list[str]:
    """Return the texts of all special and extra tokens without duplicates, in the order of ids."""
    tokens = [*texts_by_role(specials).values(), *specials.extra]
    if too_short := [text for text in tokens if len(text) < 2]:
        raise RegardError(
            f"The special token '{too_short[0]}' is too short: a single character is ordinary text.",
            hint=f"Give it a longer name, e.g. <{too_short[0] or 'pad'}>.",
        )
    if duplicates := sorted(set(specials.extra) & set(texts_by_role(specials).values())):
        raise RegardError(f"'{duplicates[0]}' cannot be both a special and an extra token.", hint="Rename one of them.")
    return list(dict.fromkeys(tokens))


def make_added_token(text: str, token: int, *, is_special: bool = False) -> dict[str, Any]:
    """Return an entry of `added_tokens`; only tokens that are not special are matched in text."""
    return {"id": token, "content": text, "single_word": False, "lstrip": False, "rstrip": False} | {
        "normalized": False,
        "special": is_special,
    }


def to_document_parts(specials: SpecialsConfig, ids: dict[str, int]) -> dict[str, Any]:
    """Return the two parts of `tokenizer.json` that hold special tokens, given the id of each text."""
    extra = set(specials.extra)
    added_tokens = [
        make_added_token(text, ids[text], is_special=text not in extra)
        for text in sorted(special_token_texts(specials), key=ids.__getitem__)
    ]
    roles = {name: {"id": name, "ids": [ids[text]], "tokens": [text]} for name, text in texts_by_role(specials).items()}
    return {"added_tokens": added_tokens, "post_processor": make_post_processor(roles)}


def make_post_processor(roles: dict[str, Any]) -> dict[str, Any]:
    """Return a `post_processor` that inserts no tokens and holds the roles of special tokens."""
    sequences = [{"Sequence": {"id": part, "type_id": 0}} for part in ("A", "B")]
    return {"type": "TemplateProcessing", "single": sequences[:1], "pair": sequences, "special_tokens": roles}


def read_special_ids(document: dict[str, Any], location: str | None = None) -> SpecialIds:
    """Read the ids by role from a parsed `tokenizer.json`."""
    template = document.get("post_processor") or {}
    ids_by_role = {name: entry["ids"][0] for name, entry in template.get("special_tokens", {}).items() if entry["ids"]}
    if missing := [role for role in ROLES if role not in ids_by_role]:
        raise RegardError(
            f"The file has no token for the role: {', '.join(missing)}.",
            location=location,
            hint="Learn it with `regard tokenizer learn`, or add the role to `special_tokens` of a TemplateProcessing.",
        )
    languages = {
        name.removeprefix(LANGUAGE_PREFIX): ids_by_role[name]
        for name in ids_by_role
        if name.startswith(LANGUAGE_PREFIX)
    }
    return SpecialIds(
        **{role: ids_by_role[role] for role in ROLES},
        languages=dict(sorted(languages.items(), key=lambda item: item[1])),
        extra={token["content"]: token["id"] for token in document["added_tokens"] if not token["special"]},
    )
