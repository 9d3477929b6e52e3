"""`regard evaluate` and `regard evaluate --score` from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.base.errors import RegardError
from regard.exchange import parity
from regard.measure import bleu, paired_bootstrap, score_by_length
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.evaluation.likelihood import summarize_likelihood
from regard.tasks.load import load
from regard.tasks.probes import PROFESSIONS
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from tests.commands import CommandResult, run_command
from tests.tasks.factories import (
    TEXTS,
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_tokenizers,
    make_translator_settings,
    write_translator,
)

SOURCES = [*TEXTS[:2], "two men near a playhouse", "girl"]
REFERENCES = [*TEXTS[2:], "zwei Männer", "Mädchen"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two translation models, a language model, and texts."""
    path = tmp_path_factory.mktemp("evaluate")
    settings = make_translator_settings(languages=["en", "de"])
    for seed, name in enumerate(("one", "other"), 1):
        write_model(path / name, settings, make_tokenizers(), get_weights(make_encoder_decoder(settings, seed)), "card")
    generator = make_generator_settings()
    write_model(path / "generator", generator, make_tokenizers(), get_weights(make_decoder_only(generator)), "card")
    (path / "source").write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    (path / "reference").write_text("\n".join(REFERENCES) + "\n", encoding="utf-8")
    (path / "second").write_text("\n".join(["", "", "two men", ""]) + "\n", encoding="utf-8")
    (path / "short").write_text("zwei\n", encoding="utf-8")
    return path


def run_in_folder(folder: Path, *arguments: str, columns: int = 100) -> CommandResult:
    """Run a command; arguments that name a file of the folder become its path."""
    return run_command(
        *(str(folder / argument) if (folder / argument).exists() else argument for argument in arguments),
        columns=columns,
    )


def evaluate_json(folder: Path, *arguments: str) -> dict:  # type: ignore[type-arg]
    done = run_in_folder(folder, "evaluate", *arguments, "--json")
    assert done.code == 0, done.errors
    evaluation = json.loads(done.output)
    assert isinstance(evaluation, dict)
    return evaluation


def translate_sources(folder: Path, name: str) -> list[str]:
    translator = load(folder / name)
    assert isinstance(translator, Translator)
    return [translation.text for translation in translator.translate(SOURCES, Beam(1))]


def test_a_model_is_evaluated(folder: Path, tmp_path: Path) -> None:
    written = tmp_path / "written"
    pairs = ("--source", "source", "--reference", "reference")
    evaluation = evaluate_json(folder, "one", *pairs, "--beam", "1", "--output", str(written), "--train", "reference")
    translations = translate_sources(folder, "one")
    assert evaluation["texts"] == 4
    assert evaluation["scores"]["bleu"]["value"] == bleu(translations, REFERENCES).value
    assert evaluation["scores"]["bleu"]["signature"] == bleu(translations, REFERENCES).signature
    assert [entry["texts"] for entry in evaluation["by_length"]] == [
        b.texts for b in score_by_length(translations, REFERENCES, SOURCES)
    ]
    assert sum(entry["references"] for entry in evaluation["by_frequency"]) > 20
    expected = summarize_likelihood(regard.load(folder / "one").make_scorer().score(REFERENCES, SOURCES))
    assert evaluation["likelihood"]["perplexity"] == pytest.approx(expected.perplexity)
    assert evaluation["likelihood"]["tokens"] == expected.tokens
    flat = [text.replace("\r", " ").replace("\n", " ") for text in translations]
    assert written.read_text(encoding="utf-8").split("\n")[:-1] == flat
    assert "comparisons" not in evaluation
    more = evaluate_json(folder, "one", *pairs, "--reference", "second", "--beam", "1")
    assert more["likelihood"] == evaluation["likelihood"]  # of the first reference


def test_python_returns_what_the_command_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = (folder / "source", folder / "reference")
    options = ("--source", "source", "--reference", "reference", "--beam", "1", "--other", "other", "--samples", "20")
    expected = evaluate_json(folder, "one", *options)
    settings: dict[str, Any] = {"beam": 1, "samples": 20, "progress": False}
    assert to_json(regard.evaluate(folder / "one", pairs, other=folder / "other", **settings)) == expected
    loaded = [regard.load(folder / name) for name in ("one", "other")]
    assert to_json(regard.evaluate(loaded[0], pairs, other=loaded[1], **settings)) == expected
    files = regard.evaluate(hypotheses=pairs[0], reference=pairs[1], progress=False)
    assert to_json(files) == evaluate_json(folder, "--hypotheses", "source", "--reference", "reference")
    text = regard.evaluate(folder / "generator", text=pairs[0], window=16)
    assert to_json(text) == evaluate_json(folder, "generator", "--text", "source", "--window", "16")
    assert capsys.readouterr() == ("", "")  # progress that takes no time prints no line


