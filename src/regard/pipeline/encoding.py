"""Sources as an encoder-decoder was trained to read them: [tag] + source + [end]; and rows as tensors."""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.config.model import EncoderDecoder as Settings
from regard.pipeline.limits import max_positions
from regard.text.tokenizer_pair import TokenizerPair

TargetLanguage = str | Sequence[str] | None


def check_list(values: Sequence[str], what: str, call: str) -> None:
    """Refuse one text where many are expected: its letters would pass for texts."""
    if isinstance(values, str):
        raise RegardError(f"One {what} was given, where a list is expected.", fix=f"{call}([{values[:20]!r}])")


def encode_sources(
    texts: Sequence[str],
    tokenizers: TokenizerPair,
    settings: Settings,
    target_language: TargetLanguage,
    description: str = "Text",
) -> list[list[int]]:
    """The tokens of each source. `into` names the language to write, for all or for each; errors say "`called` 1"."""
    tokenizer = tokenizers.source
    ids, tags = (
        tokenizer.encode_ids(list(texts)),
        _language_tags(len(texts), tokenizers, settings.languages, target_language),
    )
    sources = [[*tag, *tokens, tokenizer.specials.eos] for tag, tokens in zip(tags, ids, strict=True)]
    for number, (text, source) in enumerate(zip(texts, sources, strict=True), 1):
        check_length(f"{description} {number}", source, max_positions(settings.encoder), where=text)
    return sources


def check_length(what: str, tokens: Sequence[int], limit: int | None, *, where: str) -> None:
    """Refuse more tokens than there are learned positions."""
    if limit is not None and len(tokens) > limit:
        raise RegardError(
            f"{what} has {len(tokens)} tokens, and the model has learned {limit} positions.",
            where=where if len(where) <= 60 else f"{where[:57]}...",
            fix="Cut it into sentences, or train with positions that know no end (sinusoidal, rotary).",
        )


def padded(rows: list[list[int]], pad_id: int, device: torch.device) -> tuple[Tensor, Tensor | None]:
    """Rows as a tensor (B, T), and which of it is real (None: all of it, which models do faster)."""
    lengths = [len(row) for row in rows]
    max_length = max(lengths)
    tokens = torch.tensor([row + [pad_id] * (max_length - len(row)) for row in rows], device=device)  # (B, T)
    if min(lengths) == max_length:
        return tokens, None
    return tokens, torch.arange(max_length, device=device) < torch.tensor(lengths, device=device)[:, None]


def _language_tags(
    count: int, tokenizers: TokenizerPair, languages: Sequence[str], target_language: TargetLanguage
) -> list[list[int]]:
    """What stands before each source: a tag where the vocabulary has tags, for then it was trained with them."""
    specials = tokenizers.source.specials
    if target_language is None and specials.languages:
        if len(languages) != 2:
            raise RegardError(
                f"The model knows several languages: {', '.join(specials.languages)}.",
                fix=f'Say which to write: into="{next(iter(specials.languages))}" (--into on the command line).',
            )
        target_language = languages[-1]
    if target_language is None:
        return [[]] * count
    target_languages = [target_language] * count if isinstance(target_language, str) else target_language
    if len(target_languages) != count:
        raise RegardError(
            f"{len(target_languages)} languages for {count} texts.", fix="Give one for each, or one for all."
        )
    return [[specials.language_id(language)] for language in target_languages]
