"""`regard translate` and `regard generate` from the command line."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from regard.base.errors import RegardError
from regard.config import codec
from regard.exchange import engine_cache, parity
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.load import load
from regard.tasks.search import Beam, Sampling
from regard.tasks.translation.translator import Translator
from tests.commands import run_command
from tests.tasks.factories import (
    TEXTS,
    add_quality,
    make_encoder_decoder,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
    write_translator,
)

LINES = ["", TEXTS[0], "two men", "", "a little girl\u2028climbs", "two men\x0b", ""]
LENGTH_OPTIONS = ("--length-penalty", "0.6")


@pytest.fixture(scope="module")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("translate") / "model"
    settings = make_translator_settings()
    write_model(path, settings, make_tokenizers(), get_weights(make_encoder_decoder(settings)), "card")
    return str(path)


def translate_expected(folder: str, texts: list[str], **options: Any) -> list[str]:
    translator = load(folder)
    assert isinstance(translator, Translator)
    translations = translator.translate(texts, **{"max_new_tokens": 7, **options})
    return [translation.text.replace("\r", " ").replace("\n", " ") for translation in translations]


def test_texts_on_the_command_line(translator_folder: str) -> None:
    done = run_command("translate", translator_folder, *TEXTS[:2], "--max-new-tokens", "7", "--beam", "2")
    assert done.code == 0, done.errors
    assert done.output.split("\n")[:-1] == translate_expected(translator_folder, TEXTS[:2], search=Beam(2))


def test_line_n_of_a_file_becomes_line_n(translator_folder: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes("\n".join(LINES).encode() + b"\n")
    done = run_command(
        "translate", translator_folder, "--input", str(source), "--output", str(target), "--max-new-tokens", "7"
    )
    assert done.code == 0, done.errors
    assert done.output == ""
    written = target.read_bytes().decode().split("\n")
    assert written[-1] == ""
    assert written[:-1] == translate_expected(translator_folder, LINES)  # also: \u2028 and \x0b end no line
    assert written[0] == written[3] == written[6] == ""


def test_standard_input_and_json(translator_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "\ufefftwo men\r\n\r\nzwei".encode()  # byte order mark, Windows line ends, no line end at the end
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    done = run_command("translate", translator_folder, "--json", "--max-new-tokens", "7")
    assert done.code == 0, done.errors
    records = [json.loads(line) for line in done.output.split("\n")[:-1]]
    assert [record["source"] for record in records] == ["two men", "", "zwei"]
    assert [record["text"].replace("\r", " ").replace("\n", " ") for record in records] == translate_expected(
        translator_folder, ["two men", "", "zwei"]
    )
    assert records[0].keys() - {"warnings"} == {"source", "text", "score", "tokens", "token_texts", "logprobs", "ended"}
    assert len(records[0]["tokens"]) == len(records[0]["logprobs"]) > 0


def test_many_chunks_keep_the_order(translator_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.cli.text_input.CHUNK_LINES", 3)
    source = tmp_path / "in.en"
    source.write_text("\n".join(LINES) + "\n", encoding="utf-8", newline="\n")
    done = run_command("translate", translator_folder, "--input", str(source), "--max-new-tokens", "7", "--beam", "1")
    assert done.output.split("\n")[:-1] == translate_expected(translator_folder, LINES, search=Beam(1))


def test_a_terminal_gets_an_answer_to_each_line(translator_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    sizes: list[int] = []
    translate = Translator.translate

    def recording_translate(self: Translator, texts: list[str], **options: object) -> object:
        sizes.append(len(texts))
        return translate(self, texts, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Translator, "translate", recording_translate)
    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"two\nmen\n")))
    assert run_command("translate", translator_folder, "--max-new-tokens", "3").code == 0
    assert sizes == [1, 1]


def test_errors_name_the_fix(translator_folder: str, generator_folder: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.toml").write_text("", encoding="utf-8")
    text = tmp_path / "text"
    text.write_bytes(b"good\nb\xe4d\n")
    encoder = tmp_path / "encoder"
    small = {"d_model": 32, "encoder.layers": 1, "encoder.attention.heads": 4, "encoder.feedforward.d_ff": 32}
    settings = codec.preset("bert", small | {"source.vocabulary": make_tokenizer().size})
    write_model(encoder, settings, make_tokenizers(), get_weights(build(settings, seed=1)), "card")
    for arguments, message in (
        (["translate", "nowhere", "text"], "There is no such folder"),
        (["generate", "nowhere", "text"], "There is no such folder"),
        (["translate", str(tmp_path), "text"], "neither a model nor a run"),
        (["translate", str(run), "text"], "This run has no model yet"),
        (["translate", generator_folder, "text"], f"regard generate {generator_folder}"),
        (["generate", translator_folder, "text"], f"regard translate {translator_folder}"),
        (["translate", str(encoder), "text"], "a masked language model, not a translation model"),
        (["translate", translator_folder, "text", "--input", str(text)], "both given"),
        (["translate", translator_folder, "--input", "nowhere"], "There is no such file"),
        (["translate", translator_folder, "--input", str(text), "--output", str(text)], "overwrite the input"),
        (["translate", translator_folder, "text", "--output", "no/where"], "cannot be written"),
        (["translate", translator_folder, "--input", str(text)], f"{text}:2"),
        (["translate", translator_folder, "text", "--target-language", "de"], "no tag for the language 'de'"),
        (["generate", generator_folder, "text", "--max-new-tokens", "5000"], "Generate at most"),
        (["generate", generator_folder, "text", "--top-p", "0"], "top_p must be above 0"),
        (["generate", generator_folder, "text", "--search", "beam", "--top-k", "3"], "--top-k has no effect"),
        (
            ["translate", translator_folder, "text", "--search", "mbr", "--length-penalty", "2"],
            "--length-penalty has no effect",
        ),
        (["translate", translator_folder, "text", "--search", "stochastic", *LENGTH_OPTIONS], "has no length penalty"),
        (["evaluate", generator_folder, "text", "--score", "--target-language", "de"], "Leave target_language out"),
        (["evaluate", translator_folder, "text", "--score", "--source-text", "a", "--window", "9"], "Leave window out"),
    ):
        done = run_command(*arguments)
        assert done.code == 1, arguments
        assert message in done.errors, (arguments, done.errors)
        assert "Traceback" not in done.errors
    assert text.read_bytes() == b"good\nb\xe4d\n"


@pytest.mark.parametrize("mode", [[], ["--json"]])
def test_an_unreadable_input_leaves_an_existing_output(translator_folder: str, mode: list[str], tmp_path: Path) -> None:
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"b\xe4d\n")
    output.write_text("old")
    assert run_command("translate", translator_folder, "--input", str(source), "--output", str(output), *mode).code == 1
    assert output.read_text() == "old"


def test_document_is_translated_and_the_report_names_segments_to_check(translator_folder: str, tmp_path: Path) -> None:
    source, output, report = tmp_path / "app.json", tmp_path / "out.json", tmp_path / "report.json"
    source.write_text('{"a": "Open %s.", "b": "A bee. C dee!", "c": 3}\n', encoding="utf-8")
    command = ("translate", translator_folder, "--input", str(source), "--max-new-tokens", "5", "--beam", "1")
    done = run_command(*command, "--output", str(output), "--report", str(report))
    assert done.code == 0, done.errors
    translated = json.loads(output.read_text(encoding="utf-8"))
    assert list(translated) == ["a", "b", "c"]
    assert "%s" in translated["a"]
    checks = json.loads(report.read_text(encoding="utf-8"))
    assert (checks["file"], checks["segments"], checks["sentences"]) == ("app.json", 2, 3)
    assert checks["attention"][0]["reasons"][0] == "cut off after 5 tokens"
    assert f"{checks['attention'][0]['location']}: cut off after 5 tokens" in done.errors
    assert "of 2 should be checked" in done.errors
    assert run_command(*command).output == output.read_text(encoding="utf-8")
    with mock.patch.object(Translator, "translate", side_effect=RegardError("stopped")) as translate:
        run_command(*command, "--forbid", "bee")
    assert translate.call_args.kwargs["constraints"].forbidden == ["bee"]
    for option in (("--prefix", "A"), ("--require", "A"), ("--n-best", "2"), ("--json",)):
        assert f"{option[0]} is for lines of text" in run_command(*command, *option).errors
    assert "is a .json file" in run_command(*command, "--output", str(tmp_path / "out.docx")).errors
    assert "--report is for documents" in run_command(*command[:2], "A bee.", "--report", str(report)).errors


def test_lines_of_a_text_file_are_split_into_sentences(translator_folder: str, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("\n  A bee. C dee!\n\nF\n", encoding="utf-8")
    command = ("translate", translator_folder, "--input", str(tmp_path / "letter.txt"), "--max-new-tokens", "3")
    done = run_command(*command)
    assert done.code == 0, done.errors
    first, second, third = translate_expected(translator_folder, ["A bee.", "C dee!", "F"], max_new_tokens=3)
    assert done.output == f"\n  {first} {second}\n\n{third}\n"
    records = [json.loads(line) for line in run_command(*command, "--json").output.splitlines()]
    assert [record["source"] for record in records] == [
        "",
        "  A bee. C dee!",
        "",
        "F",
    ]  # an option of lines


@pytest.mark.parametrize("name", ["letter.pdf", "film.JSON.gz", "data.xlsx"])
def test_file_that_cannot_be_translated_is_refused_and_output_stays(
    translator_folder: str, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("Hello!\n", encoding="utf-8")
    (tmp_path / "out").write_text("kept", encoding="utf-8")
    done = run_command(
        "translate", translator_folder, "--input", str(tmp_path / name), "--output", str(tmp_path / "out")
    )
    assert done.code == 1
    assert "cannot be translated" in done.errors
    assert (tmp_path / "out").read_text(encoding="utf-8") == "kept"


def test_translate_searches_and_constraints(translator_folder: str) -> None:
    done = run_command(
        "translate", translator_folder, *TEXTS[:2], "--max-new-tokens", "7", "--beam", "3", "--n-best", "2"
    )
    assert done.code == 0, done.errors
    rows = [line.split("\t") for line in done.output.split("\n")[:-1]]
    assert [row[0] for row in rows] == ["1", "1", "2", "2"]
    assert float(rows[0][1]) >= float(rows[1][1])
    assert [row[2] for row in rows[::2]] == translate_expected(translator_folder, TEXTS[:2], search=Beam(3))
    for options in (
        ["--search", "sample", "--top-p", "0.9", "--seed", "1"],
        ["--search", "mbr", "--beam", "4", "--seed", "1"],
        ["--search", "diverse", *LENGTH_OPTIONS],
        ["--search", "stochastic", "--seed", "2"],
        ["--ensemble", translator_folder],
    ):
        first, second = (
            run_command("translate", translator_folder, *TEXTS, "--max-new-tokens", "7", *options) for _ in "12"
        )
        assert first.code == 0, first.errors
        assert first.output == second.output
        assert len(first.output.split("\n")) == len(TEXTS) + 1
    record = json.loads(
        run_command("translate", translator_folder, TEXTS[0], "--max-new-tokens", "7", *LENGTH_OPTIONS, "--json").output
    )
    assert record["score"] == pytest.approx(sum(record["logprobs"]) / len(record["logprobs"]) ** 0.6)
    greedy = run_command("translate", translator_folder, *TEXTS, "--max-new-tokens", "7", "--beam", "1").output
    for filter_options in (["--top-k", "1"], ["--temperature", "0"], ["--min-p", "1"], ["--top-p", "0.0001"]):
        sampling_options = ["--beam", "1", "--search", "sample", *filter_options, "--seed", "1"]
        assert (
            run_command("translate", translator_folder, *TEXTS, "--max-new-tokens", "7", *sampling_options).output
            == greedy
        ), filter_options
    sampled = run_command(
        "translate", translator_folder, *TEXTS, "--max-new-tokens", "7", "--search", "sample", "--seed", "1"
    ).output
    # A single sample, not the most probable of several.
    assert sampled.split("\n")[:-1] == translate_expected(translator_folder, TEXTS, search=Sampling(), seed=1)
    done = run_command(
        "translate", translator_folder, TEXTS[0], "--max-new-tokens", "9", "--prefix", "Ein", "--json", "--align"
    )
    record = json.loads(done.output)
    assert record["text"].startswith("Ein")
    assert record["alignment"]
    assert all(len(pair) == 2 for pair in record["alignment"])
    done = run_command("translate", translator_folder, TEXTS[0], "--max-new-tokens", "20", "--require", "Holz")
    assert "Holz" in done.output
    done = run_command(
        "translate", translator_folder, TEXTS[0], "--max-new-tokens", "20", "--prefix", "Holz", "--forbid", "Holz"
    )
    assert (done.code, "forced and forbidden" in done.errors) == (1, True)
    done = run_command("translate", translator_folder, TEXTS[0], "--top-k", "3")
    assert (done.code, "--search sample" in done.errors) == (1, True)


def test_glossary_terms_appear_and_missing_ones_are_reported(translator_folder: str, tmp_path: Path) -> None:
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("men\tHolz\tHölzer\ngirl\tin der Nähe von\n", encoding="utf-8")
    arguments = ["translate", translator_folder, *TEXTS[:2], "--glossary", str(glossary), "--json"]
    done = run_command(*arguments, "--max-new-tokens", "20")
    first, second = map(json.loads, done.output.splitlines())
    assert "Holz" in first["text"]
    assert "in der Nähe von" in second["text"]
    assert not any("unsatisfied_terms" in record for record in (first, second))
    assert "lacks" not in done.errors
    done = run_command(*arguments, "--max-new-tokens", "2")
    assert '"unsatisfied_terms": ["girl"]' in done.output
    assert "the translation lacks 'girl'" in done.errors


def test_compressed_files_are_read(translator_folder: str, tmp_path: Path) -> None:
    source = tmp_path / "in.txt.gz"
    source.write_bytes(gzip.compress("\n".join(LINES).encode() + b"\n"))
    done = run_command("translate", translator_folder, "--input", str(source), "--max-new-tokens", "7")
    assert done.output.split("\n")[:-1] == translate_expected(translator_folder, LINES)


def test_many_lines_export_the_model_and_few_use_the_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parity, "TEXTS", 3)
    monkeypatch.setattr(engine_cache, "MIN_SENTENCES", 4)
    folder, cache = write_translator(tmp_path / "model"), tmp_path / ".model-ctranslate2"
    command = ("translate", str(folder), "--beam", "1")
    few = run_command(*command, *TEXTS[:3])
    assert (few.code, "CTranslate2" in few.errors, cache.exists()) == (0, False, False)
    assert "CTranslate2" not in run_command(*command, *TEXTS, "--engine", "torch").errors
    assert not cache.exists()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(TEXTS).encode())))
    many = run_command(*command)
    assert (many.code, many.output.splitlines()[:3]) == (0, few.output.splitlines())
    assert many.errors.startswith("Exported the model to CTranslate2")
    assert [line for line in many.errors.splitlines()[1:] if not line.startswith("line ")] == []
    monkeypatch.setattr(Translator, "make_search_input", lambda *_: pytest.fail("PyTorch was asked"))
    assert run_command(*command, *TEXTS[:3]) == few


def test_min_quality_leaves_lines_empty_and_reports_them(translator_folder: str, tmp_path: Path) -> None:
    folder = str(add_quality(Path(translator_folder), tmp_path / "rated"))
    command = ["translate", folder, *TEXTS[:2], "", "--max-new-tokens", "7", "--engine", "torch"]
    expected = translate_expected(translator_folder, TEXTS[:2])
    for accepted in ("good", "check", "0.5"):
        assert run_command(*command, "--min-quality", accepted).output.split("\n") == [*expected, "", ""]
    rejected = run_command(*command, "--min-quality", "0.6")
    assert rejected.output == "\n\n\n"
    assert "quality 0.50 (good)" in rejected.errors.splitlines()[0]
    rows = [json.loads(line) for line in run_command(*command, "--min-quality", "0.6", "--json").output.splitlines()]
    assert [row["text"] for row in rows] == [*expected, ""]
    assert [(row["quality"], row["rating"]) for row in rows[:2]] == [(0.5, "good")] * 2
    assert "quality" not in rows[2]
    (tmp_path / "app.json").write_text('{"a": "Two men.", "b": "A dog."}\n', encoding="utf-8")
    document = ["translate", folder, "--input", str(tmp_path / "app.json"), "--report", str(tmp_path / "report.json")]
    for minimum, is_named in (("good", False), ("0.6", True)):
        assert run_command(*document, "--engine", "torch", "--min-quality", minimum).code == 0
        checks = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
        reasons = [entry["reasons"] for entry in checks["attention"]]
        assert ["quality 0.50 (good)" in each for each in reasons] == [is_named] * len(reasons)
        assert len(reasons) == 2 or not is_named


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--min-quality", "fine"), "There is no quality 'fine'"),
        (("--min-quality", "good"), "cannot promise good translations"),
        (("--min-quality", "0.5", "--beam", "2"), "beam size of 5"),
    ],
)
def test_min_quality_that_cannot_be_judged_is_refused(
    translator_folder: str, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    folder = add_quality(Path(translator_folder), tmp_path / "rated", good=None)
    done = run_command("translate", str(folder), TEXTS[0], *options)
    assert done.code != 0
    assert message in done.errors


def test_many_alarms_are_counted_and_the_wrong_model_is_suspected(translator_folder: str, tmp_path: Path) -> None:
    folder = add_quality(Path(translator_folder), tmp_path / "rated", max_surprise=0.0)
    done = run_command("translate", str(folder), *["two men"] * 30, "--engine", "torch")
    *lines, rest, summary = [line for line in done.errors.splitlines() if "more" in line or "unlike" in line]
    assert len(lines) == 20
    assert lines[0].startswith("line 1: ")
    assert rest == "10 more of 30 lines should be checked."
    assert summary.startswith("30 of 30 lines are unlike the training data")


def test_a_model_without_an_estimate_refuses_min_quality(translator_folder: str) -> None:
    done = run_command("translate", translator_folder, TEXTS[0], "--min-quality", "good")
    assert done.code != 0
    assert "--fit-quality" in done.errors
