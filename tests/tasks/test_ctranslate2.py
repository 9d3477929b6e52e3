"""The CTranslate2 engine gives the results of PyTorch, refuses what it cannot run, and is found beside a model."""

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.base.errors import DamagedError, RegardError
from regard.decode.length_penalty import gnmt
from regard.exchange import parity
from regard.exchange.export import ExportOptions, export_model
from regard.look import attribution
from regard.look.build import look_into
from regard.store.export_folder import EXPORT_FILE, PARITY_FILE
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.causal_lm.ctranslate2_generator import CTranslate2Generator
from regard.tasks.load import load
from regard.tasks.results import GeneratedText
from regard.tasks.search import Beam, Sampling
from regard.tasks.translation.constraints import Constraints
from regard.tasks.translation.ctranslate2_translator import CTranslate2Translator
from regard.tasks.translation.ensemble import EnsembleTranslator
from regard.tasks.translation.inspect import token_alternatives, translate_traced
from regard.tasks.translation.translator import Translator
from regard.text.glossary import Glossary
from tests.commands import run_command
from tests.tasks.factories import (
    TEXTS,
    make_decoder_only,
    make_generator_settings,
    make_tokenizers,
    write_translator,
)

Make = Callable[..., Path]


def write_generator(folder: Path) -> Path:
    settings = make_generator_settings(**{"decoder.position": {"kind": "rotary"}})
    write_model(folder, settings, make_tokenizers(), get_weights(make_decoder_only(settings)), "card")
    return folder


def export(folder: Path, **options: Any) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parity, "TEXTS", 3)
        return export_model(folder, "ctranslate2", options=ExportOptions(**options), replace=True)[0]


@pytest.fixture(scope="module")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_translator(tmp_path_factory.mktemp("models") / "translator")
    export(folder)
    return folder


@pytest.fixture(scope="module")
def generator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_generator(tmp_path_factory.mktemp("models") / "generator")
    export(folder)
    return folder


@pytest.fixture(scope="module")
def engines(translator_folder: Path) -> tuple[Translator, Translator]:
    """The same model in PyTorch and in CTranslate2."""
    return (
        regard.load_translator(translator_folder),
        regard.load_translator(translator_folder, engine="ctranslate2"),
    )


def make_texts(count: int) -> list[str]:
    generator = random.Random(1)
    words = " ".join(TEXTS).split()
    return [" ".join(generator.choices(words, k=generator.randint(1, 9))) for _ in range(count)] + ["", "  "]


def assert_equal(ours: GeneratedText, theirs: GeneratedText) -> None:
    assert ours.tokens == theirs.tokens
    assert ours.text == theirs.text
    assert (ours.ended, ours.token_texts) == (theirs.ended, theirs.token_texts)
    assert theirs.logprobs == pytest.approx(ours.logprobs, abs=1e-4)
    assert theirs.score == pytest.approx(ours.score, abs=1e-4)
    for ours_next, theirs_next in zip(ours.alternatives, theirs.alternatives, strict=True):
        assert_equal(ours_next, theirs_next)


@pytest.mark.parametrize(
    ("search", "options"),
    [
        (Beam(1), {}),
        (Beam(1), {"max_new_tokens": 3}),
        (Beam(4, stop_after=4), {}),
        (Beam(4, stop_after=4), {"max_new_tokens": 3}),
        (Beam(3, 0.0, stop_after=3), {"n_best": 3}),
        (Beam(4, 0.6, stop_after=2), {"n_best": 2}),
        (Beam(2, stop_after=6), {}),
        (Beam(2, stop_after=2), {"n_best": 3}),  # in PyTorch
        (Beam(2, exact=True), {}),  # in PyTorch
        (Beam(5, stop_after=5), {"batch_tokens": 200}),
    ],
)
def test_results_are_those_of_pytorch(
    engines: tuple[Translator, Translator], search: Beam, options: dict[str, Any]
) -> None:
    texts = make_texts(12)
    reports: list[int] = []
    ours, theirs = engines
    expected = ours.translate(texts, search, **options)
    results = theirs.translate(texts, search, **options, report=reports.append)
    assert sum(reports) == len(texts)
    for our_result, their_result in zip(expected, results, strict=True):
        assert_equal(our_result, their_result)
    assert len({len(result.tokens) for result in results}) > 2 or options.get("max_new_tokens") == 3


