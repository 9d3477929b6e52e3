"""Packages of Argos Translate: complete, with the model's outputs, and a sentence splitter that needs no download."""

import importlib.util
import json
import zipfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.cli.train_options import TrainCommandOptions
from regard.config.tokenizers import SpecialsConfig, UnigramConfig
from regard.exchange.export import ExportOptions, export_model
from regard.store.model_folder import set_languages, write_model
from regard.store.weights import get_weights
from regard.tasks.load import load_translator
from regard.tasks.search import Beam
from regard.text.learn import learn
from regard.text.sentences import split_sentences
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.options import UsageError
from tests.tasks.factories import TEXTS, make_encoder_decoder, make_tokenizers, make_translator_settings

ctranslate2 = pytest.importorskip("ctranslate2")
SPLITTER = Path(__file__).parents[3] / "src/regard/exchange/argos/sentences.onnx"


@cache
def make_unigram(*languages: str) -> TokenizerPair:
    specials = SpecialsConfig(languages=languages)
    return TokenizerPair.joint(learn(TEXTS * 5, UnigramConfig(vocabulary=420, byte_fallback=True, specials=specials)))


def write_translator(folder: Path, tokenizers: TokenizerPair, languages: tuple[str, ...] = ("en", "de")) -> Path:
    settings = make_translator_settings(
        **{"source.vocabulary": tokenizers.source.size, "languages": list(languages), "max_length_ratio": 0.5}
    )
    write_model(folder, settings, tokenizers, get_weights(make_encoder_decoder(settings)), "card")
    return folder


def test_a_package_gives_the_outputs_of_the_model(tmp_path: Path) -> None:
    spm = pytest.importorskip("sentencepiece")
    model = write_translator(tmp_path / "model", make_unigram())
    path, report = export_model(model, "argos")
    (package,) = path.glob("*.argosmodel")
    assert package.name == "translate-en_de-1_0.argosmodel"
    assert any("argospm install" in note for note in report.notes)
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "translate-en_de-1_0"
    metadata = json.loads((folder / "metadata.json").read_text())
    assert (metadata["from_code"], metadata["to_code"], metadata["to_name"]) == ("en", "de", "German")
    assert (folder / "README.md").read_text() == "card"
    # What Argos Translate does with the folder:
    processor = spm.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    engine = ctranslate2.Translator(str(folder / "model"), intra_threads=1)
    results = engine.translate_batch(
        [processor.encode(text, out_type=str) for text in TEXTS],
        replace_unknowns=True,
        beam_size=4,
        length_penalty=0.2,
        max_decoding_length=30,
    )
    texts = [processor.decode_pieces(result.hypotheses[0]) for result in results]
    ours = load_translator(model).translate(TEXTS, Beam(4, length_penalty=0.2, stop_after=4), max_new_tokens=30)
    assert texts == [translation.text for translation in ours]
    parity = json.loads((path / "parity.json").read_text())
    assert parity["passed"] is True


@pytest.mark.parametrize(
    ("tokenizers", "languages", "reason"),
    [
        (make_tokenizers(), ("en", "de"), "not a unigram model"),
        (make_unigram(), (), "this model has none"),
        (make_unigram("de", "fr"), ("en", "de"), "language tags"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(
    tokenizers: TokenizerPair, languages: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    model = write_translator(tmp_path / "model", tokenizers, languages)
    with pytest.raises(RegardError, match=reason):
        export_model(model, "argos", options=ExportOptions())
    assert not (tmp_path / "model-argos").exists()


def test_argos_export_without_languages_names_the_command_that_sets_them(tmp_path: Path) -> None:
    model = write_translator(tmp_path / "model", make_unigram(), ())
    with pytest.raises(RegardError) as refused:
        export_model(model, "argos")
    assert f"`regard model set-languages {model} en de`" in str(refused.value.hint)
    set_languages(model, ("en", "de"))
    path, _ = export_model(model, "argos")
    assert [package.name for package in path.glob("*.argosmodel")] == ["translate-en_de-1_0.argosmodel"]


def test_export_option_chooses_the_tokenizer_and_needs_languages() -> None:
    options = TrainCommandOptions(source=["a.en"], target=["a.de"], out=Path("x"), export=["argos"])
    with pytest.raises(UsageError, match="languages"):
        options.check()
    changes = replace(options, languages=("en", "de")).changes
    assert (changes["tokenizer.kind"], changes["tokenizer.byte_fallback"]) == ("unigram", True)
    assert replace(options, settings=["tokenizer.kind=bpe"]).changes["tokenizer.kind"] == "bpe"
    assert "tokenizer.kind" not in replace(options, run=Path("run.toml")).changes


def test_the_splitter_follows_our_rules_and_equals_a_rebuild() -> None:
    onnxruntime, _ = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    script = Path(__file__).parents[3] / "scripts/make_argos_sentences.py"
    spec = importlib.util.spec_from_file_location("make_argos_sentences", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.build().SerializeToString(deterministic=True) == SPLITTER.read_bytes()
    session = onnxruntime.InferenceSession(SPLITTER, providers=["CPUExecutionProvider"])
    for text in [
        "A man in a hat. Two girls play in the snow! They laugh.",
        "He said: “Wait!” Then he left. Dr. Who came at 5 p.m. today.",
        "z. B. das hier. Nr. 5 ist gut. Prof. Müller kam. Er ging... Dann? ja.",
        "1. The first point. It is 5. Then he left. (In brackets.) Next one.",
    ]:
        units = np.array([[module.IDS.get(character, module.UNKNOWN) for character in text] + [module.PAD]])
        (scores,) = session.run(None, {"units": units, "features": np.zeros((*units.shape, 1), np.float32)})
        ends = [*np.flatnonzero(scores[0].argmax(-1) == 2).tolist(), len(text) - 1]
        starts = [0, *(end + 1 for end in ends)]
        sentences = [text[start : end + 1].strip() for start, end in zip(starts, ends, strict=False)]
        assert sentences == [sentence for sentence, _ in split_sentences(text)]
