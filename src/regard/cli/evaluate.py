"""`regard evaluate`: score a model or a file of its output, and compare it with another system."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import join_lines, pluralize
from regard.cli.evaluate_options import EvaluateOptions
from regard.cli.evaluation_data import EvaluationData, Labels, read_data, split_labels
from regard.cli.evaluation_tables import print_evaluation
from regard.cli.options import takes_options
from regard.cli.progress import show_progress
from regard.cli.score import score_texts
from regard.cli.text_input import load_as
from regard.store.model_path import find_model

if TYPE_CHECKING:
    from regard.config.model import AnyModelConfig
    from regard.measure.bootstrap import Comparison
    from regard.pipeline.audio_classifier import AudioClassifier
    from regard.pipeline.classifier import Classifier
    from regard.pipeline.image_classifier import ImageClassifier
    from regard.pipeline.scorer import Scorer
    from regard.pipeline.translator import Translator

EXAMPLES = """
regard evaluate my-model --source test.en --reference test.de
regard evaluate my-model --source test.en --reference test.de --other another-model
regard evaluate my-classifier --data test.tsv
regard evaluate my-book --text another-book.txt
regard evaluate my-model --score "Wo ist Tom?" --source-text "Where is Tom?"
regard evaluate my-book --score --text chapter.txt --lines --json
"""
ADVANCED = "columns train samples seed length_penalty window unconstrained probes fit_temperature"
LABEL_CHUNK = 1024  # inputs to label at a time: the probabilities of all labels take memory
Evaluation = dict[str, Any]  # results by name: the object that --json prints


@takes_options(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> None:
    """Evaluate a model, or a file of its output, on test data.

    Translation: BLEU, chrF, TER, exact match, word error rate, perplexity, calibration. Classification: accuracy, macro
    F1, Matthews correlation, confusion matrix. Tagging: the same per word, and entity F1. Transcription: character and
    word error rate. Captions: BLEU, chrF, exact match. Language models: (pseudo-)perplexity. Embeddings: retrieval@1.
    Models that generate images: bits per pixel. With --other or --other-output a paired bootstrap test.
    """
    options.check()
    settings = None if options.folder is None else _read_settings(options.folder)
    data = read_data(options, settings)
    if options.score and settings is not None:
        score_texts(options, settings, data)
        return
    evaluation: Evaluation = {}
    if data.images is not None and settings is not None and settings.family == "decoder_only":
        _evaluate_pixels(options, data, evaluation)
    elif data.labels is not None:
        _evaluate_labels(options, data, evaluation)
    elif settings is not None and settings.task == "embed":
        _evaluate_embeddings(options, data, evaluation)
    elif data.texts is not None:
        _evaluate_text(options, data, None if settings is None else settings.task, evaluation)
    elif data.images is not None:
        _evaluate_captions(options, data, evaluation)
    elif data.audio is not None:
        _evaluate_transcripts(options, data, evaluation)
    else:
        _evaluate_system(options, data, evaluation)
    if options.as_json:
        typer.echo(json.dumps(evaluation, ensure_ascii=False))
    else:
        print_evaluation(evaluation)


def _read_settings(folder: Path) -> "AnyModelConfig":
    from regard.config import codec  # pydantic: only when needed

    return codec.MODEL_FILES.load(find_model(folder) / "model.toml")


def _evaluate_labels(options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation) -> None:
    """Score the labels or tags of a model or of a file."""
    from regard.measure.label_scores import compare_labels, score_labels
    from regard.pipeline.audio_classifier import AudioClassifier
    from regard.pipeline.classifier import Classifier  # imports torch: only when needed
    from regard.pipeline.image_classifier import ImageClassifier

    options.check_kind("labeled data")
    expected = data.labels or []
    kind: type[Classifier | ImageClassifier | AudioClassifier] = Classifier
    if data.images is not None or data.audio is not None:
        kind = AudioClassifier if data.images is None else ImageClassifier
        if options.unconstrained:
            raise RegardError("--unconstrained is for taggers of text.", hint="Leave out --unconstrained.")
    classifier, other_classifier = (
        None if path is None else load_as(path, kind) for path in (options.folder, options.other_model)
    )
    for system in (classifier, other_classifier):
        if system is not None:
            _check_labels(system, expected, str(options.data_path))
            if options.unconstrained and isinstance(system, Classifier):
                system.check_tag_scheme()
    predicted = (
        split_labels(data.hypotheses or [], expected, "--hypotheses")
        if classifier is None
        else _label(classifier, data, options)
    )
    _write_lines(options.output, [" ".join(labels) for labels in predicted])
    report = score_labels(predicted, expected, options.samples, options.seed)
    evaluation |= asdict(report) | {"matrix": report.matrix.to_dict()}
    if data.images is not None or data.audio is not None:
        evaluation["audio" if data.images is None else "images"] = evaluation.pop("texts")
    other_predicted = None
    if other_classifier is not None:
        other_predicted = _label(other_classifier, data, options)
    elif data.other_output is not None:
        other_predicted = split_labels(data.other_output, expected, "--other-output")
    if other_predicted is not None:
        comparisons = compare_labels(predicted, other_predicted, expected, options.samples, options.seed)
        _add_comparisons(comparisons, options, evaluation)


def _evaluate_pixels(options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation) -> None:
    """Measure the likelihood of images under a model whose tokens are pixels."""
    from regard.measure.likelihood import mean_interval
    from regard.pipeline.image_generator import ImageGenerator  # imports torch: only when needed

    options.check_kind("models that generate images")
    assert options.folder is not None  # noqa: S101 - there are settings
    generator, images = load_as(options.folder, ImageGenerator), data.images or []
    labels = None if data.labels is None else [label for (label,) in data.labels]
    with show_progress("scoring", len(images)) as advance:
        bits = generator.bits_per_pixel(images, labels, advance)
    mean, low, high = mean_interval(bits)
    evaluation["images"] = len(images)
    evaluation["bits_per_pixel"] = {"value": mean, "interval": [low, high], "colors": len(generator.codebook.tokens)}


def _check_labels(
    classifier: "Classifier | ImageClassifier | AudioClassifier", expected: Sequence[Labels], location: str
) -> None:
    """Warn of labels that the model does not know; raise an error if it knows none of them."""
    labels = {label for text_labels in expected for label in text_labels}
    unknown = sorted(labels.difference(classifier.labels))
    if len(unknown) == len(labels):
        raise RegardError(
            f"The model knows none of the labels of the data: {', '.join(unknown[:5])}.",
            location=location,
            hint=f"The model predicts {', '.join(classifier.labels[:5])}: check the label column.",
        )
    if unknown:
        names = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        typer.echo(f"{pluralize(len(unknown), 'label')} of the data unknown to the model: {names}.", err=True)


def _label(
    classifier: "Classifier | ImageClassifier | AudioClassifier", data: EvaluationData, options: EvaluateOptions
) -> list[Labels]:
    inputs: Sequence[Any] = data.images or data.audio or data.sources or []
    predicted: list[Labels] = []
    with show_progress("labeling", len(inputs)) as advance:
        for start in range(0, len(inputs), LABEL_CHUNK):
            chunk = slice(start, start + LABEL_CHUNK)
            details: dict[str, Any] = {"pairs": data.second_sources[chunk]} if data.second_sources else {}
            details |= {"unconstrained": True} if options.unconstrained else {}
            predicted += [result.labels for result in classifier.predict(inputs[chunk], report=advance, **details)]
    return predicted


def _evaluate_transcripts(options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation) -> None:
    """Score the transcripts of a model or of a file."""
    from regard.pipeline.evaluate import score_transcripts  # imports torch: only when needed
    from regard.pipeline.transcriber import Transcriber

    options.check_kind("transcripts")
    audio, texts = data.audio or [], data.hypotheses or []
    if options.folder is not None:
        transcriber = load_as(options.folder, Transcriber)
        with show_progress("transcribing", len(audio)) as advance:
            search = transcriber.make_search(options.beam, options.length_penalty)
            texts = [result.text for result in transcriber.transcribe(audio, search, report=advance)]
    _write_lines(options.output, texts)
    evaluation["audio"] = len(audio)
    scores = score_transcripts(texts, [references[0] for references in data.references or []])
    evaluation["scores"] = {name: asdict(score) for name, score in scores.items()}


def _evaluate_captions(options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation) -> None:
    """Score the captions of a model or of a file."""
    from regard.pipeline.evaluate import score_captions  # imports torch: only when needed
    from regard.pipeline.image_captioner import ImageCaptioner
    from regard.pipeline.search import Beam

    options.check_kind("captions")
    images, texts = data.images or [], data.hypotheses or []
    if options.folder is not None:
        captioner = load_as(options.folder, ImageCaptioner)
        with show_progress("captioning", len(images)) as advance:
            search = Beam(options.beam_size, options.length_penalty)
            texts = [result.text for result in captioner.caption(images, search, report=advance)]
    _write_lines(options.output, texts)
    evaluation["images"] = len(images)
    scores = score_captions(texts, [references[0] for references in data.references or []])
    evaluation["scores"] = {name: asdict(score) for name, score in scores.items()}


def _evaluate_embeddings(options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation) -> None:
    """Score how often the nearest text of the other side is the partner."""
    from regard.measure.retrieval import retrieval_at_1
    from regard.pipeline.embedder import Embedder  # imports torch: only when needed

    options.check_kind("embeddings")
    if data.sources is None or data.references is None or options.folder is None:
        raise RegardError("This model embeds texts: it needs pairs.", hint="Give --data, or --source and --reference.")
    embedder = load_as(options.folder, Embedder)
    with show_progress("embedding", None):
        vectors = [embedder.embed(texts) for texts in (data.sources, [refs[0] for refs in data.references])]
    value, count = 100 * retrieval_at_1(vectors[0], vectors[1]), len(data.sources)
    evaluation["texts"] = count
    evaluation["scores"] = {"retrieval_at_1": {"value": value, "signature": f"retrieval@1|both directions|n:{count}"}}


def _evaluate_system(options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation) -> None:
    """Score the translations of a model or of a file."""
    from regard.pipeline.evaluate import compare, score_translations  # imports torch: only when needed
    from regard.pipeline.translator import Translator

    options.check_kind("translations")
    # Load both models before one of them translates for hours; write the translations before they are scored.
    translator, other_translator = (
        None if path is None else load_as(path, Translator) for path in (options.folder, options.other_model)
    )
    translations = data.hypotheses or []
    if data.references is not None:
        if translator is not None:
            translations = _translate(translator, options, data)
        _write_lines(options.output, translations)
        evaluation |= asdict(score_translations(translations, data.references, data.sources, data.train))
        if translator is not None:
            _add_pair_likelihood(translator, options, data, evaluation)
        other_translations = data.other_output
        if other_translator is not None:
            other_translations = _translate(other_translator, options, data)
        if other_translations is not None:
            with show_progress("resampling for the comparison", None):
                comparisons = compare(translations, other_translations, data.references, options.samples, options.seed)
            _add_comparisons(comparisons, options, evaluation)
    if translator is not None and options.probes:
        from regard.pipeline.probes import probe
        from regard.pipeline.search import Beam

        search = Beam(options.beam_size, options.length_penalty)
        with show_progress("translating the probes", None):
            evaluation["probes"] = asdict(probe(translator, data.sources or [], search, options.into))


def _add_comparisons(comparisons: "list[Comparison]", options: EvaluateOptions, evaluation: Evaluation) -> None:
    """Add comparisons of this system, the baseline, with the other one, the candidate."""
    evaluation["comparisons"] = [asdict(entry) | {"is_significant": entry.is_significant} for entry in comparisons]
    baseline, candidate = options.folder or options.hypotheses, options.other_model or options.other_output
    evaluation["systems"] = {"baseline": str(baseline), "candidate": str(candidate)}


def _write_lines(output: Path | None, texts: list[str]) -> None:
    if output is not None:
        output.write_text("".join(f"{join_lines(text)}\n" for text in texts), encoding="utf-8", newline="\n")


def _add_pair_likelihood(
    translator: "Translator", options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation
) -> None:
    from regard.pipeline.scorer import Scorer
    from regard.store.calibration import read_temperature

    assert options.folder is not None  # noqa: S101 - there is a translator
    scorer = Scorer.from_pipeline(translator, read_temperature(find_model(options.folder)))
    _add_likelihood(scorer, [references[0] for references in data.references or []], options, data.sources, evaluation)


def _evaluate_text(options: EvaluateOptions, data: EvaluationData, task: str | None, evaluation: Evaluation) -> None:
    """Measure the likelihood of texts under a language model, or the pseudo-likelihood under a masked one."""
    from regard.pipeline.scorer import Scorer  # imports torch: only when needed

    if options.folder is None or task not in ("causal_lm", "masked_lm"):
        raise RegardError(
            "--text needs a decoder-only language model or a masked one.",
            location=str(options.folder or options.hypotheses),
            hint="Give --source and --reference for a translation model, --data for a classifier or tagger.",
        )
    options.check_kind("texts")
    texts = data.texts or []
    evaluation["texts"] = len(texts)
    if task == "causal_lm":
        _add_likelihood(Scorer.load(options.folder), texts, options, None, evaluation)
        return
    if options.fit_temperature is not None:
        raise RegardError("--fit-temperature is not for masked models.", hint="Leave it out.")
    from regard.pipeline.fill_mask import FillMask
    from regard.pipeline.pseudo_likelihood import pseudo_likelihood

    fill_mask = load_as(options.folder, FillMask)
    with show_progress("masking tokens", None) as advance:
        result = asdict(pseudo_likelihood(fill_mask, texts, window=options.window, report=advance))
    del result["logprobs"]
    evaluation["pseudo_likelihood"] = result


def _add_likelihood(
    scorer: "Scorer", texts: list[str], options: EvaluateOptions, sources: list[str] | None, evaluation: Evaluation
) -> None:
    """Add perplexity and calibration; also after calibration, if a temperature is fitted."""
    from regard.pipeline.evaluate import calibrate_scorer, summarize_likelihood
    from regard.store.calibration import write_temperature

    def measure(scorer: "Scorer") -> Evaluation:
        with show_progress("scoring the references", len(texts) if sources else None) as advance:
            scored_texts = scorer.score(
                texts, sources, target_language=options.into, window=options.window, report=advance
            )
        return asdict(summarize_likelihood(scored_texts, scorer.temperature))

    evaluation["likelihood"] = measure(scorer)
    if options.fit_temperature is not None and options.folder is not None:
        with show_progress("fitting the temperature", None):
            calibrated_scorer = calibrate_scorer(
                scorer, texts, sources, target_language=options.into, window=options.window
            )
        evaluation["calibrated_likelihood"] = measure(calibrated_scorer)
        write_temperature(
            options.folder,
            options.fit_temperature,
            calibrated_scorer.temperature,
            evaluation["calibrated_likelihood"]["tokens"],
        )


def _translate(translator: "Translator", options: EvaluateOptions, data: EvaluationData) -> list[str]:
    from regard.pipeline.search import Beam

    sources = data.sources or []
    with show_progress("translating", len(sources)) as advance:
        translations = translator.translate(
            sources,
            Beam(options.beam_size, options.length_penalty),
            target_language=options.into,
            report=advance,
        )
    return [translation.text for translation in translations]