def test_every_text_has_its_own_maximum_length(tmp_path: Path) -> None:
    folder = write_translator(tmp_path / "m", eos_bias=2.0, max_length_ratio=0.5)  # it rarely ends
    export(folder)
    ours, theirs = load(folder, task="translation"), load(folder, task="translation", engine="ctranslate2")
    texts = make_texts(12)
    for search in (Beam(1), Beam(3, stop_after=3)):
        results = theirs.translate(texts, search)
        for expected, result in zip(ours.translate(texts, search), results, strict=True):
            assert_equal(expected, result)
        assert len({len(result.tokens) for result in results if not result.ended}) > 1


def test_without_scores(engines: tuple[Translator, Translator]) -> None:
    ours, theirs = engines
    search = Beam(4, stop_after=4)
    expected, results = (engine.translate(TEXTS, search, with_scores=False) for engine in (ours, theirs))
    assert [result.tokens for result in results] == [result.tokens for result in expected]
    assert all(result.logprobs == () for result in results)
    assert [result.score for result in results] == pytest.approx([result.score for result in expected], abs=0.01)
    assert math.isnan(theirs.translate(TEXTS[0], Beam(1), with_scores=False).score)


def test_documents_and_iterators(engines: tuple[Translator, Translator]) -> None:
    ours, theirs = engines
    document = "\n\n".join(TEXTS).encode()
    search = Beam(3, stop_after=3)
    results = [translator.translate_document(document, "a.txt", search)[0] for translator in engines]
    assert results[0] == results[1]
    texts = make_texts(7)
    assert [result.text for result in theirs.translate_iter(texts, search, chunk_size=3)] == [
        result.text for result in ours.translate_iter(texts, search, chunk_size=3)
    ]


def test_what_ctranslate2_lacks_runs_in_pytorch(engines: tuple[Translator, Translator]) -> None:
    ours, theirs = engines
    assert theirs.translate(TEXTS[0], Sampling(2), seed=3) == ours.translate(TEXTS[0], Sampling(2), seed=3)
    constraints = Constraints(forbidden=["cat"])
    assert theirs.translate(TEXTS[0], constraints=constraints) == ours.translate(TEXTS[0], constraints=constraints)
    search = Beam(3, gnmt(0.6))
    assert theirs.translate(TEXTS[0], search) == ours.translate(TEXTS[0], search)
    assert "".join(theirs.stream(TEXTS[0])) == "".join(ours.stream(TEXTS[0]))
    assert type(theirs.record(TEXTS[0], "Haus")) is type(ours.record(TEXTS[0], "Haus"))
    assert theirs.num_parameters == ours.num_parameters
    assert repr(theirs) == repr(ours).replace("device", "ctranslate2 float32, device").replace(
        "Translator", "CTranslate2Translator"
    )


def test_an_export_alone_refuses_what_needs_pytorch(translator_folder: Path) -> None:
    export_folder = translator_folder.with_name("translator-ctranslate2")
    alone = load(export_folder, task="translation", engine="ctranslate2")
    whole = load(translator_folder, task="translation", engine="ctranslate2")
    assert alone.translate(TEXTS) == whole.translate(TEXTS)
    with pytest.raises(RegardError, match=r"CTranslate2 does not support Sampling, and the export has no PyTorch"):
        alone.translate(TEXTS, Sampling())
    with pytest.raises(RegardError, match="cannot record attention"):
        alone.record(TEXTS[0])
    with pytest.raises(RegardError, match="needs the PyTorch model"):
        _ = alone.model
    with pytest.raises(RegardError, match="This is an export") as error:
        load(export_folder)
    assert "engine='ctranslate2'" in str(error.value)