def test_a_model_without_a_folder_cannot_store_a_temperature(folder: Path, tmp_path: Path) -> None:
    generator = make_generator_settings()
    pipeline = TextGenerator(make_decoder_only(generator), make_tokenizers(), generator)
    with pytest.raises(RegardError, match="needs a model folder"):
        regard.evaluate(pipeline, text=folder / "source", fit_temperature=tmp_path / "new")
    assert "calibrated_likelihood" not in regard.evaluate(pipeline, text=folder / "source")


def to_json(evaluation: dict[str, Any]) -> Any:
    """Return an evaluation as JSON holds it: tuples are lists."""
    return json.loads(json.dumps(evaluation))


def test_two_models_are_compared(folder: Path) -> None:
    pairs = ("--source", "source", "--reference", "reference", "--beam", "1")
    evaluation = evaluate_json(folder, "one", *pairs, "--other", "other", "--samples", "50", "--seed", "7")
    translations, other_translations = translate_sources(folder, "one"), translate_sources(folder, "other")
    expected = paired_bootstrap(translations, other_translations, REFERENCES, "chrf", samples=50, seed=7)
    assert evaluation["comparisons"][1]["difference"] == expected.difference
    assert evaluation["comparisons"][1]["p"] == expected.p
    assert [entry["metric"] for entry in evaluation["comparisons"]] == ["bleu", "chrf", "ter"]


def test_files_are_evaluated_without_a_model(folder: Path) -> None:
    evaluation = evaluate_json(
        folder, "--hypotheses", "source", "--reference", "reference", "--other-output", "reference"
    )
    assert evaluation["scores"]["exact_match"]["value"] == 0.0
    assert evaluation["comparisons"][0]["candidate"] == 100.0
    assert "likelihood" not in evaluation
    assert evaluation["by_length"] == []
    several = evaluate_json(folder, "--hypotheses", "source", "--reference", "reference", "--reference", "second")
    assert several["scores"]["wer"]["value"] < evaluation["scores"]["wer"]["value"]


@pytest.mark.parametrize(
    ("this", "other", "direction"), [("reference", "short4", "better"), ("short4", "reference", "worse")]
)
def test_comparison_says_which_system_is_better(folder: Path, this: str, other: str, direction: str) -> None:
    """Also for TER, which is lower for the better one."""
    (folder / "short4").write_text("zwei Männer\n" * 4, encoding="utf-8")
    files = ("--hypotheses", this, "--other-output", other, "--reference", "reference", "--samples", "50")
    evaluation = evaluate_json(folder, *files)
    done = run_in_folder(folder, "evaluate", *files, columns=300)
    for entry, name in zip(evaluation["comparisons"], ("BLEU", "chrF", "TER"), strict=True):
        low, high = sorted(abs(entry[bound]) for bound in ("low", "high"))  # both have the sign of the difference
        assert entry["low"] * entry["difference"] >= 0
        doubt = "" if entry["is_significant"] else ", not significant"
        gain = f"{abs(entry['difference']):.2f} {name} {direction} than {folder / other}"
        assert f"{folder / this} is {gain} ({low:.2f} to {high:.2f}{doubt})." in done.output
    assert evaluation["systems"] == {"baseline": str(folder / this), "candidate": str(folder / other)}
    same = run_in_folder(folder, "evaluate", *files[:3], this, *files[4:], columns=300)
    assert f"{folder / this} and {folder / this} have the same BLEU." in same.output


def test_a_language_model_is_evaluated_on_a_text(folder: Path) -> None:
    whole_text = evaluate_json(folder, "generator", "--text", "source", "--window", "16")
    assert whole_text["texts"] == 1
    scorer = regard.load(folder / "generator").make_scorer()
    expected = summarize_likelihood(scorer.score(["\n".join(SOURCES)], window=16))
    assert whole_text["likelihood"]["bits_per_byte"] == pytest.approx(expected.bits_per_byte)
    line_texts = evaluate_json(folder, "generator", "--text", "source", "--lines")
    assert line_texts["texts"] == 4
    assert line_texts["likelihood"]["tokens"] == whole_text["likelihood"]["tokens"]  # one eos per line feed


