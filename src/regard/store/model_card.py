"""The model card: architecture, data, training and scores, as Markdown."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from regard.config.model import AnyModelConfig


@dataclass(frozen=True)
class Card:
    """The content of a model card; `str()` renders it."""

    settings: AnyModelConfig
    parameters: int
    input: str  # the model's input, for example "vocabulary: byte_bpe, 8,000 tokens"
    data: Mapping[str, int | str]  # for example {"training samples": 29000}
    training: Mapping[str, int | float | str]
    scores: Mapping[str, float]
    signatures: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def __str__(self) -> str:
        settings = self.settings
        languages = f" ({' to '.join(settings.languages)})" if settings.languages else ""
        family = settings.family.replace("_", "-")
        lines = [f"# {settings.task.capitalize()}{languages}", ""]
        lines += [f"A Transformer of the {family} family with {self.parameters:,} parameters, trained with Regard.", ""]
        if self.note:
            lines += [self.note, ""]
        lines += ["## Data", "", *(f"- {name}: {_format_value(value)}" for name, value in self.data.items())]
        lines += [f"- {self.input}", ""]
        lines += [
            "## Training",
            "",
            *(f"- {name}: {_format_value(value)}" for name, value in self.training.items()),
            "",
        ]
        if self.scores:
            lines += ["## Scores on the validation data", "", "| score | value | signature |", "|---|---|---|"]
            rows = [(name, value, self.signatures.get(name, "")) for name, value in self.scores.items()]
            escaped = [(name, value, signature.replace("|", "\\|")) for name, value, signature in rows]
            lines += [f"| {name} | {value:.4g} | {signature} |" for name, value, signature in escaped]
            lines += [""]
        return "\n".join(lines)


def _format_value(value: float | str) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