def test_four_threads(engines: tuple[Translator, Translator]) -> None:
    texts = make_texts(8)
    expected = engines[1].translate(texts)
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: engines[1].translate(texts), range(4)))
    assert all([one.tokens for one in result] == [one.tokens for one in expected] for result in results)


def test_texts_beyond_the_exported_positions_run_in_pytorch_or_are_refused(tmp_path: Path) -> None:
    folder = write_translator(tmp_path / "m", eos_bias=-30.0)
    export_folder = export(folder, max_positions=24)
    long_texts = [" ".join(TEXTS), "Two"]
    expected = load(folder, task="translation").translate(long_texts, Beam(1), max_new_tokens=30)
    translator = load(folder, task="translation", engine="ctranslate2")
    for result, reference in zip(translator.translate(long_texts, Beam(1), max_new_tokens=30), expected, strict=True):
        assert_equal(reference, result)
    translator = load(export_folder, task="translation", engine="ctranslate2")
    with pytest.raises(RegardError, match=r"154 tokens and does not fit into the positions of the export \(.*24\)"):
        translator.translate(" ".join(TEXTS))
    with pytest.raises(RegardError, match="does not end within the positions"):
        translator.translate("Two", Beam(1), max_new_tokens=200)
    assert len(translator.translate("Two", Beam(1), max_new_tokens=24).tokens) == 24  # every position can be used


@pytest.mark.parametrize("search", [Beam(1), Beam(3, stop_after=3)])
def test_generators(generator_folder: Path, search: Beam) -> None:
    ours, theirs = load(generator_folder), load(generator_folder, engine="ctranslate2")
    assert isinstance(theirs, CTranslate2Generator)
    assert isinstance(ours, regard.TextGenerator)
    prompts = [*TEXTS, "A", ""]
    for expected, result in zip(
        ours.generate(prompts, 12, search, n_best=2 if search.beam_size > 1 else 1),
        theirs.generate(prompts, 12, search, n_best=2 if search.beam_size > 1 else 1),
        strict=True,
    ):
        assert_equal(expected, result)
    assert theirs.generate("A", 5, seed=1) == ours.generate("A", 5, seed=1)  # sampled by PyTorch
    assert list(theirs.stream("A", 5, seed=1)) == list(ours.stream("A", 5, seed=1))


def test_auto_uses_an_export_of_these_weights_whose_parity_passed(tmp_path: Path) -> None:
    folder = write_translator(tmp_path / "m")
    assert type(load(folder, engine="auto")) is Translator
    with pytest.raises(RegardError, match="no CTranslate2 export of this model") as error:
        load(folder, engine="ctranslate2")
    assert "regard export" in str(error.value)
    export(folder)
    assert isinstance(load(folder, engine="auto"), CTranslate2Translator)
    export(folder, dtype="int8")  # figures only
    assert json.loads((tmp_path / "m-ctranslate2" / PARITY_FILE).read_text())["passed"] is None
    assert type(load(folder, engine="auto")) is Translator
    assert "int8" in repr(load(folder, engine="ctranslate2"))
    export(folder)
    (folder / "manifest.json").unlink()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    write_translator(folder, seed=2)  # other weights
    assert type(load(folder, engine="auto")) is Translator
    with pytest.raises(RegardError, match="was made from different weights"):
        load(folder, engine="ctranslate2")


def test_a_damaged_export_is_refused(tmp_path: Path) -> None:
    folder = write_translator(tmp_path / "m")
    place = export(folder)
    weights = place / "model.bin"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    with pytest.raises(DamagedError, match=r"model\.bin"):
        load(folder, engine="ctranslate2")
    (place / EXPORT_FILE).write_text('{"engine": 3}')
    with pytest.raises(DamagedError, match="damaged"):
        load(folder, engine="ctranslate2")


