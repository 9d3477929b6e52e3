"""`regard evaluate`: how good a model is, or a file of translations, and whether it is better than another."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.evaluation_tables import print_evaluation
from regard.cli.loading import load_as
from regard.cli.text_input import check_paths, read_lines, show_progress

if TYPE_CHECKING:
    from regard.pipeline.scorer import Scorer
    from regard.pipeline.translator import Translator


@dataclass(frozen=True)
class EvaluateOptions:
    """What a person asked for."""

    folder: Path | None
    source: Path | None
    reference: list[Path]
    hypotheses: Path | None
    other: Path | None
    other_output: Path | None
    text: Path | None
    train: Path | None
    fit_temperature: Path | None
    output: Path | None
    probes: bool
    beam: int
    length_penalty: float
    target_language: str | None
    window: int | None
    samples: int
    seed: int


@dataclass(frozen=True)
class EvaluationData:
    """The files that were named, line by line; what was not named is None."""

    sources: list[str] | None
    references: list[tuple[str, ...]] | None
    hypotheses: list[str] | None
    other_output: list[str] | None
    train: list[str] | None
    texts: list[str] | None


Evaluation = dict[str, Any]  # what was found, by name: the object of --json


def evaluate(
    folder: Annotated[Path | None, typer.Argument(metavar="[MODEL]", help="A model's folder, or a run's.")] = None,
    source: Annotated[Path | None, typer.Option(metavar="FILE", help="What to translate, a text a line.")] = None,
    reference: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="What should come out. Give several for several references; an empty line is none."
        ),
    ] = None,
    hypotheses: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Evaluate this file instead of a model's translations.")
    ] = None,
    other: Annotated[Path | None, typer.Option(metavar="MODEL", help="Compare with another model.")] = None,
    other_output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compare with another system's translations.")
    ] = None,
    text: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For a model that writes on: a document that it never read.")
    ] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Every line of --text is a text of its own.")] = False,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Target text of the training, to tell rare words by.")
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Beginnings that are tried together; 1 is greedy.")] = 5,
    length_penalty: Annotated[float, typer.Option(min=0.0, help="score / length^alpha.")] = 1.0,
    into: Annotated[str | None, typer.Option(metavar="LANGUAGE", help="For a model of many languages: which.")] = None,
    window: Annotated[int | None, typer.Option(min=2, help="Tokens of a text that a writer reads at once.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Drawings of the paired bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the drawings.")] = 12345,
    probes: Annotated[bool, typer.Option("--probes", help="Ask about garbage, and about men and women.")] = False,
    fit_temperature: Annotated[
        Path | None,
        typer.Option(
            "--fit-temperature",
            metavar="FOLDER",
            help="Fit a temperature on these texts, and write the model with it to a new folder.",
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the translations to a file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with everything.")] = False,
) -> None:
    """Measure a model, or a file of translations, against references."""
    options = EvaluateOptions(
        folder=folder,
        source=source,
        reference=reference or [],
        hypotheses=hypotheses,
        other=other,
        other_output=other_output,
        text=text,
        train=train,
        fit_temperature=fit_temperature,
        output=output,
        probes=probes,
        beam=beam,
        length_penalty=length_penalty,
        target_language=into,
        window=window,
        samples=samples,
        seed=seed,
    )
    _check(options)
    data = _read_files(options, lines)
    evaluation: Evaluation = {}
    if options.text is not None:
        _evaluate_text(options, data, evaluation)
    else:
        _evaluate_system(options, data, evaluation)
    if as_json:
        typer.echo(json.dumps(evaluation, ensure_ascii=False))
    else:
        print_evaluation(evaluation)


def _check(options: EvaluateOptions) -> None:
    """What cannot be read, and what does not go together, is said before any work."""
    for file in (
        options.source,
        options.hypotheses,
        options.other_output,
        options.text,
        options.train,
        *options.reference,
    ):
        check_paths(None, file, options.output)
    has_hypotheses, has_text = options.hypotheses is not None, options.text is not None
    has_other = options.other is not None or options.other_output is not None
    needs_pairs = options.source is not None or bool(options.reference) or has_hypotheses or options.probes or has_other
    for is_wrong, what, fix in (
        (
            options.folder is None and not has_hypotheses,
            "There is nothing to evaluate.",
            "Name a model, or give --hypotheses.",
        ),
        (
            options.folder is not None and has_hypotheses,
            "A model and --hypotheses were both given.",
            "Give one of them; two systems are compared with --other or --other-output.",
        ),
        (
            has_hypotheses and (options.probes or options.fit_temperature is not None),
            "Probes and temperatures need a model.",
            "Name one.",
        ),
        (
            not has_text and not options.reference and (options.output is not None or options.train is not None),
            "Nothing is translated without --reference.",
            "Give it, or leave out --output and --train.",
        ),
        (
            has_hypotheses and options.output is not None,
            "The translations are in a file already.",
            "Leave out --output.",
        ),
        (
            has_text and (needs_pairs or options.output is not None),
            "--text is for a model that writes on, and stands alone.",
            "Give --source and --reference for a model that translates.",
        ),
        (
            not has_text
            and not options.reference
            and (has_hypotheses or has_other or options.fit_temperature or not options.probes),
            "There is nothing to compare with.",
            "Give --reference; --text for a model that writes on.",
        ),
        (
            not has_text and options.source is None and (not has_hypotheses or options.other is not None),
            "There is nothing to translate.",
            "Give --source.",
        ),
        (not has_text and options.window is not None, "A window is for long texts: --text.", "Leave out --window."),
        (
            has_text and options.target_language is not None,
            "--into is for a model that translates.",
            "Leave out --into.",
        ),
        (
            options.other is not None and options.other_output is not None,
            "Two others were given.",
            "Give one at a time.",
        ),
        (
            options.fit_temperature is not None and options.fit_temperature.exists(),
            f"{options.fit_temperature} exists already.",
            "Choose another name.",
        ),
    ):
        if is_wrong:
            raise RegardError(what, fix=fix)


def _read_files(options: EvaluateOptions, lines: bool) -> EvaluationData:
    """All files; those whose lines belong together have the same number of them."""
    texts = _read_lines(options.text)
    data = EvaluationData(
        sources=_read_lines(options.source),
        references=_read_references(options.reference),
        hypotheses=_read_lines(options.hypotheses),
        other_output=_read_lines(options.other_output),
        train=_read_lines(options.train),
        texts=texts if texts is None or lines else ["\n".join(texts)],
    )
    count = None if data.references is None else len(data.references)
    for name, file_lines in (
        ("--source", data.sources),
        ("--hypotheses", data.hypotheses),
        ("--other-output", data.other_output),
    ):
        if file_lines is not None and count is not None and len(file_lines) != count:
            raise RegardError(
                f"{name} has {len(file_lines)} lines, --reference has {count}.",
                fix="Line n of every file must belong to the same text.",
            )
    return data


def _evaluate_system(options: EvaluateOptions, data: EvaluationData, evaluation: Evaluation) -> None:
    """Measure what a model or a file says."""
    from regard.pipeline.evaluate import compare, score_translations  # torch: only when it is needed
    from regard.pipeline.translator import Translator

    # Both are opened before one of them works for hours, and what was translated is kept before anything is measured.
    translator, other_translator = (
        None if item is None else load_as(item, Translator) for item in (options.folder, options.other)
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
            evaluation["comparisons"] = [asdict(item) for item in comparisons]
    if translator is not None and options.probes:
        from regard.pipeline.probes import probe
        from regard.pipeline.search import Beam

        search = Beam(options.beam)
        evaluation["probes"] = asdict(probe(translator, data.sources or [], search, options.target_language))


def _write_translations(output: Path | None, translations: list[str]) -> None:
    if output is not None:
        single_lines = [line.replace("\r", " ").replace("\n", " ") for line in translations]
        output.write_text("".join(f"{line}\n" for line in single_lines), encoding="utf-8", newline="\n")


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

    assert options.folder is not None  # noqa: S101 - `_refuse` has seen to it
    scorer = Scorer.load(options.folder)
    if scorer.settings.family != "decoder_only":
        raise RegardError("This model translates.", where=str(options.folder), fix="Give --source and --reference.")
    evaluation["texts"] = len(data.texts or [])
    _add_likelihood(scorer, data.texts or [], options, None, evaluation)


def _add_likelihood(
    scorer: "Scorer", texts: list[str], options: EvaluateOptions, sources: list[str] | None, evaluation: Evaluation
) -> None:
    """Surprise and calibration; before and after, if a temperature is fitted."""
    from regard.pipeline.evaluate import calibrate_scorer, summarize_likelihood
    from regard.store.calibration import write_temperature

    def measure(scorer: "Scorer") -> Evaluation:
        scored_texts = scorer.score(texts, sources, target_language=options.target_language, window=options.window)
        return asdict(summarize_likelihood(scored_texts, scorer.temperature))

    evaluation["certainty"] = measure(scorer)
    if options.fit_temperature is not None and options.folder is not None:
        calibrated_scorer = calibrate_scorer(
            scorer, texts, sources, target_language=options.target_language, window=options.window
        )
        evaluation["fitted"] = measure(calibrated_scorer)
        write_temperature(
            options.folder, options.fit_temperature, calibrated_scorer.temperature, evaluation["fitted"]["tokens"]
        )


def _translate(translator: "Translator", options: EvaluateOptions, data: EvaluationData) -> list[str]:
    from regard.pipeline.search import Beam

    sources = data.sources or []
    with show_progress("translating", len(sources), is_hidden=False) as advance:
        translations = translator.translate(
            sources,
            Beam(options.beam, options.length_penalty),
            target_language=options.target_language,
            report=advance,
        )
    return [translation.text for translation in translations]


def _read_lines(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    return list(read_lines(None, path)[0])


def _read_references(paths: list[Path]) -> list[tuple[str, ...]] | None:
    """The references of each text: always the first file's, and of the others what is not empty."""
    if not paths:
        return None
    files = [_read_lines(path) or [] for path in paths]
    for path, file in zip(paths, files, strict=True):
        if len(file) != len(files[0]):
            raise RegardError(
                f"The references have {len(files[0])} and {len(file)} lines.",
                where=str(path),
                fix="Line n of every file must belong to the same text.",
            )
    return [(first, *(line for line in rest if line)) for first, *rest in zip(*files, strict=True)]
