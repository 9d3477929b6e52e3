"""From a corpus to a run, with a reason for every choice: what `regard train` does without a configuration.

choice = choose(Lines(source="train.en", target="train.de"))
choice.run          # every knob, as run.toml holds it
choice.reasons      # one sentence for each
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log, log10
from typing import Any

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import AnyModel
from regard.config.run import AnySource, AnyTokenizer, ByteBpe, CharacterLevel, Data, Run
from regard.config.tables import to_dict
from regard.train.knobs import FEWER, Plan, many, rounded, training, validation
from regard.train.reasons import as_set
from regard.train.recipes import CHARACTERS, Job, Row, fitting, row_for_preset, row_for_size, smaller_rows
from regard.train.survey import Found, Side, running, survey

FEWEST = 50  # examples: of fewer, none can be spared to see whether anything was learned
SHORTEST = 2000  # characters of running text
BATCH = 4096  # tokens that go through the model at once
LETTERS = 500  # different characters that are still few
LEAST, MOST = 200, 300_000  # updates
TIMES = 3  # times through the corpus: a model that is slower than that in the time there is is too large
FEW_TIMES = 20  # so few times through the corpus, even a small one is not learned by heart
SENTENCE = 25  # characters of a short sentence
NORMS = "Norms: before each sublayer, which learns steadily at any rate; after it (2017) a short run may fail."
WORD = 12  # characters: examples that are usually no longer are words, and are read letter by letter
SHELF = 4000  # pieces for a text that has too many characters to read it by them
SYLLABLES = 512  # pieces for words: letters, and the commonest groups of them
SPECIALS = 7  # special tokens of a vocabulary

Pace = Callable[[Run, int], float]  # a run and the usual length of its rows -> seconds an update


@dataclass(frozen=True)
class Choice:
    """A run, why it is so, and what was found in the corpus."""

    run: Run
    reasons: tuple[str, ...]
    found: Found
    length: int  # tokens of a usual row, by which costs are told


def choose(
    source: AnySource | Sequence[AnySource],
    *,
    validation: Sequence[AnySource] = (),
    preset: str | None = None,
    minutes: float | None = None,
    updates: int | None = None,
    changes: Mapping[str, Any] | None = None,
    pace: Pace | None = None,
) -> Choice:
    """A run that suits a corpus. `changes` ({"a.b": value}) have the last word.

    With `minutes` the number of updates follows from how long one takes here, which `pace` measures; without a
    `preset` a smaller model is taken where there is no time for a larger one.
    """
    if preset is not None:
        codec.preset(preset)  # an unknown one is said before a long reading
    if minutes is not None and not 0 < minutes < inf:
        raise RegardError(f"There is nothing to learn in {minutes:g} minutes.", fix="Give at least 1.")
    if updates is not None:
        changes = {**(changes or {}), "train.updates": updates}
    if minutes is not None and "train.updates" in (changes or {}):
        raise RegardError("Both minutes and a number of updates were given.", fix="Say one of the two.")
    sources = tuple(source) if isinstance(source, Sequence) else (source,)
    draft = Draft(sources, tuple(validation), survey(sources), dict(changes or {}), preset)
    if minutes is None:
        return draft.choice(draft.row)
    return _in_minutes(draft, minutes, pace or measured)


def _in_minutes(draft: "Draft", minutes: float, pace: Pace) -> Choice:
    """The largest model that gets a few times through the corpus; with dropout for as many times as it will be."""
    rows = [draft.row] if draft.preset is not None else smaller_rows(draft.job, draft.size)
    for row in rows:
        whole = draft.choice(row)
        is_fixed = not {"train.update_tokens", "data.batch_tokens"}.isdisjoint(draft.changes)
        seconds = pace(whole.run, min(whole.length, whole.run.data.max_length))
        looking = FEWER * seconds * draft.looked_at(row, whole) / whole.run.train.update_tokens
        plan = _in_time(whole.run, minutes, seconds, looking, is_fixed)
        if plan is None:
            return whole
        times = plan.updates * plan.update_tokens / draft.epoch(row)
        if times >= TIMES or row is rows[-1]:
            row = replace(row, dropout=min(row.dropout, 0.1)) if times < FEW_TIMES else row
            return draft.choice(row, plan, minutes)
    raise AssertionError("the last row is always taken")  # pragma: no cover


def measured(run: Run, length: int) -> float:
    """Seconds an update, by a few trial steps."""
    from regard.train.pace import seconds_per_update  # torch: only when it is needed

    return seconds_per_update(run, length)


@dataclass(frozen=True)
class Draft:
    """A corpus that was counted, and what its owner asked for."""

    sources: tuple[AnySource, ...]
    validation: tuple[AnySource, ...]
    found: Found
    changes: Mapping[str, Any]
    preset: str | None

    @property
    def job(self) -> Job:
        """What is to be learned: it follows from the corpus, and for running text from the preset."""
        jobs: dict[str, Job] = {"pairs": "translate", "text": "continue", "labels": "classify", "tags": "tag"}
        job = jobs[self.found.content]
        return fitting(job, self.preset)[0] if self.preset is not None else job

    @property
    def size(self) -> int:
        """What the table goes by; words and phrases teach less than as many sentences do."""
        if self.found.content == "text":
            return self.found.source.characters
        return round(self.found.examples * min(1.0, self.found.usual / SENTENCE))

    @property
    def row(self) -> Row:
        """The row of the table."""
        row = row_for_size(self.job, self.size)
        return row_for_preset(self.job, self.preset or row.preset, self.size)

    def choice(self, row: Row, plan: Plan | None = None, minutes: float | None = None) -> Choice:
        """The run of a row; a plan and its minutes where time is short."""
        reasons: list[str] = []
        tokenizer, size = self._vocabulary(row, reasons)
        model = self._model(row, size)
        reasons.append(_dropout(row))
        if self.job == "translate":
            reasons.append(NORMS)
        data = self._data(row, model, reasons)
        length = self.length(row, data.max_length)
        epoch = self.epoch(row)
        asked = self._asked("train.updates")
        plan = plan or self._ideal(row, epoch)
        epochs = row_for_size(self.job, self.size).epochs
        reasons.append(_amount(plan, epochs, epoch, minutes, asked is not None))
        pairs = self.other.examples if self.other is not None else round(data.held_out * self.found.examples)
        tables = {
            "data": data.model_copy(update={"batch_tokens": self._batch(data, plan)}),
            "tokenizer": tokenizer,
            "model": model,
            "train": training(self.job, row, plan, self._narrow, reasons),
            "validation": validation(self.job, plan, pairs, reasons),
        }
        changed = codec.RUN_FILES().parse({name: to_dict(table) for name, table in tables.items()}, self.changes)
        reasons.insert(0, self._why(row, changed.model))
        return Choice(changed, as_set(reasons, self.changes), self.found, length)

    def _ideal(self, row: Row, epoch: float) -> Plan:
        """As much as the corpus deserves, unless its owner says how much."""
        tokens = self._asked("train.update_tokens") or row.update_tokens
        updates = self._asked("train.updates")
        return Plan(updates or min(MOST, max(LEAST, rounded(row.epochs * epoch / tokens))), tokens)

    def _asked(self, setting: str) -> int | None:
        """A number that was given; what makes no sense is refused later, with all other settings."""
        asked = self.changes.get(setting)
        return asked if isinstance(asked, int) and asked > 0 else None

    def _batch(self, data: Data, plan: Plan) -> int:
        """Tokens of a batch. An update of sentences has two at least, of unlike lengths: one is a lopsided teacher."""
        share = plan.update_tokens if self.job == "continue" else plan.update_tokens // 2
        return min(data.batch_tokens, max(data.max_length, share))

    def length(self, row: Row, longest: int) -> int:
        """Tokens of a usual row: the longer side of a pair, both of a labelled one, or a full row of running text."""
        if self.job == "continue" or running(self.found, self.sources):  # documents are cut into rows
            return longest
        sides = [_tokens(side, self.pieces(row)) for side in (self.found.source, self.found.target)]
        tokens = (sum if self.found.content == "labels" else max)(sides) / self.found.examples
        return min(longest, max(4, round(tokens) + 1))

    def pieces(self, row: Row) -> int:
        """How many pieces the vocabulary will have; CHARACTERS where every character is one."""
        found = self.found
        if asked := self._asked("tokenizer.vocabulary"):
            return asked
        kind = self.changes.get("tokenizer.kind", "character" if row.vocabulary == CHARACTERS else "")
        if kind == "character" and len(found.source.letters | found.target.letters) <= LETTERS:
            return CHARACTERS
        if found.content == "pairs" and found.usual <= WORD:
            return SYLLABLES
        return min(row.vocabulary or SHELF, self._enough)

    @property
    def _enough(self) -> int:
        return max(512, 2 * self.found.words)

    def epoch(self, row: Row) -> float:
        """Tokens of the whole corpus as batches count them, padding and what stays empty included."""
        if self.job == "continue" or running(self.found, self.sources):
            return _tokens(self.found.source, self.pieces(row)) * (1.0 if self.job == "continue" else 1.1)
        return 1.1 * self.length(row, self._asked("data.longest") or 512) * self.found.examples

    def looked_at(self, row: Row, whole: "Choice") -> float:
        """What a look at validation costs, as tokens that are learned from.

        Reading a token takes a third of learning from it, and writing one takes about as long.
        """
        share = whole.run.data.held_out
        if self.other is not None:
            share = self.other.source.characters / max(1, self.found.source.characters)
        return share * self.epoch(row) / 3 + whole.run.validation.sentences * whole.length

    @cached_property
    def other(self) -> Found | None:
        """The validation corpus of its owner."""
        return survey(self.validation) if self.validation else None

    @cached_property
    def _narrow(self) -> bool:
        """Whether the device that it will run on is faster at bfloat16."""
        from regard.train.device import has_bfloat16  # torch: only when it is needed

        table = self.changes.get("device")
        asked = table.get("name") if isinstance(table, Mapping) else None
        return has_bfloat16(str(self.changes.get("device.name", asked or "auto")))

    def _vocabulary(self, row: Row, reasons: list[str]) -> tuple[AnyTokenizer, int]:
        """The kind of vocabulary, and the rows of its table."""
        found, pieces = self.found, self.pieces(row)
        if pieces == CHARACTERS:
            letters = len(found.source.letters | found.target.letters)
            reasons.append(f"Vocabulary: the {letters} different characters of the text.")
            return CharacterLevel(), letters + SPECIALS
        sides = ", the same for both sides" if found.content == "pairs" else ""
        if found.content == "pairs" and found.usual <= WORD:
            reasons.append(
                f"Vocabulary: {pieces} pieces of byte-pair encoding over bytes{sides}: the examples are words "
                f"({found.usual:.0f} characters), and larger pieces would hide how they are spelt."
            )
        else:
            few = "only " if pieces == self._enough else ""
            reasons.append(
                f"Vocabulary: {pieces:,} pieces of byte-pair encoding over bytes (nothing is ever unknown){sides}; "
                f"the text has {few}{found.words:,} different words."
            )
        return ByteBpe(vocabulary=pieces), pieces

    def _why(self, row: Row, model: AnyModel) -> str:
        from regard.models.cost import cost  # torch: only when it is needed

        parameters = cost(model, batch_size=1, source=1, target=1).parameters.total()
        short = self.found.content != "text" and self.found.usual < SENTENCE
        counted = _counted(self.found) + f" of {self.found.usual:.0f} characters" * short
        figure = f"{counted}: preset {row.preset} ({many(parameters)} parameters)"
        own = row_for_size(self.job, self.size)
        if own.preset == row.preset:
            return f"{figure}, because {own.why}."
        if self.preset is None:
            return f"{figure}, because there is no time for {own.preset}, which would suit this corpus."
        return f"{figure}, as you asked; by itself it would be {own.preset}."

    def _model(self, row: Row, pieces: int) -> AnyModel:
        """The preset with the vocabulary, dropout, labels and languages of this corpus."""
        job, model = fitting(self.job, row.preset)
        changes: dict[str, Any] = {"task": job, "languages": list(self.found.languages)}
        for stack in ("encoder", "decoder"):
            if hasattr(model, stack):
                changes |= {f"{stack}.dropout.{place}": row.dropout for place in ("embedding", "sublayer")}
                if job == "translate":
                    changes |= {f"{stack}.placement": "pre", f"{stack}.final_norm": True}
        for table in ("source", "target", "tokens"):
            if getattr(getattr(model, table, None), "kind", "") == "tokens":
                changes[f"{table}.vocabulary"] = pieces
        if job in ("classify", "tag"):
            labels = sorted(self.found.labels)
            if len(labels) < 2:
                what = f"All {self.found.examples:,} examples have the same label, {labels[0]!r}."
                raise RegardError(what, fix="Give examples of at least two kinds.")
            kind = {"kind": "classes", "pool": "mean"} if job == "classify" else {"kind": "tags"}
            changes["head"] = {**kind, "labels": labels}
        return codec.preset(row.preset, changes)

    def _data(self, row: Row, model: AnyModel, reasons: list[str]) -> Data:
        longest = _longest(self.job, model)
        batch = max(longest, min(BATCH, row.update_tokens))
        data = Data(train=self.sources, validation=self.validation, batch_tokens=batch, max_length=longest)
        if self.other is not None:
            other = self.other
            if other.content != self.found.content:
                what = f"The validation corpus is {other.content}, and the training corpus is {self.found.content}."
                raise RegardError(what, fix="Give validation files of the same kind.")
            reasons.append(f"Validation: {_counted(other)} of your own.")
            return data
        share = self._share()
        if running(self.found, self.sources):
            kept, how = f"{many(share * self.found.source.characters)} characters", "the end of the text"
        else:
            kept, how = (
                f"{many(share * self.found.examples)} {_unit(self.found)}",
                "by chance; equal sources stay together",
            )
        reasons.append(f"Validation: about {kept} ({share:.2%}) are held out, {how}.")
        return data.model_copy(update={"held_out": share})

    def _share(self) -> float:
        """Enough to tell two models apart, and never more than a fifth."""
        found = self.found
        if running(found, self.sources):
            if found.source.characters < SHORTEST:
                what = f"The text has {found.source.characters:,} characters, too few to learn from and hold some out."
                raise RegardError(what, fix=f"Give at least {SHORTEST:,}, better a hundred times as many.")
            return _share_of(500_000, found.source.characters, 0.1)
        if found.examples < FEWEST:
            raise RegardError(
                f"{found.examples:,} {_unit(found)} are too few to hold some out for validation.",
                fix=f"Give at least {FEWEST}, or validation data: {_options(found)}.",
            )
        wanted = 1000 if found.examples < 1_000_000 else 2000
        return _share_of(wanted, found.examples, 0.1 if found.examples >= 200 else 0.2)


def _options(found: Found) -> str:
    pairs = "--validation-source and --validation-target, or " if found.content == "pairs" else ""
    return f"{pairs}--validation"


def _dropout(row: Row) -> str:
    if row.dropout > 0.1:
        return f"Dropout: {row.dropout:g}, because it goes many times through little text."
    if row.dropout:
        return f"Dropout: {row.dropout:g}, because there is some danger of learning the text by heart."
    return "Dropout: none, because so much text is not learned by heart."


def _amount(plan: Plan, epochs: int, epoch: float, minutes: float | None, asked: bool) -> str:
    times = plan.updates * plan.update_tokens / epoch
    shown = many(times) if times >= 10 else f"{times:.1f}"
    amount = f"Updates: {plan.updates:,} of {plan.update_tokens:,} tokens, about {shown} times through the corpus"
    if asked:
        return f"{amount}, as you asked."
    if minutes is not None:
        return f"{amount}, because {minutes:g} minutes have room for no more here; {epochs} times would be better."
    return f"{amount}; small corpora need many." if epochs >= 100 else f"{amount}."


def _in_time(run: Run, minutes: float, seconds: float, looking: float, is_fixed: bool) -> Plan | None:
    """As many updates as there is time for beside the seconds of `looking`, or nothing if that is all of them.

    Where it is few, they are made smaller, unless their size is fixed: more steps teach more.
    """
    wanted, tokens = run.train.updates, run.train.update_tokens
    time = 0.95 * 60 * minutes  # the rest is for checkpoints
    room = max(time - looking, time / 2) / seconds
    if room >= wanted:
        return None
    while not is_fixed and tokens >= 4096 and room < wanted / 2:
        tokens, room = tokens // 2, room * 2
    return Plan(max(1, int(room)), tokens, hurried=True)


def _share_of(wanted: int, whole: int, most: float) -> float:
    share = min(most, wanted / whole)
    return round(share, 2 - int(log10(share)))


def _longest(job: Job, model: AnyModel) -> int:
    """Tokens of a row: what fits the model's positions; for running text, how far it looks back."""
    stack = model.encoder if model.family == "encoder_only" else model.decoder
    looks_back = 256 if model.width < 256 else 512 if model.width < 768 else 1024
    wanted = looks_back if job == "continue" else 512
    return min(wanted, stack.position.length) if stack.position.kind == "learned" else wanted


def _tokens(side: Side, pieces: int) -> float:
    return side.characters if pieces == CHARACTERS else side.bytes / bytes_per_token(pieces)


def bytes_per_token(vocabulary: int) -> float:
    """How many bytes a piece stands for, about: fitted to English and German with 1,000 to 32,000 pieces."""
    return max(1.0, 0.66 * log(vocabulary) - 1.8)


def _counted(found: Found) -> str:
    if found.content == "text":
        return f"{many(found.source.characters)} characters"
    return f"{found.examples:,} {_unit(found)}"


def _unit(found: Found) -> str:
    names = {"pairs": "pairs", "labels": "labelled texts", "tags": "tagged sentences", "text": "lines"}
    return names[found.content]
