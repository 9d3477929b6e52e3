"""Fill gaps in texts with a masked language model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

import torch

from regard.base.errors import RegardError
from regard.base.formatting import CompactRepr, escape_control_characters
from regard.config.model import EncoderOnlyConfig
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.attention import RecordedAttention, record_attention
from regard.pipeline.encoding import Pipeline, add_special_tokens, as_list, check_length, encoder_logits
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.pretokenize import SPACE_MARK
from regard.text.tokenizer_pair import TokenizerPair

GAP = "___"


@dataclass(frozen=True, repr=False)
class FillCandidate(CompactRepr):
    """One token that may fill a gap."""

    text: str
    """The token alone; ##ing continues the word before the gap (WordPiece)."""
    probability: float
    token: int


@dataclass(frozen=True, repr=False)
class FilledText(CompactRepr):
    """A text with every gap filled by its most probable token."""

    text: str
    gaps: tuple[tuple[FillCandidate, ...], ...]
    """Candidates for each gap, most probable first."""

    def to_lines(self, _source: str, _n_best: int, /) -> list[str]:
        """Return the filled text, and a line of candidates for each gap."""
        lines = [", ".join(f"{choice.text} {choice.probability:.1%}" for choice in gap) for gap in self.gaps]
        return [escape_control_characters(line) for line in (self.text, *(f"  {line}" for line in lines))]


