"""Scores outputs against references (texts, labels and tags) and compares systems."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.base.errors import RegardError
from regard.base.formatting import join_lines, pluralize
from regard.base.progress import begin
from regard.measure.bleu_chrf import bleu, chrf, exact_match
from regard.measure.bootstrap import METRICS, Comparison, paired_bootstrap
from regard.measure.breakdown import count_words, score_by_frequency, score_by_length
from regard.measure.error_rate import cer, ter, wer
from regard.measure.label_scores import compare_labels, score_labels
from regard.measure.metric import Score
from regard.tasks.evaluation.data import text_error
from regard.tasks.evaluation.options import Content, Evaluation, EvaluationData, EvaluationOptions, Labels

if TYPE_CHECKING:
    from regard.tasks.pipeline import Pipeline

Measure = Callable[[Sequence[str], Any], Score]
SEARCH_OPTIONS = ("--beam", "--length-penalty", "--output")


class TextOutputs:
    """Text outputs, scored against references.

    Args:
        name: Their name in messages.
        measures: The metrics by name.
        used: The optional `regard evaluate` options that they support.
    """

    def __init__(self, name: str, measures: dict[str, Measure], used: Sequence[str] = SEARCH_OPTIONS) -> None:
        self.name, self.measures, self.used = name, measures, used

    def read(self, lines: list[str], _data: EvaluationData, _option: str) -> list[Any]:
        """Parse the outputs from the lines of a file."""
        return lines

    def write(self, outputs: list[Any]) -> list[str]:
        """Format each output as a line."""
        return outputs

    def score(self, outputs: list[Any], data: EvaluationData, options: EvaluationOptions) -> Evaluation:  # noqa: ARG002
        """Score the outputs against the references."""
        references = [texts if len(texts) > 1 else texts[0] for texts in data.references or []]
        scores = {name: asdict(measure(outputs, references)) for name, measure in self.measures.items()}
        return {data.unit: len(outputs), "scores": scores}

    def compare(
        self, outputs: list[Any], others: list[Any], data: EvaluationData, options: EvaluationOptions
    ) -> list[Comparison]:
        """Compare with the outputs of another system."""
        seed, references = options.seed, data.references or []
        return [paired_bootstrap(outputs, others, references, metric, options.samples, seed) for metric in METRICS]


class TranslationOutputs(TextOutputs):
    """Translations, also scored by source length and by training word frequency."""

    def score(self, outputs: list[Any], data: EvaluationData, options: EvaluationOptions) -> Evaluation:
        """Score the translations; the breakdowns are empty without sources or training text."""
        references, by_length, by_frequency = data.references or [], [], []
        if data.inputs is not None:
            by_length = [asdict(bucket) for bucket in score_by_length(outputs, references, data.inputs)]
        if data.train is not None:
            by_frequency = [
                asdict(bucket) for bucket in score_by_frequency(outputs, references, count_words(data.train))
            ]
        return super().score(outputs, data, options) | {"by_length": by_length, "by_frequency": by_frequency}


class LabelOutputs(TextOutputs):
    """Labels or tags."""

    def read(self, lines: list[str], data: EvaluationData, option: str) -> list[Any]:
        """Parse labels from lines: the whole line, or space-separated tags, one per word."""
        expected = data.labels or []
        is_tagged = any(len(labels) != 1 for labels in expected)
        predicted: list[Labels] = [tuple(line.split()) if is_tagged else (line.strip(),) for line in lines]
        for number, (tags, expected_tags) in enumerate(zip(predicted, expected, strict=True), 1):
            if len(tags) != len(expected_tags):
                raise RegardError(
                    f"Line {number} of {option} has {pluralize(len(tags), 'tag')} for {len(expected_tags)} words.",
                    hint="Give one tag for each word, separated by spaces.",
                )
        return predicted

    def write(self, outputs: list[Any]) -> list[str]:
        """Return the labels of each input, separated by spaces."""
        return [" ".join(labels) for labels in outputs]

    def score(self, outputs: list[Any], data: EvaluationData, options: EvaluationOptions) -> Evaluation:
        """Score the labels."""
        report = score_labels(outputs, data.labels or [], options.samples, options.seed)
        evaluation = asdict(report) | {"matrix": report.matrix.to_dict()}
        return evaluation | {data.unit: evaluation.pop("texts")}

    def compare(
        self, outputs: list[Any], others: list[Any], data: EvaluationData, options: EvaluationOptions
    ) -> list[Comparison]:
        """Compare with the labels of another system."""
        return compare_labels(outputs, others, data.labels or [], options.samples, options.seed)


TRANSLATIONS = TranslationOutputs(
    "translations",
    {"bleu": bleu, "chrf": chrf, "ter": ter, "exact_match": exact_match, "wer": wer},
    (
        *(*SEARCH_OPTIONS, "--target-language", "--train", "--probes", "--fit-temperature", "--fit-quality"),
        *("--other", "--other-output"),
    ),
)
LABELS = LabelOutputs("labeled data", {}, ("--other", "--other-output", "--output", "--unconstrained"))
OUTPUTS: dict[Content, TextOutputs] = {
    "pairs": TRANSLATIONS,
    "labels": LABELS,
    "tags": LABELS,
    "images": LABELS,
    "audio": LABELS,
    "speech": TextOutputs("transcripts", {"cer": cer, "wer": wer, "exact_match": exact_match}),
    "captions": TextOutputs("captions", {"bleu": bleu, "chrf": chrf, "exact_match": exact_match}),
}
"""Output types by test data content."""


def evaluate_outputs(system: "Pipeline | None", data: EvaluationData, options: EvaluationOptions) -> Evaluation:
    """Score the outputs of a model or file, and compare them with another system."""
    kind = OUTPUTS.get(data.content)
    if kind is None:
        hint = "Give --source and --reference for a translation model, --data for a classifier or tagger."
        raise text_error(str(options.hypotheses), hint)
    options.check_used(kind.name, kind.used)
    for pipeline in (system, data.other):
        if pipeline is not None:
            pipeline.check_evaluation(data, options)
    if data.references is None and data.labels is None:  # for probes alone
        return {}
    if system is None:
        outputs = kind.read(data.hypotheses or [], data, "--hypotheses")
    else:
        outputs = system.make_outputs(data, options)
    if options.output is not None:  # before they are scored
        lines = "".join(f"{join_lines(line)}\n" for line in kind.write(outputs))
        Path(options.output).write_text(lines, encoding="utf-8", newline="\n")
    evaluation = kind.score(outputs, data, options)
    if system is not None:
        evaluation |= system.evaluate_likelihood(data, options)
    if data.other is None and data.other_output is None:
        return evaluation
    if data.other is None:
        others = kind.read(data.other_output or [], data, "--other-output")
    else:
        others = data.other.make_outputs(data, options)
    begin("resampling for the comparison")
    comparisons = kind.compare(outputs, others, data, options)
    evaluation["comparisons"] = [asdict(entry) | {"is_significant": entry.is_significant} for entry in comparisons]
    baseline = options.hypotheses if system is None else system.folder or system
    candidate = options.other_output if data.other is None else data.other.folder or data.other
    return evaluation | {"systems": {"baseline": str(baseline), "candidate": str(candidate)}}
