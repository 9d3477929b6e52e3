"""The tokenizers of a model: one for both sides (`tokenizer.json`), or `source.json` and `target.json`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.base.errors import RegardError
from regard.text.tokenizer import Tokenizer

JOINT_FILE, SOURCE_FILE, TARGET_FILE = "tokenizer.json", "source.json", "target.json"


@dataclass(frozen=True)
class TokenizerPair:
    """Source and target tokenizer; the same object if they are joint."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def joint(cls, tokenizer: Tokenizer) -> "TokenizerPair":
        """Use one tokenizer for both sides."""
        return cls(tokenizer, tokenizer)

    def __repr__(self) -> str:
        if self.is_joint:
            return f"TokenizerPair.joint({self.source})"
        return f"TokenizerPair(source={self.source}, target={self.target})"

    @property
    def is_joint(self) -> bool:
        """Whether both sides share one tokenizer."""
        return self.source is self.target

    @property
    def fingerprint(self) -> str:
        """Hash of both tokenizers."""
        return self.source.fingerprint if self.is_joint else f"{self.source.fingerprint}+{self.target.fingerprint}"

    def add_tokens(self, texts: Sequence[str]) -> "TokenizerPair":
        """Return tokenizers with these strings as extra tokens (`Tokenizer.add_tokens`)."""
        source = self.source.add_tokens(texts)
        return TokenizerPair(source, source if self.is_joint else self.target.add_tokens(texts))

    @classmethod
    def load(cls, folder: Path) -> "TokenizerPair":
        """Read the tokenizers from a folder.

        Raises:
            RegardError: The folder contains no complete set of files, or both sets.
        """
        has_joint = (folder / JOINT_FILE).is_file()
        side_files = [name for name in (SOURCE_FILE, TARGET_FILE) if (folder / name).is_file()]
        if has_joint and side_files:
            raise RegardError(
                f"The folder contains both {JOINT_FILE} and {side_files[0]}, which is ambiguous.",
                location=str(folder),
                hint="Remove the file that does not belong to the model.",
            )
        if has_joint:
            return cls.joint(Tokenizer.load(folder / JOINT_FILE))
        if len(side_files) < 2:
            missing = f"no {JOINT_FILE}" if not side_files else f"{side_files[0]} but not the other side's file"
            raise RegardError(
                f"The folder contains {missing}.",
                location=str(folder),
                hint="Learn tokenizers with `regard tokenizer learn`.",
            )
        return cls(Tokenizer.load(folder / SOURCE_FILE), Tokenizer.load(folder / TARGET_FILE))

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json`, or `source.json` and `target.json`, into an existing folder."""
        if self.is_joint:
            self.source.save(folder / JOINT_FILE)
        else:
            self.source.save(folder / SOURCE_FILE)
            self.target.save(folder / TARGET_FILE)