class FillMask(Pipeline):
    """Fills gaps with a masked language model.

        fill_mask = regard.load_fill_mask("my-model")
        fill_mask.fill("The ___ barks.").text

    A gap stands for one token. Several gaps of a text are filled independently of each other.
    """

    kind = "masked language model"

    def __init__(self, model: EncoderOnly, tokenizers: TokenizerPair, settings: EncoderOnlyConfig) -> None:
        if settings.task != "masked_lm":
            raise RegardError(f"This model's task is '{settings.task}', not 'masked_lm'.", hint="Use `Classifier`.")
        check_vocabulary_sizes(settings, tokenizers, location="FillMask")
        self.model: EncoderOnly = model
        self.tokenizers = tokenizers
        self.settings: EncoderOnlyConfig = settings

    def predict(
        self,
        inputs: Sequence[str],
        *,
        n_best: int = 5,
        gap: str = GAP,
        report: Callable[[int], None] = lambda _: None,
    ) -> list[FilledText]:
        """Fill the gaps of each text; what `regard predict` does."""
        return self.fill(inputs, n_best, gap, report=report)

    @overload
    def fill(  # type: ignore[overload-overlap]
        self,
        texts: str,
        n_best: int = 5,
        gap: str = GAP,
        batch_tokens: int = 4096,
        *,
        report: Callable[[int], None] = ...,
    ) -> FilledText: ...
    @overload
    def fill(
        self,
        texts: Sequence[str],
        n_best: int = 5,
        gap: str = GAP,
        batch_tokens: int = 4096,
        *,
        report: Callable[[int], None] = ...,
    ) -> list[FilledText]: ...

    def fill(
        self,
        texts: str | Sequence[str],
        n_best: int = 5,
        gap: str = GAP,
        batch_tokens: int = 4096,
        *,
        report: Callable[[int], None] = lambda _: None,
    ) -> FilledText | list[FilledText]:
        """Fill the gaps of one text or of each of several texts.

        Args:
            texts: One text or several, with at least one gap each.
            n_best: Number of candidates per gap.
            gap: String that marks a gap in the texts.
            batch_tokens: Maximum number of tokens in a batch, padding included.
            report: Called with the number of texts that were just filled.

        Returns:
            The filled text, or a list of them in the order of the texts.
        """
        if n_best < 1:
            raise RegardError(f"n_best must be at least 1, got {n_best}.", hint="Use 1 or more.")
        if not gap:
            raise RegardError("The string that marks a gap is empty.", hint=f'Use a string such as "{GAP}".')
        n_best = min(n_best, self.tokenizers.source.size)
        rows = [self.encode_row(number, text, gap) for number, text in enumerate(as_list(texts), 1)]
        mask_id = self.tokenizers.source.specials.mask
        suppress_tokens = torch.tensor(self.tokenizers.source.specials.not_text, dtype=torch.long, device=self.device)
        results: list[FilledText] = [FilledText("", ())] * len(rows)
        for indices, logits in encoder_logits(self.model, self.settings, self.tokenizers.source, rows, batch_tokens):
            logits.index_fill_(2, suppress_tokens, float("-inf"))
            for index, text_logits in zip(indices, logits, strict=True):
                gaps = [position for position, token in enumerate(rows[index]) if token == mask_id]
                probabilities, tokens = text_logits[gaps].softmax(dim=-1).topk(n_best, dim=-1)  # (gaps, n_best)
                results[index] = self._make_filled_text(rows[index], gaps, probabilities.tolist(), tokens.tolist())
            report(len(indices))
        return results[0] if isinstance(texts, str) else results

    def record(self, text: str, gap: str = GAP) -> RecordedAttention:
        """Record the attention of the model while it reads a text, with or without gaps."""
        tokenizer = self.tokenizers.source
        has_gap = gap and gap in text
        row = self.encode_row(1, text, gap) if has_gap else add_special_tokens(tokenizer, tokenizer.encode(text).ids)
        check_length("The text", row, self.settings.encoder.max_positions, location=text)
        return record_attention(self.model, self.tokenizers, source=row)

    def encode_row(self, number: int, text: str, gap: str = GAP) -> list[int]:
        """Encode a text as the model reads it, with a mask token for each gap; `number` is for error messages."""
        tokenizer = self.tokenizers.source
        parts = text.split(gap)
        if len(parts) < 2:
            raise RegardError(
                f"Text {number} has no gap.", location=text[:60], hint=f"Write {gap} where a token is missing."
            )
        # The space before a word belongs to its first token, so the space before a gap belongs to the token that fills
        # it. If tokens have space marks (U+2581), the space after a gap is the mark of that token or of the next one.
        style = tokenizer.token_bytes.join_style
        texts = [part.removesuffix(" ") for part in parts[:-1]] + parts[-1:]
        if style in ("marks_before", "marks_after"):
            texts = texts[:1] + [text.removeprefix(" ") for text in texts[1:]]
        encoded = tokenizer.encode_ids(texts)
        # Each part was encoded as a text of its own, which has a mark at its start or end. Without a space beside the
        # gap there is none.
        for index, (part, ids) in enumerate(zip(parts, encoded, strict=True)):
            if style == "marks_before" and index and not part.startswith(" "):
                ids[:1] = self._remove_mark(ids[:1])
            if style == "marks_after" and index < len(parts) - 1 and not part.endswith(" "):
                ids[-1:] = self._remove_mark(ids[-1:])
        head, *tail = encoded
        return add_special_tokens(
            tokenizer, head + [token for ids in tail for token in (tokenizer.specials.mask, *ids)]
        )

    def _remove_mark(self, ids: list[int]) -> list[int]:
        """Return the same text without its space mark, if there is such a token; nothing for a mark alone."""
        tokenizer = self.tokenizers.source
        text = "".join(tokenizer.vocabulary[token] for token in ids).strip(SPACE_MARK)
        token = tokenizer.backend.token_to_id(text)
        return [] if not text else ids if token is None else [token]

    def _make_filled_text(
        self, row: list[int], gaps: list[int], probabilities: list[list[float]], tokens: list[list[int]]
    ) -> FilledText:
        tokenizer = self.tokenizers.source
        filled = list(row)
        for position, token_ids in zip(gaps, tokens, strict=True):
            filled[position] = token_ids[0]
        gap_candidates = tuple(
            tuple(
                FillCandidate(tokenizer.token_texts([token])[0].strip(), probability, token)
                for probability, token in zip(*pair, strict=True)
            )
            for pair in zip(probabilities, tokens, strict=True)
        )
        return FilledText(tokenizer.decode(filled), gap_candidates)
