"""`regard evaluate`: score a model or a file of translations, and compare it with another system."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.cli.evaluation_tables import print_evaluation
from regard.cli.options import LengthExponent, TargetLanguage, Window, file_option, option, takes_options
from regard.cli.text_input import check_paths, join_lines, load_as, read_lines, show_progress

if TYPE_CHECKING:
    from regard.pipeline.scorer import Scorer
    from regard.pipeline.translator import Translator


@dataclass(frozen=True)
class EvaluateOptions:
    """The options of `regard evaluate`; None means not given."""

    folder: Annotated[Path | None, typer.Argument(metavar="MODEL", help="Model folder or run folder.")] = None
    source: Annotated[Path | None, file_option("Source texts, one per line.")] = None
    reference: Annotated[
        list[Path] | None, file_option("Reference translations. Repeatable; further references may have empty lines.")
    ] = None
    hypotheses: Annotated[Path | None, file_option("Evaluate the translations in this file instead of a model.")] = None
    other_model: Annotated[Path | None, option("Compare with another model.", "--other", metavar="MODEL")] = None
    other_output: Annotated[Path | None, file_option("Compare with the translations in this file.")] = None
    text: Annotated[Path | None, file_option("Held-out text for a language model.")] = None
    lines: Annotated[bool, option("Treat every line of --text as a text of its own.", "--lines")] = False
    train: Annotated[Path | None, file_option("Target side of the training corpus, for scores by word frequency.")] = (
        None
    )
    beam: Annotated[int, option("Beam size; 1 is greedy.", min=1)] = 5
    length_penalty: LengthExponent = 1.0
    into: TargetLanguage = None
    window: Window = None
    samples: Annotated[int, option("Number of resamples of the paired bootstrap test.", min=1)] = 1000
    seed: Annotated[int, option("Random seed of the paired bootstrap test.", min=0)] = 12345
    probes: Annotated[
        bool, option("Also run robustness probes: repetitive input, gender-swapped pairs.", "--probes")
    ] = False
    fit_temperature: Annotated[
        Path | None,
        option("Fit a calibration temperature and write the model with it to a new folder.", metavar="FOLDER"),
    ] = None
    output: Annotated[Path | None, file_option("Write the translations to this file.")] = None
    as_json: Annotated[bool, option("Print one JSON object with all results.", "--json")] = False


@dataclass(frozen=True)
class EvaluationData:
    """The lines of the input files; None for files that were not given."""

    sources: list[str] | None
    references: list[tuple[str, ...]] | None
    hypotheses: list[str] | None
    other_output: list[str] | None
    train: list[str] | None
    texts: list[str] | None


Evaluation = dict[str, Any]  # results by name: the object that --json prints


@takes_options(EvaluateOptions)
def evaluate(options: EvaluateOptions) -> None:
    """Evaluate a model, or a file of translations, against references.

    Reports BLEU, chrF, TER, exact match and word error rate with signatures; for a model also perplexity and
    calibration; with --other or --other-output a paired bootstrap test.
    """
    _check(options)
    data = _read_files(options)
    evaluation: Evaluation = {}
    if options.text is not None:
        _evaluate_text(options, data, evaluation)
    else:
        _evaluate_system(options, data, evaluation)
    if options.as_json:
        typer.echo(json.dumps(evaluation, ensure_ascii=False))
    else:
        print_evaluation(evaluation)


def _check(options: EvaluateOptions) -> None:
    """Raise an error for unreadable files and options that exclude each other, before any work."""
    for file in (
        options.source,
        options.hypotheses,
        options.other_output,
        options.text,
        options.train,
        *(options.reference or ()),
    ):
        check_paths(None, file, options.output)
    has_hypotheses, has_text = options.hypotheses is not None, options.text is not None
    has_other = options.other_model is not None or options.other_output is not None
    needs_pairs = options.source is not None or bool(options.reference) or has_hypotheses or options.probes or has_other
    for is_wrong, what, fix in (
        (
            options.folder is None and not has_hypotheses,
            "There is nothing to evaluate.",
            "Give a model folder, or --hypotheses FILE.",
        ),
        (
            options.folder is not None and has_hypotheses,
            "A model and --hypotheses were both given.",
            "Give one of them; to compare two systems use --other or --other-output.",
        ),
        (
            has_hypotheses and (options.probes or options.fit_temperature is not None),
            "--probes and --fit-temperature need a model.",
            "Give a model folder instead of --hypotheses.",
        ),
        (
            not has_text and not options.reference and (options.output is not None or options.train is not None),
            "--output and --train need --reference.",
            "Add --reference FILE, or leave them out.",
        ),
        (
            has_hypotheses and options.output is not None,
            "--output needs a model: --hypotheses already is a file.",
            "Leave out --output.",
        ),
        (
            has_text and (needs_pairs or options.output is not None),
            "--text cannot be combined with options for translation models.",
            "Give --text for a language model, or --source and --reference for a translation model.",
        ),
        (
            not has_text
            and not options.reference
            and (has_hypotheses or has_other or options.fit_temperature or not options.probes),
            "There are no references.",
            "Give --reference FILE, or --text FILE for a language model.",
        ),
        (
            not has_text and options.source is None and (not has_hypotheses or options.other_model is not None),
            "There are no source texts.",
            "Give --source FILE.",
        ),
        (not has_text and options.window is not None, "--window needs --text.", "Leave out --window."),
        (
            has_text and options.into is not None,
            "--into is for translation models.",
            "Leave out --into.",
        ),
        (
            options.other_model is not None and options.other_output is not None,
            "--other and --other-output were both given.",
            "Give one of them.",
        ),
        (
            options.fit_temperature is not None and options.fit_temperature.exists(),
            f"{options.fit_temperature} already exists.",
            "Choose another name.",
        ),
    ):
        if is_wrong:
            raise RegardError(what, fix=fix)


def _read_files(options: EvaluateOptions) -> EvaluationData:
    """Read all files; raise an error if parallel files differ in their number of lines."""
    texts = _read_lines(options.text)
    data = EvaluationData(
        sources=_read_lines(options.source),
        references=_read_references(options.reference or []),
        hypotheses=_read_lines(options.hypotheses),
        other_output=_read_lines(options.other_output),
        train=_read_lines(options.train),
        texts=texts if texts is None or options.lines else ["\n".join(texts)],
    )
    count = None if data.references is None else len(data.references)
    for name, file_lines in (
        ("--source", data.sources),
        ("--hypotheses", data.hypotheses),
        ("--other-output", data.other_output),
    ):
        if file_lines is not None and count is not None and len(file_lines) != count:
            raise RegardError(
                f"{name} has {pluralize(len(file_lines), 'line')}, --reference has {count:,}.",
                fix="Line n of every file must belong to the same text.",
            )
    return data


def _evaluate_system(options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation) -> None:
    """Score the translations of a model or of a file."""
    from regard.pipeline.evaluate import compare, score_translations  # imports torch: only when needed
    from regard.pipeline.translator import Translator

    # Load both models before one of them translates for hours; write the translations before they are scored.
    translator, other_translator = (
        None if path is None else load_as(path, Translator) for path in (options.folder, options.other_model)
    )
    translations = data.hypotheses or []
    if data.references is not None:
        if translator is not None:
            translations = _translate(translator, options, data)
        _write_translations(options.output, translations)
        evaluation |= asdict(score_translations(translations, data.references, data.sources, data.train))
        if translator is not None:
            _add_pair_likelihood(translator, options, data, evaluation)
        other_translations = data.other_output
        if other_translator is not None:
            other_translations = _translate(other_translator, options, data)
        if other_translations is not None:
            comparisons = compare(translations, other_translations, data.references, options.samples, options.seed)
            evaluation["comparisons"] = [asdict(comparison) for comparison in comparisons]
    if translator is not None and options.probes:
        from regard.pipeline.probes import probe
        from regard.pipeline.search import Beam

        evaluation["probes"] = asdict(probe(translator, data.sources or [], Beam(options.beam), options.into))


def _write_translations(output: Path | None, translations: list[str]) -> None:
    if output is not None:
        lines = "".join(f"{join_lines(translation)}\n" for translation in translations)
        output.write_text(lines, encoding="utf-8", newline="\n")


def _add_pair_likelihood(
    translator: "Translator", options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation
) -> None:
    from regard.pipeline.scorer import Scorer
    from regard.store.calibration import read_temperature
    from regard.store.model_folder import find_model

    assert options.folder is not None  # noqa: S101 - there is a translator
    scorer = Scorer.from_pipeline(translator, read_temperature(find_model(options.folder)))
    _add_likelihood(scorer, [references[0] for references in data.references or []], options, data.sources, evaluation)


def _evaluate_text(options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation) -> None:
    from regard.pipeline.scorer import Scorer

    assert options.folder is not None  # noqa: S101 - `_check` requires it
    scorer = Scorer.load(options.folder)
    if scorer.settings.family != "decoder_only":
        raise RegardError(
            "--text needs a decoder-only language model.",
            where=str(options.folder),
            fix="Give --source and --reference for a translation model.",
        )
    evaluation["texts"] = len(data.texts or [])
    _add_likelihood(scorer, data.texts or [], options, None, evaluation)


def _add_likelihood(
    scorer: "Scorer", texts: list[str], options: EvaluateOptions, sources: list[str] | None, evaluation: Evaluation
) -> None:
    """Add perplexity and calibration; also after calibration, if a temperature is fitted."""
    from regard.pipeline.evaluate import calibrate_scorer, summarize_likelihood
    from regard.store.calibration import write_temperature

    def measure(scorer: "Scorer") -> Evaluation:
        scored_texts = scorer.score(texts, sources, target_language=options.into, window=options.window)
        return asdict(summarize_likelihood(scored_texts, scorer.temperature))

    evaluation["likelihood"] = measure(scorer)
    if options.fit_temperature is not None and options.folder is not None:
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
    with show_progress("translating", len(sources), is_hidden=False) as advance:
        translations = translator.translate(
            sources,
            Beam(options.beam, options.length_penalty),
            target_language=options.into,
            report=advance,
        )
    return [translation.text for translation in translations]


def _read_lines(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    return list(read_lines(None, path)[0])


def _read_references(paths: list[Path]) -> list[tuple[str, ...]] | None:
    """Read the references of each text: always that of the first file, and the non-empty ones of the other files."""
    if not paths:
        return None
    files = [_read_lines(path) or [] for path in paths]
    for path, file in zip(paths, files, strict=True):
        if len(file) != len(files[0]):
            raise RegardError(
                f"The reference files have {len(files[0]):,} and {pluralize(len(file), 'line')}.",
                where=str(path),
                fix="Line n of every file must belong to the same text.",
            )
    return [(first, *(line for line in rest if line)) for first, *rest in zip(*files, strict=True)]
