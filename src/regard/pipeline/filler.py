"""Gaps in a text, filled by an encoder that was trained to do so."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.base.errors import RegardError
from regard.config import model as settings_of
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.encoded import answers, framed
from regard.pipeline.sources import check_list
from regard.pipeline.written import never_written
from regard.store.model_folder import check_vocabulary_sizes
from regard.text.vocabularies import TokenizerPair

GAP = "___"


@dataclass(frozen=True)
class Candidate:
    """One piece that may fill a gap."""

    text: str
    probability: float
    token: int


@dataclass(frozen=True)
class Filled:
    """A text with its gaps filled by the likeliest pieces, and what else might stand in each gap."""

    text: str
    gaps: tuple[tuple[Candidate, ...], ...]


class Filler:
    """filler = regard.load("my-model"); filler.fill(["The ___ barks."])[0].text.

    A gap stands for one piece of the vocabulary. Several gaps of a text are filled independently of each other.
    """

    def __init__(self, model: EncoderOnly, vocabularies: TokenizerPair, settings: settings_of.EncoderOnly) -> None:
        if settings.task != "fill":
            raise RegardError(f"This model's task is '{settings.task}', not 'fill'.", fix="Use `Labeller`.")
        check_vocabulary_sizes(settings, vocabularies, where="Filler")
        self.model, self.vocabularies, self.settings = model, vocabularies, settings

    def fill(self, texts: Sequence[str], best: int = 5, gap: str = GAP, batch_tokens: int = 4096) -> list[Filled]:
        """Every text with the `best` candidates for each of its gaps, likeliest first."""
        check_list(texts, "text", "fill")
        if best < 1 or not gap:
            raise RegardError(f"{best} candidates for gaps written {gap!r} cannot be found.", fix="Ask for 1 or more.")
        best = min(best, self.vocabularies.source.size)
        rows = [self._row(number, text, gap) for number, text in enumerate(texts, 1)]
        mask = self.vocabularies.source.specials.mask
        never = never_written(self.vocabularies.source, next(self.model.parameters()).device)
        found: list[Filled] = [Filled("", ())] * len(rows)
        for places, logits in answers(self.model, self.settings, self.vocabularies.source, rows, batch_tokens):
            logits.index_fill_(2, never, float("-inf"))
            for place, one in zip(places, logits, strict=True):
                gaps = [at for at, token in enumerate(rows[place]) if token == mask]
                chances, tokens = one[gaps].softmax(dim=-1).topk(best, dim=-1)  # (gaps, best)
                found[place] = self._told(rows[place], gaps, chances.tolist(), tokens.tolist())
        return found

    def _row(self, number: int, text: str, gap: str) -> list[int]:
        tokenizer = self.vocabularies.source
        parts = text.split(gap)
        if len(parts) < 2:
            raise RegardError(
                f"Text {number} has no gap.", where=text[:60], fix=f"Write {gap} where a word is missing."
            )
        # The space before a word belongs to its piece, so that before a gap belongs to what fills it; where pieces
        # have marks for spaces, that after a gap is in the mark of the piece or of the next word.
        parts = [part.removesuffix(" ") for part in parts[:-1]] + parts[-1:]
        if tokenizer.token_bytes.join_style in ("marks_before", "marks_after"):
            parts = parts[:1] + [part.removeprefix(" ") for part in parts[1:]]
        first, *others = tokenizer.encode_ids(parts)
        return framed(tokenizer, first + [token for ids in others for token in (tokenizer.specials.mask, *ids)])

    def _told(self, row: list[int], gaps: list[int], chances: list[list[float]], tokens: list[list[int]]) -> Filled:
        tokenizer = self.vocabularies.source
        filled = list(row)
        for at, some in zip(gaps, tokens, strict=True):
            filled[at] = some[0]
        told = tuple(
            tuple(
                Candidate(tokenizer.decode([token]).strip(), chance, token) for chance, token in zip(*pair, strict=True)
            )
            for pair in zip(chances, tokens, strict=True)
        )
        return Filled(tokenizer.decode(filled), told)