def test_an_unknown_engine_is_refused(translator_folder: Path) -> None:
    with pytest.raises(RegardError, match="There is no engine 'onnx'"):
        load(translator_folder, engine="onnx")  # type: ignore[call-overload]


def test_engine_translator_looks_and_ensembles_use_pytorch(
    engines: tuple[Translator, Translator], generator_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attribution, "MAX_STEPS", attribution.FIRST_STEPS)  # inexact, but fast
    ours, theirs = engines
    text = TEXTS[0]
    short: dict[str, Any] = {"max_new_tokens": 3, "name": "m"}  # attribution takes its time for every token
    assert look_into(theirs, text, **short).document == look_into(ours, text, **short).document
    translation = ours.translate(text)
    assert token_alternatives(theirs, text, translation) == token_alternatives(ours, text, translation)
    assert translate_traced(theirs, text).translation == translate_traced(ours, text).translation
    assert EnsembleTranslator([theirs, ours]).translate(text).text == translation.text
    generator = load(generator_folder, engine="ctranslate2")
    assert look_into(generator, text, **short).document == look_into(generator_folder, text, **short).document


def test_documents_run_on_the_engine(translator_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("PyTorch was asked")

    monkeypatch.setattr("regard.tasks.ctranslate2_pipelines.LazyTorch.require", refuse)
    file = tmp_path / "letter.txt"
    file.write_text(TEXTS[0])
    assert run_command("translate", str(translator_folder), "--input", str(file), "--engine", "ctranslate2").code == 0


def test_terms_use_pytorch_only_where_the_engine_lacks_them(
    engines: tuple[Translator, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = engines
    search = Beam(3, stop_after=3)
    (word, *_) = theirs.translate(TEXTS[0], search).text.split()
    lacking = Constraints(glossary=Glossary({TEXTS[1].split()[0]: ["Holz"]}))
    expected = ours.translate(TEXTS[1:2], search, constraints=lacking)
    results = theirs.translate(TEXTS[1:2], search, constraints=lacking)
    assert [result.text for result in results] == [result.text for result in expected]
    assert "Holz" in results[0].text

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("PyTorch was asked")

    monkeypatch.setattr("regard.tasks.ctranslate2_pipelines.LazyTorch.require", refuse)
    for terms in ({"unused": ["Holz"]}, {TEXTS[0].split()[0]: ["Holz", word]}):
        result = theirs.translate(TEXTS[0], search, constraints=Constraints(glossary=Glossary(terms)))
        assert result.unsatisfied_terms == ()


IMPORT_SCRIPT = """
import json, sys
import regard
from regard.cli.app import app
from regard.tasks.ctranslate2 import count_threads

folder, text = sys.argv[1:]
command = ["translate", folder, text, "--engine", "ctranslate2"]
app(command, standalone_mode=False)
print(regard.load_translator(folder, engine="ctranslate2").translate(text).text)
names = "torch", "numpy", "rich", "regard.config.run"  # each takes a tenth of a second or more
before = [name for name in names if name in sys.modules], count_threads()
app([*command, "--forbid", "Holz"], standalone_mode=False)
print(json.dumps([before, ("torch" in sys.modules, count_threads())]))
"""


def test_translate_imports_pytorch_for_constraints_only(translator_folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [sys.executable, "-c", IMPORT_SCRIPT, str(translator_folder), TEXTS[0]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    *texts, imports = done.stdout.splitlines()
    translator = regard.load_translator(translator_folder, engine="ctranslate2")
    expected, constrained = (
        translator.translate(TEXTS[0], constraints=constraints).text
        for constraints in (None, Constraints(forbidden=["Holz"]))
    )
    assert texts == [expected, expected, constrained]
    (imported_before, threads), (imported, threads_of_torch) = json.loads(imports)
    assert (imported_before, imported) == ([], True)
    assert threads == threads_of_torch
