"""Text as model input."""

from typing import Any, NoReturn

from regard.base.errors import RegardError
from regard.tasks.inputs.adapter import InputAdapter
from regard.text.tokenizer_pair import TokenizerPair


class TextInput(InputAdapter[str]):
    """Tokenized texts."""

    plural, reads_files = "texts", False

    def __init__(self, tokenizers: TokenizerPair) -> None:
        self.tokenizers = tokenizers

    @property
    def summary(self) -> str:
        """The vocabulary sizes."""
        source, target = self.tokenizers.source.size, self.tokenizers.target.size
        return f"{source:,} tokens" if self.tokenizers.is_joint else f"{source:,} and {target:,} tokens"

    def describe(self) -> dict[str, Any]:
        """Return the kind of input."""
        return {"kind": "text"}

    def decode(self, content: bytes, location: str, *, max_pixels: int, max_vectors: int) -> NoReturn:  # noqa: ARG002
        """Raise an error: texts are sent as JSON, not as files."""
        raise RegardError("This model reads texts, not files.", location=location, hint="Send the texts as JSON.")

    def count_vectors(self, media: str) -> int:
        """Return the number of tokens of a text, without special tokens."""
        return len(self.tokenizers.source.encode_ids([media])[0])

    def samples(self) -> list[str]:
        """Return a text with one word and one with several."""
        return ["a", "one two three four five six seven eight"]
