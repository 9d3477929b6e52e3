"""The vocabularies of a model: one for both sides, or one for each.

A folder holds `tokenizer.json`, or `source.json` and `target.json`.
"""

from dataclasses import dataclass
from pathlib import Path

from regard.base.errors import RegardError
from regard.text.tokenizer import Tokenizer

JOINT, SOURCE, TARGET = "tokenizer.json", "source.json", "target.json"


@dataclass(frozen=True)
class Vocabularies:
    """Source and target; the same object when they are joint."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def joint(cls, tokenizer: Tokenizer) -> "Vocabularies":
        """One vocabulary for both sides."""
        return cls(tokenizer, tokenizer)

    @property
    def is_joint(self) -> bool:
        """Whether both sides share one vocabulary."""
        return self.source is self.target

    @property
    def fingerprint(self) -> str:
        """What changes when either does."""
        return self.source.fingerprint if self.is_joint else f"{self.source.fingerprint}+{self.target.fingerprint}"

    @classmethod
    def load(cls, folder: Path) -> "Vocabularies":
        """Read whichever of the two forms the folder holds."""
        joint = (folder / JOINT).is_file()
        each = [name for name in (SOURCE, TARGET) if (folder / name).is_file()]
        if joint and each:
            raise RegardError(
                f"The folder holds both {JOINT} and {each[0]}: which one is meant?",
                where=str(folder),
                fix="Remove what is not the model's.",
            )
        if joint:
            return cls.joint(Tokenizer.load(folder / JOINT))
        if len(each) < 2:
            missing = f"no {JOINT}" if not each else f"{each[0]} without its partner"
            raise RegardError(
                f"The folder holds {missing}.", where=str(folder), fix="Learn with `regard tokenizer learn`."
            )
        return cls(Tokenizer.load(folder / SOURCE), Tokenizer.load(folder / TARGET))

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json`, or `source.json` and `target.json`, into a folder that exists."""
        if self.is_joint:
            self.source.save(folder / JOINT)
        else:
            self.source.save(folder / SOURCE)
            self.target.save(folder / TARGET)
