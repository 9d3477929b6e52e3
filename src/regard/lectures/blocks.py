"""What a lecture page consists of: stations, each a list of typed blocks. `web/lectures` draws them.

Texts may contain `code` and *emphasis*. Numbers in them come from Regard's code, never from the keyboard.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Judgment = Literal["holds", "holds only if", "does not hold here", "slip of the slide", "not measured"]
Number = int | float


@dataclass(frozen=True, kw_only=True)
class Text:
    """A paragraph."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A formula in Unicode characters, and what its symbols mean."""

    formula: str
    text: str = ""
    kind: Literal["formula"] = "formula"


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of strings and numbers; numbers are shown with `digits` digits, infinities and NaN as such."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Number]]
    digits: int = 2
    shaded: bool = False  # color each number by its size
    kind: Literal["table"] = "table"


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command, what it prints, and the date of the run if the output was stored because it takes longer."""

    command: str
    output: str
    stored: str = ""  # date and cost of a stored run, e.g. "2026-11-18, 85 CPU-seconds"
    kind: Literal["command"] = "command"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Values of a control's inputs, and the outputs that Regard's own code computes for them."""

    inputs: Mapping[str, Number | str]
    outputs: Mapping[str, Number]


@dataclass(frozen=True, kw_only=True)
class Control:
    """A live control, drawn and computed in the page; `probes` hold its arithmetic to Python's."""

    control: str  # name of a file in web/lectures/controls
    title: str
    params: Mapping[str, object]
    probes: Sequence[Case]
    kind: Literal["control"] = "control"


@dataclass(frozen=True, kw_only=True)
class LookFrame:
    """A page of `regard look`, embedded: `site.LOOK_PAGES` names the function that makes its document."""

    name: str
    title: str
    view: str = ""  # the hash of the address: tab, group, layer and head
    height: int = 620  # pixels
    kind: Literal["look"] = "look"


@dataclass(frozen=True, kw_only=True)
class Option:
    """One answer of a quiz, and what follows from it, computed."""

    text: str
    consequence: str
    is_right: bool = False


@dataclass(frozen=True, kw_only=True)
class Quiz:
    """A question with options."""

    question: str
    options: Sequence[Option]
    kind: Literal["quiz"] = "quiz"


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """Whether a claim of the lecture holds, and the number that decides."""

    judgment: Judgment
    text: str
    kind: Literal["verdict"] = "verdict"


Block = Text | Formula | Table | Command | Control | LookFrame | Quiz


@dataclass(frozen=True, kw_only=True)
class Station:
    """One claim of a lecture: predict, see, change, judge."""

    name: str  # its anchor, unique among all lectures
    title: str
    claim: str  # what the slide says, in our own words
    predict: Quiz
    blocks: Sequence[Block]
    change: str  # what to try next
    verdict: Conclusion
    items: Sequence[int] = ()  # rows of docs/lectures/coverage.md
    terms: Sequence[str] = ()  # of the check list of lecture 3

    @property
    def experiment(self) -> str:
        """The commands that show the claim, with the cost of stored runs; without any, what its page shows."""
        commands = [block for block in self.blocks if isinstance(block, Command)]
        parts = [f"`{block.command}`" + (f" ({block.stored})" if block.stored else "") for block in commands]
        if not parts:
            titles = [block.title for block in self.blocks if isinstance(block, Control | Table | LookFrame)]
            parts = ["on the page" + "".join(f": {title}" for title in titles[:1])]
        return "; ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Lecture:
    """A lecture: its stations in the order of the slides."""

    number: int
    title: str
    introduction: str
    stations: Sequence[Station] = field(default_factory=tuple)
