"""Evaluation interface of pipelines; each pipeline overrides parts of it."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from regard.base.errors import RegardError, RegardWarning
from regard.base.formatting import pluralize
from regard.base.progress import begin
from regard.store.calibration import read_temperature, write_temperature
from regard.store.model_path import find_model
from regard.tasks.evaluation.options import Content, Evaluation, EvaluationData, EvaluationOptions, Labels

if TYPE_CHECKING:
    from regard.config.sources import AnySourceConfig
    from regard.data.example import Example
    from regard.tasks.scorer import Scorer

LABEL_CHUNK = 1024  # inputs to classify at a time, because the probabilities of all labels take memory


class Evaluable:
    """Base class of all pipelines, with their evaluation."""

    test_data: Content
    """The content of its test data."""
    needs_labels: ClassVar[bool] = True
    """Whether unlabeled images and audio clips are an error."""
    kind: ClassVar[str]
    """The kind of model, e.g. "translation model"."""
    folder: Path | None = None
    """The folder from which the model was loaded."""

    def examples(self, example: "Example") -> "Iterable[Example]":
        """Convert a test example into the examples to evaluate; a task may override it (`Task.examples`)."""
        return (example,)

    def evaluate(self, data: EvaluationData, options: EvaluationOptions) -> Evaluation:
        """Return the output of `regard evaluate --json` for this model.

        Args:
            data: The test data.
            options: The options, which may name further test data for a comparison.
        """
        from regard.tasks.evaluation.outputs import evaluate_outputs  # the metrics

        return evaluate_outputs(self, data, options)  # type: ignore[arg-type]

    def detect_source(self, paths: Sequence[str], columns: str | None) -> "AnySourceConfig":
        """Detect the format of test data; the model resolves ambiguities."""
        from regard.data.readers import detect  # the readers of all formats

        return detect.detect_source(paths, columns)

    def check_evaluation(self, data: EvaluationData, options: EvaluationOptions) -> None:
        """Raise an error if the model does not support the test data or an option, before processing."""

    def make_outputs(self, data: EvaluationData, options: EvaluationOptions) -> list[Any]:
        """Return the model's output for each input of the test data."""
        raise NotImplementedError

    def make_scorer(self, temperature: float | None = None) -> "Scorer":  # noqa: ARG002
        """Return a scorer with this temperature, by default the fitted one, if any."""
        message = f"A {self.kind} does not assign probabilities to texts."
        raise RegardError(message, location=str(self.folder), hint="Use a translation model or a language model.")

    def evaluate_likelihood(self, data: EvaluationData, options: EvaluationOptions) -> Evaluation:  # noqa: ARG002
        """Return the likelihood of the references; empty for models that do not assign probabilities to texts."""
        return {}


class EvaluatesLabels(Evaluable):
    """A pipeline whose `predict` returns results with `labels`."""

    labels: tuple[str, ...]
    predict: Any

    def check_evaluation(self, data: EvaluationData, options: EvaluationOptions) -> None:
        """Warn about labels unknown to the model; raise an error if all are unknown."""
        if options.unconstrained:
            self.check_tag_scheme()
        labels = {label for text_labels in data.labels or () for label in text_labels}
        unknown = sorted(labels.difference(self.labels))
        if len(unknown) == len(labels):
            raise RegardError(
                f"All labels of the data are unknown to the model: {', '.join(unknown[:5])}.",
                location=str(options.data_path),
                hint=f"The model predicts {', '.join(self.labels[:5])}: check the label column.",
            )
        if unknown:
            names = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
            message = f"{pluralize(len(unknown), 'label')} of the data unknown to the model: {names}."
            warnings.warn(message, RegardWarning, stacklevel=2)

    def check_tag_scheme(self) -> None:
        """Raise an error unless the labels are tags of a constrained scheme."""
        raise RegardError("--unconstrained is for taggers of text.", hint="Leave out --unconstrained.")

    def make_outputs(self, data: EvaluationData, options: EvaluationOptions) -> list[Labels]:
        """Return the labels of each input."""
        inputs, outputs = data.inputs or (), []
        advance = begin("labeling", len(inputs))
        for start in range(0, len(inputs), LABEL_CHUNK):
            chunk = slice(start, start + LABEL_CHUNK)
            details: dict[str, Any] = {"pairs": data.second_texts[chunk]} if data.second_texts else {}
            details |= {"unconstrained": True} if options.unconstrained else {}
            outputs += [result.labels for result in self.predict(inputs[chunk], report=advance, **details)]
        return outputs


class ScoresTexts(Evaluable):
    """A pipeline whose model assigns probabilities to texts."""

    model: Any
    tokenizers: Any
    settings: Any

    def make_scorer(self, temperature: float | None = None) -> "Scorer":
        """Return a scorer of this model, by default with the fitted temperature in its folder, if any."""
        from regard.tasks.scorer import Scorer  # runs the model in PyTorch

        if temperature is None:
            temperature = 1.0 if self.folder is None else read_temperature(find_model(self.folder))
        return Scorer(self.model, self.tokenizers, self.settings, temperature)

    def score_texts(
        self, texts: Sequence[str], sources: Sequence[str] | None, options: EvaluationOptions
    ) -> Evaluation:
        """Return perplexity and calibration, and both after calibration if a temperature is fitted."""
        from regard.measure.calibration import fit_temperature  # with numpy
        from regard.tasks.evaluation.likelihood import summarize_likelihood

        details: dict[str, Any] = {"target_language": options.target_language, "window": options.window}

        def measure(scorer: "Scorer") -> Evaluation:
            stage = "scoring the references" if sources else "scoring windows of the text"
            advance = begin(stage, len(texts) if sources else None)
            results = scorer.score(texts, sources, report=advance, **details)
            return asdict(summarize_likelihood(results, scorer.temperature))

        if options.fit_temperature is None:
            return {"likelihood": measure(self.make_scorer())}
        if self.folder is None:
            hint = "Give the model as a folder, or as regard.load returns it."
            raise RegardError("--fit-temperature needs a model folder to copy.", hint=hint)
        scorer = self.make_scorer()
        likelihood = measure(scorer)
        begin("fitting the temperature")
        calibrated = self.make_scorer(fit_temperature(scorer.curve(texts, sources, **details)))
        report = measure(calibrated)
        write_temperature(self.folder, Path(options.fit_temperature), calibrated.temperature, report["tokens"])
        return {"likelihood": likelihood, "calibrated_likelihood": report}
