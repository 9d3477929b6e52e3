"""Evaluation data and options, with checks for mutually exclusive options. This module does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.base.errors import RegardError
from regard.base.files import AnyPath, check_not_overwritten

if TYPE_CHECKING:
    from regard.tasks.pipeline import Pipeline

Evaluation = dict[str, Any]
"""Results by name: the object that `regard evaluate --json` prints."""
Content = Literal["pairs", "labels", "tags", "text", "images", "audio", "speech", "captions"]
Labels = tuple[str, ...]  # labels of one text: one, or one per word
DEFAULT_BEAM_SIZE = 5
SPECIAL_OPTIONS = (
    *("--target-language", "--window", "--train", "--probes", "--fit-temperature", "--other", "--other-output"),
    *("--fit-quality", "--output", "--unconstrained", "--beam", "--length-penalty"),
)  # not every evaluation takes them


@dataclass(frozen=True)
class EvaluationOptions:
    """Options of `regard evaluate` (see its help); None means not given."""

    model: Any = None
    """A model folder, run folder or loaded model, like `other`."""
    data: AnyPath | None = None
    columns: str | None = None
    images: AnyPath | None = None
    audio: AnyPath | None = None
    source: AnyPath | None = None
    reference: Sequence[AnyPath] | None = None
    text: AnyPath | None = None
    lines: bool = False
    hypotheses: AnyPath | None = None
    train: AnyPath | None = None
    target_language: str | None = None
    other: Any = None
    other_output: AnyPath | None = None
    samples: int = 1000
    seed: int = 12345
    beam: int | None = None
    length_penalty: float = 1.0
    window: int | None = None
    unconstrained: bool = False
    probes: bool = False
    fit_temperature: AnyPath | None = None
    fit_quality: AnyPath | None = None
    output: AnyPath | None = None

    def check(self) -> None:
        """Raise an error for mutually exclusive options before any work starts."""
        files = (self.data, self.source, self.hypotheses, self.other_output, self.text, self.train)
        for file in (*files, *(self.reference or ())):
            check_not_overwritten(file, self.output)
        for is_wrong, message, hint in (*self._input_faults(), *self._other_faults()):
            if is_wrong:
                raise RegardError(message, hint=hint)

    def check_used(self, kind: str, used: Sequence[str]) -> None:
        """Raise an error for options that this kind of evaluation does not support.

        Args:
            kind: What is evaluated, e.g. "translations".
            used: The optional options that it supports.
        """
        for field in fields(EvaluationOptions):
            name = f"--{field.name.replace('_', '-')}"
            if name in SPECIAL_OPTIONS and name not in used and getattr(self, field.name) != field.default:
                raise RegardError(f"{name} is not for {kind}.", hint=f"Leave out {name}.")

    @property
    def beam_size(self) -> int:
        """The default beam size for models without one."""
        return self.beam or DEFAULT_BEAM_SIZE

    @property
    def data_path(self) -> AnyPath | None:
        """Test data that is not in parallel files."""
        return self.data or self.images or self.audio

    @property
    def _has_other(self) -> bool:
        return self.other is not None or self.other_output is not None

    @property
    def _fits(self) -> bool:
        """Whether something is fitted and stored in a new folder."""
        return self.fit_temperature is not None or self.fit_quality is not None

    @property
    def _has_source(self) -> bool:
        return self.source is not None

    @property
    def _has_data(self) -> bool:
        """Whether there is test data other than pairs in parallel files."""
        return self.text is not None or self.data_path is not None

    @property
    def _scores_texts(self) -> bool:
        """Whether texts are scored one by one (`regard evaluate --score`)."""
        return False

    def _input_faults(self) -> tuple[tuple[bool, str, str], ...]:
        has_hypotheses, has_text = self.hypotheses is not None, self.text is not None
        has_pairs = self.source is not None or bool(self.reference)
        needs_references = has_hypotheses or self._has_other or self._fits or not self.probes
        return (
            (
                self.model is None and not has_hypotheses,
                "No model or output file was given.",
                "Give a model folder, or --hypotheses FILE.",
            ),
            (
                self.model is not None and has_hypotheses,
                "A model and --hypotheses were both given.",
                "Give one of them; to compare two systems use --other or --other-output.",
            ),
            (
                self.data_path is not None and (has_text or has_pairs),
                "--data, --images and --audio cannot be combined with --source, --reference or --text.",
                "Give the test data as one file (--data), or as --source and --reference, or as --text.",
            ),
            (
                sum(path is not None for path in (self.data, self.images, self.audio)) > 1,
                "Two of --data, --images and --audio were given.",
                "Give one.",
            ),
            (
                has_text and (has_pairs or has_hypotheses or self.probes or self._has_other or self.output is not None),
                "--text cannot be combined with options for translation models.",
                "Give --text for a language model, or --source and --reference for a translation model.",
            ),
            (
                not self._has_data and not self.reference and (self.output or self.train) is not None,
                "--output and --train need --reference.",
                "Add --reference FILE, or leave them out.",
            ),
            (
                not self._has_data and not self.reference and needs_references,
                "There are no references.",
                "Give --reference FILE for a translation model, --data FILE for a classifier or tagger, --text FILE "
                "for a language model.",
            ),
            (
                not self._has_data and not self._has_source and (not has_hypotheses or self.other is not None),
                "There are no source texts.",
                "Give --source FILE.",
            ),
            (
                not self._has_data and not self._scores_texts and self.window is not None,
                "--window needs --text or --data.",
                "Leave out --window.",
            ),
            (self.columns is not None and self.data is None, "--columns needs --data.", "Leave out --columns."),
            (self.lines and not has_text, "--lines needs --text.", "Leave out --lines."),
            (
                has_text and not self._scores_texts and self.target_language is not None,
                "--target-language is for translation models.",
                "Leave out --target-language.",
            ),
        )

    def _other_faults(self) -> tuple[tuple[bool, str, str], ...]:
        has_hypotheses = self.hypotheses is not None
        return (
            (
                has_hypotheses and (self.probes or self.unconstrained or self._fits),
                "--probes, --unconstrained, --fit-temperature and --fit-quality need a model.",
                "Give a model folder instead of --hypotheses.",
            ),
            (
                has_hypotheses and self.other is None and self.beam is not None,
                "--beam needs a model.",
                "Leave out --beam.",
            ),
            (
                has_hypotheses and self.output is not None,
                "--output needs a model: --hypotheses already is a file.",
                "Leave out --output.",
            ),
            (
                self.other is not None and self.other_output is not None,
                "--other and --other-output were both given.",
                "Give one of them.",
            ),
            *(
                (folder is not None and Path(folder).exists(), f"{folder} already exists.", "Choose another name.")
                for folder in (self.fit_temperature, self.fit_quality)
            ),
        )


_UNITS: dict[Content, str] = {"images": "images", "captions": "images", "audio": "audio", "speech": "audio"}


@dataclass(frozen=True)
class EvaluationData:
    """Test data and the output of other systems; None if not given."""

    content: Content
    inputs: Sequence[Any] | None = None
    """Model inputs: source texts, texts for a language model, images or audio clips."""
    second_texts: list[str] | None = None
    """The second text of each labeled pair."""
    references: list[tuple[str, ...]] | None = None
    labels: list[Labels] | None = None
    hypotheses: list[str] | None = None
    other_output: list[str] | None = None
    other: "Pipeline | None" = None
    train: list[str] | None = None

    @property
    def unit(self) -> str:
        """The result key for the number of inputs: texts, images or audio."""
        return _UNITS.get(self.content, "texts")

    @property
    def first_references(self) -> list[str]:
        """The first reference of each input."""
        return [references[0] for references in self.references or []]
