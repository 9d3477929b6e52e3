"""`regard predict`: run a classifier, tagger, masked language model, captioner or transcriber on texts or files."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.cli.options import (
    INPUT_PANEL,
    OUTPUT_PANEL,
    SEARCH_PANEL,
    ModelArgument,
    Unconstrained,
    input_file_option,
    option,
    output_file_option,
)
from regard.cli.progress import show_progress
from regard.cli.text_input import check_paths, load_as, read_lines, zip_file

if TYPE_CHECKING:
    from regard.tasks.results import Prediction, Predictor

PROMPT_PANEL = "Classification with a language model and a prompt"
EXAMPLES = """
regard predict my-classifier "A fine film."
regard predict my-encoder "The ___ barks." --n-best 3
regard predict my-vit shoe.png shirt.jpg
regard predict my-speech morning.wav --json
regard predict my-tagger --input texts.txt --output tagged.txt
regard predict my-pair-model "A man sleeps." --pair-text "He is awake."
regard predict my-lm "A fine film." --labels good,bad --examples shots.tsv
"""
ADVANCED = "template mean_logprob unconstrained length_penalty"


def predict(
    folder: ModelArgument,
    inputs: Annotated[
        list[str] | None, typer.Argument(metavar="INPUT", help="Texts, or image or audio files, depending on MODEL.")
    ] = None,
    input_file: Annotated[
        Path | None, input_file_option("Read the texts or file names from a file, one per line.", "--input")
    ] = None,
    pair: Annotated[
        Path | None, input_file_option("Second texts for a sentence-pair model; line n belongs to text n.")
    ] = None,
    pair_text: Annotated[
        str | None,
        option("Second text for a sentence-pair model, the same for all texts.", metavar="TEXT", panel=INPUT_PANEL),
    ] = None,
    gap: Annotated[
        str | None,
        option("String that marks a gap.", metavar="TEXT", show_default="___", panel=INPUT_PANEL),
    ] = None,
    output_file: Annotated[Path | None, output_file_option("Write to a file.", "--output")] = None,
    n_best: Annotated[
        int | None,
        option(
            "Labels or generated texts per input, or candidates per gap.",
            min=1,
            show_default="1; 5 per gap",
            panel=OUTPUT_PANEL,
        ),
    ] = None,
    as_json: Annotated[
        bool,
        option(
            "Print one JSON object per input, with all probabilities or the tokens and their log-probabilities.",
            "--json",
            panel=OUTPUT_PANEL,
        ),
    ] = False,
    beam: Annotated[
        int | None,
        option("Beam size; 1 is greedy.", min=1, show_default="the model's, else 5", panel=SEARCH_PANEL),
    ] = None,
    length_penalty: Annotated[
        float | None,
        option(
            "Exponent of the length normalization; larger values favor longer texts.",
            min=0.0,
            show_default="1.0",
            panel=SEARCH_PANEL,
        ),
    ] = None,
    max_new_tokens: Annotated[
        int | None,
        option("Maximum number of tokens.", min=1, show_default="from the input's length", panel=SEARCH_PANEL),
    ] = None,
    unconstrained: Unconstrained = False,
    examples: Annotated[
        Path | None,
        input_file_option("Texts with labels for the prompt: a table (text, label) or .jsonl.", panel=PROMPT_PANEL),
    ] = None,
    labels: Annotated[
        str | None,
        option("Labels, separated by commas. Default: the labels of --examples.", metavar="A,B", panel=PROMPT_PANEL),
    ] = None,
    template: Annotated[
        str | None,
        option(
            "Prompt template of an example, with \\n for a line break. Default: 'Text: {text}\\nLabel: {label}\\n\\n'.",
            metavar="TEXT",
            panel=PROMPT_PANEL,
        ),
    ] = None,
    mean_logprob: Annotated[
        bool,
        option("Compare the mean log-probability per token, not the sum.", "--mean-logprob", panel=PROMPT_PANEL),
    ] = False,
) -> None:
    """Classify, tag, fill gaps, caption or transcribe, depending on MODEL.

    Output of a classifier: label, probability, input. Tagger: word/tag pairs. Masked language model: the filled text,
    then the candidates for each gap. Captions and transcripts: the text; with --n-best above 1: file, score, text.
    `regard translate`, `generate` and `embed` run other models.
    """
    check_paths(inputs, input_file, output_file)
    if pair is not None and pair_text is not None:
        raise RegardError("--pair and --pair-text were both given.", hint="Give one of them.")
    if examples is not None or labels is not None:
        predictor = _load_prompt(folder, examples, labels, template, mean_logprob)
    elif template is not None or mean_logprob:
        raise RegardError("--template and --mean-logprob need --examples or --labels.", hint="Add --labels A,B.")
    else:
        predictor = _load_predictor(folder)
    from regard.tasks.encoding import chunks
    from regard.tasks.text_classification import Classification  # imports torch: only when needed

    options: dict[str, Any] = {
        "gap": gap,
        "beam": beam,
        "length_penalty": length_penalty,
        "max_new_tokens": max_new_tokens,
    }
    options["unconstrained"] = unconstrained or None
    options = {name: value for name, value in options.items() if value is not None}
    accepted = signature(predictor.predict).parameters
    has_pairs = pair is not None or pair_text is not None
    for name in (*options, *(["pairs"] if has_pairs else [])):
        if name not in accepted:
            spelled = "--pair" if name == "pairs" else f"--{name.replace('_', '-')}"
            raise RegardError(
                f"A {predictor.kind} does not support {spelled}.", location=str(folder), hint=f"Leave out {spelled}."
            )
    if n_best is not None and "n_best" in accepted:
        options["n_best"] = n_best
    lines, total, chunk_size = read_lines(inputs, input_file)
    truncated_count = 0
    with ExitStack() as stack:
        if chunk_size > 1 and total != 1:
            options["report"] = stack.enter_context(show_progress("predicting", total))
        out = sys.stdout
        if output_file is not None:
            out = stack.enter_context(output_file.open("w", encoding="utf-8", newline="\n"))
        stack.callback(lambda: _report_truncated(truncated_count))  # also if a later line raises an error
        for chunk, pair_texts in zip_file(chunks(lines, chunk_size), pair, pair_text):
            options |= {"pairs": pair_texts} if has_pairs else {}
            for source, prediction in zip(chunk, predictor.predict(chunk, **options), strict=True):
                truncated_count += isinstance(prediction, Classification) and prediction.is_truncated
                out.writelines(f"{line}\n" for line in _format(source, prediction, n_best or 1, as_json))
            out.flush()


def _format(source: str, prediction: "Prediction", n_best: int, as_json: bool) -> list[str]:
    if as_json:
        return [json.dumps({"source": source, **asdict(cast("Any", prediction))}, ensure_ascii=False)]
    return prediction.to_lines(source, n_best)


def _report_truncated(count: int) -> None:
    if count:
        verb = "was" if count == 1 else "were"
        typer.echo(f"{pluralize(count, 'text')} {verb} truncated to the model's maximum length.", err=True)


def _load_predictor(folder: Path) -> "Predictor":
    from regard.tasks.load import load  # imports torch: only when needed
    from regard.tasks.results import Predictor

    pipeline = load(folder)
    if not isinstance(pipeline, Predictor):
        hint = f'Use `regard {pipeline.command} {folder} "..."`.'
        raise RegardError(f"This is a {pipeline.kind}, which has its own command.", location=str(folder), hint=hint)
    return pipeline


def _load_prompt(
    folder: Path, examples: Path | None, labels: str | None, template: str | None, mean_logprob: bool
) -> "Predictor":
    from regard.tasks.causal_lm.generator import TextGenerator  # imports torch: only when needed
    from regard.tasks.causal_lm.prompt_classifier import TEMPLATE, PromptClassifier

    shots = [] if examples is None else read_shots(examples)
    names = [name.strip() for name in labels.split(",")] if labels else list(dict.fromkeys(shot[1] for shot in shots))
    return PromptClassifier(
        load_as(folder, TextGenerator),
        names,
        examples=shots,
        template=TEMPLATE if template is None else template.replace("\\n", "\n"),
        use_mean=mean_logprob,
    )


def read_shots(path: Path) -> list[tuple[str, str]]:
    """Read texts and labels; in a table without a header, column 1 is the text and column 2 the label."""
    from regard.config.sources import TableConfig
    from regard.data.corpus import Corpus
    from regard.data.example import Defects
    from regard.data.readers.detect import detect_source  # numpy and pydantic: only when needed

    source = detect_source([str(path)])
    if isinstance(source, TableConfig) and source.label is None and not source.header:
        source = source.model_copy(update={"source": 1, "target": None, "label": 2})
    shots = [(example.source, example.label) for _, example in Corpus([source]).examples(Defects())]
    labeled = [(text, label) for text, label in shots if label is not None]
    if not labeled or len(labeled) < len(shots):
        message = "The file has no labels." if shots else "The file has no examples."
        raise RegardError(message, location=str(path), hint="Give a table of two columns: text and label.")
    return labeled
