"""`regard evaluate`: how good a model is, or a file of translations, and whether it is better than another."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.findings import show
from regard.cli.opened import opened
from regard.cli.streams import lines_of, progress, refuse_early

if TYPE_CHECKING:
    from regard.pipeline.scorer import Scorer
    from regard.pipeline.translator import Translator


@dataclass(frozen=True)
class Asked:
    """What a person asked for."""

    folder: Path | None
    source: Path | None
    reference: list[Path]
    hypotheses: Path | None
    other: Path | None
    other_output: Path | None
    text: Path | None
    train: Path | None
    fitted: Path | None
    output: Path | None
    probes: bool
    beam: int
    alpha: float
    into: str | None
    window: int | None
    samples: int
    seed: int


@dataclass(frozen=True)
class Corpus:
    """The files that were named, line by line; what was not named is None."""

    sources: list[str] | None
    references: list[tuple[str, ...]] | None
    hypotheses: list[str] | None
    other_output: list[str] | None
    train: list[str] | None
    texts: list[str] | None


Facts = dict[str, Any]  # what was found, by name: the object of --json


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
    alpha: Annotated[float, typer.Option(min=0.0, help="score / length^alpha.")] = 1.0,
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
    asked = Asked(
        folder=folder,
        source=source,
        reference=reference or [],
        hypotheses=hypotheses,
        other=other,
        other_output=other_output,
        text=text,
        train=train,
        fitted=fit_temperature,
        output=output,
        probes=probes,
        beam=beam,
        alpha=alpha,
        into=into,
        window=window,
        samples=samples,
        seed=seed,
    )
    _refuse(asked)
    corpus = _read(asked, lines)
    facts: Facts = {}
    if asked.text is not None:
        _read_text(asked, corpus, facts)
    else:
        _system(asked, corpus, facts)
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
    else:
        show(facts)


def _refuse(asked: Asked) -> None:
    """What cannot be read, and what does not go together, is said before any work."""
    for file in (asked.source, asked.hypotheses, asked.other_output, asked.text, asked.train, *asked.reference):
        refuse_early(None, file, asked.output)
    by_file, by_text = asked.hypotheses is not None, asked.text is not None
    second = asked.other is not None or asked.other_output is not None
    pairs = asked.source is not None or bool(asked.reference) or by_file or asked.probes or second
    for wrong, what, fix in (
        (asked.folder is None and not by_file, "There is nothing to evaluate.", "Name a model, or give --hypotheses."),
        (
            asked.folder is not None and by_file,
            "A model and --hypotheses were both given.",
            "Give one of them; two systems are compared with --other or --other-output.",
        ),
        (by_file and (asked.probes or asked.fitted is not None), "Probes and temperatures need a model.", "Name one."),
        (
            not by_text and not asked.reference and (asked.output is not None or asked.train is not None),
            "Nothing is translated without --reference.",
            "Give it, or leave out --output and --train.",
        ),
        (by_file and asked.output is not None, "The translations are in a file already.", "Leave out --output."),
        (
            by_text and (pairs or asked.output is not None),
            "--text is for a model that writes on, and stands alone.",
            "Give --source and --reference for a model that translates.",
        ),
        (
            not by_text and not asked.reference and (by_file or second or asked.fitted or not asked.probes),
            "There is nothing to compare with.",
            "Give --reference; --text for a model that writes on.",
        ),
        (
            not by_text and asked.source is None and (not by_file or asked.other is not None),
            "There is nothing to translate.",
            "Give --source.",
        ),
        (not by_text and asked.window is not None, "A window is for long texts: --text.", "Leave out --window."),
        (by_text and asked.into is not None, "--into is for a model that translates.", "Leave out --into."),
        (asked.other is not None and asked.other_output is not None, "Two others were given.", "Give one at a time."),
        (asked.fitted is not None and asked.fitted.exists(), f"{asked.fitted} exists already.", "Choose another name."),
    ):
        if wrong:
            raise RegardError(what, fix=fix)


def _read(asked: Asked, lines: bool) -> Corpus:
    """All files; those whose lines belong together have the same number of them."""
    texts = _lines(asked.text)
    corpus = Corpus(
        sources=_lines(asked.source),
        references=_references(asked.reference),
        hypotheses=_lines(asked.hypotheses),
        other_output=_lines(asked.other_output),
        train=_lines(asked.train),
        texts=texts if texts is None or lines else ["\n".join(texts)],
    )
    count = None if corpus.references is None else len(corpus.references)
    for name, some in (
        ("--source", corpus.sources),
        ("--hypotheses", corpus.hypotheses),
        ("--other-output", corpus.other_output),
    ):
        if some is not None and count is not None and len(some) != count:
            raise RegardError(
                f"{name} has {len(some)} lines, --reference has {count}.",
                fix="Line n of every file must belong to the same text.",
            )
    return corpus


def _system(asked: Asked, corpus: Corpus, facts: Facts) -> None:
    """Measure what a model or a file says."""
    from regard.pipeline.evaluate import compare, score_translations  # torch: only when it is needed
    from regard.pipeline.translator import Translator

    # Both are opened before one of them works for hours, and what was translated is kept before anything is measured.
    translator, rival = (None if one is None else opened(one, Translator) for one in (asked.folder, asked.other))
    written = corpus.hypotheses or []
    if corpus.references is not None:
        if translator is not None:
            written = _translated(translator, asked, corpus)
        _keep(asked.output, written)
        facts |= asdict(score_translations(written, corpus.references, corpus.sources, corpus.train))
        if translator is not None:
            _certain_of_pairs(translator, asked, corpus, facts)
        other = corpus.other_output
        if rival is not None:
            other = _translated(rival, asked, corpus)
        if other is not None:
            found = compare(written, other, corpus.references, asked.samples, asked.seed)
            facts["comparisons"] = [asdict(one) for one in found]
    if translator is not None and asked.probes:
        from regard.pipeline.probes import probe

        facts["probes"] = asdict(probe(translator, corpus.sources or [], asked.beam, asked.into))


def _keep(output: Path | None, written: list[str]) -> None:
    if output is not None:
        told = [line.replace("\r", " ").replace("\n", " ") for line in written]
        output.write_text("".join(f"{line}\n" for line in told), encoding="utf-8", newline="\n")


def _certain_of_pairs(translator: "Translator", asked: Asked, corpus: Corpus, facts: Facts) -> None:
    from regard.pipeline.scorer import Scorer
    from regard.pipeline.temperature import read_temperature
    from regard.store.model_folder import find_model

    assert asked.folder is not None  # noqa: S101 - there is a translator
    scorer = Scorer.from_pipeline(translator, read_temperature(find_model(asked.folder)))
    _certain(scorer, [several[0] for several in corpus.references or []], asked, corpus.sources, facts)


def _read_text(asked: Asked, corpus: Corpus, facts: Facts) -> None:
    from regard.pipeline.scorer import Scorer

    assert asked.folder is not None  # noqa: S101 - `_refuse` has seen to it
    scorer = Scorer.load(asked.folder)
    if scorer.settings.family != "decoder_only":
        raise RegardError("This model translates.", where=str(asked.folder), fix="Give --source and --reference.")
    facts["texts"] = len(corpus.texts or [])
    _certain(scorer, corpus.texts or [], asked, None, facts)


def _certain(scorer: "Scorer", texts: list[str], asked: Asked, sources: list[str] | None, facts: Facts) -> None:
    """Surprise and calibration; before and after, if a temperature is fitted."""
    from regard.pipeline.evaluate import calibrate_scorer, summarize_likelihood
    from regard.pipeline.temperature import write_temperature

    def measured(scorer: "Scorer") -> Facts:
        scored = scorer.score(texts, sources, target_language=asked.into, window=asked.window)
        return asdict(summarize_likelihood(scored, scorer.temperature))

    facts["certainty"] = measured(scorer)
    if asked.fitted is not None and asked.folder is not None:
        mended = calibrate_scorer(scorer, texts, sources, target_language=asked.into, window=asked.window)
        facts["fitted"] = measured(mended)
        write_temperature(asked.folder, asked.fitted, mended.temperature, facts["fitted"]["tokens"])


def _translated(translator: "Translator", asked: Asked, corpus: Corpus) -> list[str]:
    sources = corpus.sources or []
    with progress("translating", len(sources), hidden=False) as told:
        found = translator.translate(
            sources, beam_size=asked.beam, length_penalty=asked.alpha, target_language=asked.into, report=told
        )
    return [one.text for one in found]


def _lines(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    return list(lines_of(None, path)[0])


def _references(paths: list[Path]) -> list[tuple[str, ...]] | None:
    """The references of each text: always the first file's, and of the others what is not empty."""
    if not paths:
        return None
    files = [_lines(path) or [] for path in paths]
    for path, file in zip(paths, files, strict=True):
        if len(file) != len(files[0]):
            raise RegardError(
                f"The references have {len(files[0])} and {len(file)} lines.",
                where=str(path),
                fix="Line n of every file must belong to the same text.",
            )
    return [(first, *(line for line in rest if line)) for first, *rest in zip(*files, strict=True)]