def test_a_temperature_is_fitted_into_a_new_folder(folder: Path, tmp_path: Path) -> None:
    targets = tmp_path / "targets"
    targets.write_text(
        "\n".join([*translate_sources(folder, "one")[:3], "zwei"]).replace("\r", " ") + "\n", encoding="utf-8"
    )
    pairs = ("--source", "source", "--reference", str(targets), "--beam", "1")
    if len(targets.read_text(encoding="utf-8").split("\n")) != 5:
        pytest.fail("the model wrote a line feed: choose another seed")
    before = (folder / "one" / "manifest.json").read_bytes()
    evaluation = evaluate_json(folder, "one", *pairs, "--fit-temperature", str(tmp_path / "new"))
    assert (folder / "one" / "manifest.json").read_bytes() == before
    assert evaluation["calibrated_likelihood"]["perplexity"] < evaluation["likelihood"]["perplexity"]
    again = evaluate_json(folder, str(tmp_path / "new"), *pairs)
    assert again["likelihood"] == evaluation["calibrated_likelihood"]  # the temperature is used
    assert again["likelihood"]["temperature"] != 1.0
    done = run_in_folder(folder, "evaluate", "one", *pairs, "--fit-temperature", str(tmp_path / "new"))
    assert done.code == 1
    assert "already exists" in done.errors


