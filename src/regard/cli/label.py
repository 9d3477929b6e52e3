"""`regard label`: classify texts, images or sounds, or tag each word of a text."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.cli.options import (
    INPUT_PANEL,
    OUTPUT_PANEL,
    InputFile,
    ModelArgument,
    Unconstrained,
    input_file_option,
    option,
)
from regard.cli.text_input import check_paths, check_unconstrained, load_as, read_lines, zip_file

if TYPE_CHECKING:
    from regard.pipeline.classifier import Label, TaggedText
    from regard.pipeline.image_classifier import ImageClassifier
    from regard.pipeline.sound_classifier import SoundClassifier

PROMPT_PANEL = "Prompt of a language model"
Predict = Callable[[list[str], list[str] | None], "Sequence[Label | TaggedText]"]
EXAMPLES = """
regard label my-classifier "A fine film."
regard label my-classifier --input reviews.txt --json
regard label my-pair-model "A man sleeps." --pair-text "He is awake."
regard label my-lm "A fine film." --labels good,bad --examples shots.tsv
regard label my-vit shoe.png shirt.jpg
regard label my-sounds seven.wav
"""


def label(
    folder: ModelArgument,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Texts to label, or files of images or sounds.")
    ] = None,
    input_file: InputFile = None,
    pair: Annotated[
        Path | None, input_file_option("Second texts for a sentence-pair model: line n belongs to text n.")
    ] = None,
    pair_text: Annotated[
        str | None,
        option("Second text for a sentence-pair model, the same for all texts.", metavar="TEXT", panel=INPUT_PANEL),
    ] = None,
    unconstrained: Unconstrained = False,
    examples: Annotated[
        Path | None,
        input_file_option("Texts with labels for the prompt: a table (text, label) or .jsonl.", panel=PROMPT_PANEL),
    ] = None,
    labels: Annotated[
        str | None,
        option("Labels, separated by commas. Default: those of --examples.", metavar="A,B", panel=PROMPT_PANEL),
    ] = None,
    template: Annotated[
        str | None,
        option(
            "How the prompt writes an example, \\n for a line break. Default: 'Text: {text}\\nLabel: {label}\\n\\n'.",
            metavar="TEXT",
            panel=PROMPT_PANEL,
        ),
    ] = None,
    mean_logprob: Annotated[
        bool,
        option("Compare the mean log-probability per token, not the sum.", "--mean-logprob", panel=PROMPT_PANEL),
    ] = False,
    as_json: Annotated[
        bool, option("Print one JSON object per text, with all probabilities.", "--json", panel=OUTPUT_PANEL)
    ] = False,
) -> None:
    """Classify texts, images or sounds, or tag words, depending on the model.

    A classifier prints label, probability and text, or file; a tagger prints word/tag for every word. A
    language model classifies with a prompt: give it --examples, --labels or both.
    """
    check_paths(texts, input_file)
    if pair is not None and pair_text is not None:
        raise RegardError("--pair and --pair-text were both given.", fix="Give one of them.")
    from regard.pipeline.classifier import Classification
    from regard.pipeline.encoding import chunks  # imports torch: only when needed

    options = LabelOptions(pair is not None or pair_text is not None, unconstrained)
    if examples is not None or labels is not None:
        predict = _load_prompt(folder, options, examples, labels, template, mean_logprob)
    elif template is not None or mean_logprob:
        raise RegardError("--template and --mean-logprob need --examples or --labels.", fix="Add --labels A,B.")
    else:
        predict = _load_classifier(folder, options)
    lines, _, chunk_size = read_lines(texts, input_file)
    truncated_count = 0
    try:
        for chunk, pair_texts in zip_file(chunks(lines, chunk_size), pair, pair_text):
            predictions: Sequence[Label | TaggedText] = predict(chunk, pair_texts)
            for text, prediction in zip(chunk, predictions, strict=True):
                truncated_count += isinstance(prediction, Classification) and prediction.is_truncated
                _write(text, prediction, as_json)
            sys.stdout.flush()
    finally:  # also if a later line raises an error
        if truncated_count:
            verb = "was" if truncated_count == 1 else "were"
            message = f"{pluralize(truncated_count, 'text')} {verb} truncated to the model's maximum length."
            typer.echo(message, err=True)


@dataclass(frozen=True)
class LabelOptions:
    """The options that only some models have."""

    has_pairs: bool
    unconstrained: bool


def _load_classifier(folder: Path, options: LabelOptions) -> Predict:
    from regard.pipeline.classifier import Classifier
    from regard.pipeline.image_classifier import ImageClassifier
    from regard.pipeline.load import load
    from regard.pipeline.sound_classifier import SoundClassifier

    classifier = load(folder)
    if isinstance(classifier, ImageClassifier | SoundClassifier):
        return _label_files(classifier, options)
    if not isinstance(classifier, Classifier):
        classifier = load_as(folder, Classifier)  # raises the error that names the command for it
    is_tagger = classifier.settings.task != "classify"
    if is_tagger and options.has_pairs:
        raise RegardError("This model tags words and takes no second text.", fix="Leave out --pair and --pair-text.")
    check_unconstrained(classifier, options.unconstrained)
    if is_tagger:
        return lambda texts, _: classifier.tag(texts, constrained=not options.unconstrained)
    return classifier.classify


def _label_files(classifier: "ImageClassifier | SoundClassifier", options: LabelOptions) -> Predict:
    if options.has_pairs or options.unconstrained:
        fix = "Leave out --pair, --pair-text and --unconstrained."
        raise RegardError(f"This is a {classifier.kind}: it has no second text and no tags.", fix=fix)
    return lambda files, _: classifier.classify(files)


def _load_prompt(
    folder: Path,
    options: LabelOptions,
    examples: Path | None,
    labels: str | None,
    template: str | None,
    mean_logprob: bool,
) -> Predict:
    from regard.pipeline.generator import TextGenerator
    from regard.pipeline.prompt_classifier import TEMPLATE, PromptClassifier

    if options.has_pairs or options.unconstrained:
        fix = "Leave out --pair, --pair-text and --unconstrained."
        raise RegardError("A prompt has no second text and no tags.", fix=fix)
    shots = [] if examples is None else read_shots(examples)
    names = [name.strip() for name in labels.split(",")] if labels else list(dict.fromkeys(shot[1] for shot in shots))
    classifier = PromptClassifier(
        load_as(folder, TextGenerator),
        names,
        examples=shots,
        template=TEMPLATE if template is None else template.replace("\\n", "\n"),
        use_mean=mean_logprob,
    )
    return lambda texts, _: classifier.classify(texts)


def read_shots(path: Path) -> list[tuple[str, str]]:
    """Read texts and their labels; a table without a header has the text in column 1, the label in column 2."""
    from regard.config.run import Table
    from regard.data.corpus import Corpus
    from regard.data.example import Defects
    from regard.data.readers.detect import detect_source  # numpy and pydantic: only when needed

    source = detect_source([str(path)])
    if isinstance(source, Table) and source.label is None and not source.header:
        source = source.model_copy(update={"source": 1, "target": None, "label": 2})
    shots = [(example.source, example.label) for _, example in Corpus([source]).examples(Defects())]
    labelled = [(text, label) for text, label in shots if label is not None]
    if not labelled or len(labelled) < len(shots):
        what = "The file has no labels." if shots else "The file has no examples."
        raise RegardError(what, where=str(path), fix="Give a table of two columns: text and label.")
    return labelled


def _write(text: str, prediction: "Label | TaggedText", as_json: bool) -> None:
    from regard.pipeline.classifier import TaggedText  # imports torch: only when needed

    if as_json:
        sys.stdout.write(json.dumps({"source": text, **asdict(prediction)}, ensure_ascii=False) + "\n")
    elif isinstance(prediction, TaggedText):
        tagged = zip(prediction.words, prediction.tags, strict=True)
        sys.stdout.write(" ".join(f"{word}/{tag.label}" for word, tag in tagged) + "\n")
    else:
        sys.stdout.write(f"{prediction.label}\t{prediction.probability:.1%}\t{text}\n")