def test_tables_show_every_part_and_are_reproducible(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.tasks.probes.PROFESSIONS", PROFESSIONS[:2])
    pairs = ("--source", "source", "--reference", "reference", "--beam", "1")
    options = ("--other-output", "source", "--train", "reference", "--probes", "--samples", "20")
    done = run_in_folder(folder, "evaluate", "one", *pairs, *options)
    assert done.code == 0, done.errors
    for word in (
        *("4 texts", "BLEU", "chrF", "TER", "exact match", "nrefs:1|", "perplexity", "bits per byte"),
        *(
            "calibration error",
            "by source length",
            "6 to 10",
            "by word frequency",
            "paired bootstrap",
            "repetitive input:",
            "ga x 20",
        ),
        *("gender of professions", "She is a ..."),
    ):
        assert word in done.output, (word, done.output)
    assert run_in_folder(folder, "evaluate", "one", *pairs, *options).output == done.output
    probes = evaluate_json(folder, "one", "--source", "source", "--beam", "1", "--probes")
    assert probes.keys() == {"probes", "engine"}
    assert probes["engine"] == "torch"
    assert len(probes["probes"]["repetition"]["cases"]) > 4


def test_pairs_are_scored(folder: Path) -> None:
    done = run_in_folder(folder, "evaluate", "one", "--score", "--source", "source", "--reference", "reference")
    expected = regard.load(folder / "one").make_scorer().score(REFERENCES, SOURCES)
    assert done.output == "".join(f"{scored.total_logprob:.4f}\t{len(scored.logprobs)}\n" for scored in expected), (
        done.errors
    )
    done = run_in_folder(folder, "evaluate", "one", "--score", "zwei", "Männer", "--source-text", "two", "--json")
    records = [json.loads(line) for line in done.output.split("\n")[:-1]]
    assert [scored["text"] for scored in records] == ["zwei", "Männer"]
    assert records[0].keys() == {"text", "tokens", "logprobs", "best_logprobs", "correct", "total_logprob"}
    assert records[0]["total_logprob"] == pytest.approx(
        regard.load(folder / "one").make_scorer().score(["zwei"], ["two"])[0].total_logprob
    )


def test_lines_of_a_file_are_scored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.cli.score.CHUNK_LINES", 2)
    done = run_in_folder(folder, "evaluate", "generator", "--score", "--text", "source", "--lines")
    expected = regard.load(folder / "generator").make_scorer().score(SOURCES)
    assert [float(line.split("\t")[0]) for line in done.output.split("\n")[:-1]] == pytest.approx(
        [scored.total_logprob for scored in expected], abs=1e-3
    )


def test_chunks_of_pairs_stay_aligned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_in_folder(folder, "evaluate", "one", "--score", "--source", "source", "--reference", "reference")
    monkeypatch.setattr("regard.cli.score.CHUNK_LINES", 3)
    again = run_in_folder(folder, "evaluate", "one", "--score", "--source", "source", "--reference", "reference")
    pairs = list(zip(done.output.split(), again.output.split(), strict=True))
    assert len(pairs) >= len(SOURCES)
    assert all(float(first) == pytest.approx(float(second), abs=1e-3) for first, second in pairs)


def test_errors_name_the_fix(folder: Path) -> None:
    both = ("--source", "source", "--reference", "reference")
    for arguments, message in (
        (("evaluate",), "No model or output file"),
        (("evaluate", "one"), "There are no references"),
        (("evaluate", "one", "--source", "source"), "There are no references"),
        (("evaluate", "one", "--reference", "reference"), "There are no source texts"),
        (("evaluate", "one", "--probes"), "There are no source texts"),
        (
            ("evaluate", "one", "--source", "source", "--probes", "--output", "kept"),
            "--output and --train need --reference",
        ),
        (("evaluate", "one", *both, "--hypotheses", "source"), "both given"),
        (("evaluate", "--hypotheses", "source"), "There are no references"),
        (("evaluate", "--hypotheses", "source", "--reference", "reference", "--probes"), "need a model"),
        (
            ("evaluate", "--hypotheses", "source", "--reference", "reference", "--other", "one"),
            "There are no source texts",
        ),
        (
            ("evaluate", "--hypotheses", "source", "--reference", "reference", "--output", "x"),
            "--hypotheses already is a file",
        ),
        (("evaluate", "--hypotheses", "short", "--reference", "reference"), "--hypotheses has 1 line,"),
        (("evaluate", "one", "--source", "short", "--reference", "reference"), "--source has 1 line,"),
        (("evaluate", "one", *both, "--other-output", "short"), "--other-output has 1 line,"),
        (("evaluate", "one", *both, "--reference", "short"), "have 4 and 1 line."),
        (
            ("evaluate", "one", *both, "--other", "other", "--other-output", "source"),
            "--other and --other-output were both given",
        ),
        (("evaluate", "one", *both, "--window", "9"), "--window needs --text"),
        (
            ("evaluate", "one", "--text", "source", "--target-language", "de"),
            "--target-language is for translation models",
        ),
        (("evaluate", "one", *both, "--unconstrained"), "--unconstrained is not for translations"),
        (("evaluate", "generator", "--text", "source", "--beam", "2"), "--beam is not for texts"),
        (("evaluate", "generator", "--text", "source", "--train", "source"), "--train is not for texts"),
        (("evaluate", "--hypotheses", "source", "--reference", "reference", "--beam", "2"), "--beam needs a model"),
        (("evaluate", "one", *both, "--output", "source"), "overwrite the input"),
        (("evaluate", "one", *both, "--text", "source"), "--text cannot be combined"),
        (("evaluate", "one", "--text", "source"), "--text needs a decoder-only or masked language model"),
        (("evaluate", "generator", *both), "regard generate"),
        (("evaluate", "one", "--source", "nowhere", "--reference", "reference"), "no such file"),
        (("evaluate", "nowhere", *both), "no such folder"),
        (("evaluate", "one", "zwei", "--score"), "it scores translations of given sources"),
        (("evaluate", "generator", "zwei", "--score", "--source-text", "two"), "does not take sources"),
        (("evaluate", "one", "zwei", *both, "--score"), "TEXT needs --score and cannot be combined with files"),
        (("evaluate", "one", "zwei"), "TEXT needs --score"),
        (("evaluate", "one", *both, "--score", "--source-text", "two"), "cannot be combined with --source"),
        (("evaluate", "one", "--score", "--reference", "reference", "--source", "short"), "--source has 1 line"),
        (("evaluate", "one", *both, "--score", "--beam", "2"), "--beam is not for --score"),
        (("evaluate", "--hypotheses", "source", "--score", "--reference", "source"), "--score needs a model"),
    ):
        done = run_in_folder(folder, *arguments)
        assert done.code == 1, (arguments, done)
        assert message in done.errors, (arguments, done.errors)
        assert "Traceback" not in done.errors


def test_a_signature_is_one_line_of_a_file_and_folded_on_a_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("evaluate", "one", "--source", "source", "--reference", "reference", "--beam", "1")
    signature = bleu(translate_sources(folder, "one"), REFERENCES).signature
    assert signature in run_in_folder(folder, *arguments, columns=60).output
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich then takes the output for a terminal
    on_terminal = run_in_folder(folder, *arguments, columns=60).output
    assert signature not in on_terminal


def test_results_name_the_engine(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity, "TEXTS", 3)
    write_translator(tmp_path / "model")
    pairs = ("--source", "source", "--reference", "reference", "--beam", "1", "--engine", "ctranslate2")
    evaluation = evaluate_json(folder, str(tmp_path / "model"), *pairs)
    assert evaluation["engine"] == "ctranslate2"
    assert evaluation["likelihood"]["perplexity"] > 1  # from the PyTorch model
    text = run_in_folder(folder, "evaluate", str(tmp_path / "model"), *pairs)
    assert text.output.startswith("4 texts, translated by ctranslate2\n")
