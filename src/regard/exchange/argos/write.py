"""The export target `argos`: a package (`.argosmodel`) that `argospm install FILE` installs without a network.

translate-en_de-1_0/
    metadata.json         languages and version
    model/                CTranslate2; its vocabulary are the tokens of the SentencePiece model
    sentencepiece.model   our unigram tokenizer
    minisbd/              a sentence splitter with the rules of `regard.text.sentences`
    README.md             the model card

Argos Translate splits a text into sentences and translates them by beam search (beam size 4, length penalty 0.2).
"""

import json
import zipfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.formatting import quote_path
from regard.config.model import EncoderDecoderConfig
from regard.exchange.ctranslate2 import POSITIONS, count_positions, make_spec
from regard.exchange.export import ExportOptions, ExportReport
from regard.exchange.parity import measure_parity
from regard.exchange.parity_runners import Tokens
from regard.exchange.parity_samples import Sample
from regard.store.model_folder import CARD, StoredModel, read_model
from regard.text import sentencepiece

VERSION = "1.0"
BATCH_SIZE = 32
LENGTH_PENALTY = 0.2  # Argos Translate's values
_NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "et": "Estonian", "fi": "Finnish", "fr": "French", "hi": "Hindi", "hu": "Hungarian",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch",
    "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip


def export(model: Path, folder: Path, options: ExportOptions) -> ExportReport:
    """Write a translation model as a package of Argos Translate, and compare it with the model.

    Raises:
        RegardError: The model or its tokenizer cannot be represented, or a float32 package differs from the model.
    """
    stored = read_model(model)
    source, target = check_translator(stored)
    sentencepiece_model = sentencepiece.write_model(stored.tokenizers.source.document, location=str(model))
    dtype, positions = options.dtype or "float32", options.max_positions or POSITIONS
    name = f"translate-{source}_{target}-{VERSION.replace('.', '_')}"
    with TemporaryDirectory(prefix="regard-") as temporary_folder:
        spec = make_spec(stored, positions, stored.tokenizers.source.vocabulary)
        spec.config.add_source_eos = True  # Argos Translate passes the tokens alone
        spec.optimize(dtype)
        spec.save(temporary_folder)
        limits = [limit for limit in count_positions(stored.settings, positions).values() if limit is not None]
        parity = measure_parity(
            stored,
            ArgosRunner(Path(temporary_folder), stored),
            must_match=dtype == "float32",
            max_positions=min(limits) if limits else None,
        )
        _write_package(folder / f"{name}.argosmodel", name, Path(temporary_folder), stored, sentencepiece_model)
    parity.write(folder)
    size = (folder / f"{name}.argosmodel").stat().st_size
    notes = (
        *parity.describe(),
        f"Install it: argospm install {name}.argosmodel",
        f"Argos Translate searches with length penalty {LENGTH_PENALTY}; `regard translate` with 1 by default.",
    )
    return ExportReport(f"package for Argos Translate, {dtype}, {size / 1e6:.1f} MB", notes)


def check_translator(stored: StoredModel) -> tuple[str, str]:
    """Return the model's languages; raise an error if a package cannot hold the model."""
    settings, tokenizers = stored.settings, stored.tokenizers
    obstacles = []
    if not isinstance(settings, EncoderDecoderConfig) or settings.task != "translation":
        obstacles.append("it does not translate")
    if not tokenizers.is_joint:
        obstacles.append("it has two tokenizers, and a package has one")
    if tokenizers.source.specials.languages:
        obstacles.append("it has language tags")
    if obstacles:
        raise RegardError(
            f"Argos Translate cannot run this model: {'; '.join(obstacles)}.",
            location=str(stored.path),
            hint="Train with `--export argos --languages en de`.",
        )
    if len(settings.languages) != 2:
        raise RegardError(
            "An Argos Translate package needs language names, and this model has none.",
            location=str(stored.path),
            hint=f"Set them, e.g. `regard model set-languages {quote_path(stored.path)} en de`, and export it again.",
        )
    source, target = settings.languages
    return source, target


class ArgosRunner:
    """CTranslate2 with the tokens of the tokenizer, as Argos Translate runs it, for the parity test."""

    engine, stops_early = "ctranslate2 (argos)", True

    def __init__(self, folder: Path, stored: StoredModel) -> None:
        ctranslate2 = import_optional("ctranslate2", "ctranslate2", "Export to Argos Translate")
        self.version: str = ctranslate2.__version__
        self._translator = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)
        self.compute_type: str = self._translator.compute_type
        self._vocabulary = stored.tokenizers.source.vocabulary
        self._ids = {text: token for token, text in enumerate(self._vocabulary)}

    def score(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Return the log-probability of each target token."""
        sources = [self._to_texts(sample.source[:-1]) for sample in samples]
        targets = [self._to_texts(sample.target[:-1]) for sample in samples]
        results = self._translator.score_batch(sources, targets, max_input_length=0, max_batch_size=BATCH_SIZE)
        return [list(result.log_probs) for result in results]

    def beam(self, samples: Sequence[Sample], beam_size: int) -> Tokens:
        """Return the outputs of beam search."""
        outputs: Tokens = []
        for sample in samples:  # the maximum length is one number per call
            (result,) = self._translator.translate_batch(
                [self._to_texts(sample.source[:-1])],
                beam_size=beam_size,
                max_decoding_length=sample.max_new_tokens,
                max_input_length=0,
                return_end_token=True,
            )
            outputs.append([self._ids[text] for text in result.hypotheses[0]])
        return outputs

    def _to_texts(self, tokens: Sequence[int]) -> list[str]:
        return [self._vocabulary[token] for token in tokens]


def _write_package(path: Path, name: str, engine: Path, stored: StoredModel, sentencepiece_model: bytes) -> None:
    source, target = stored.settings.languages
    metadata = {
        "package_version": VERSION,
        "argos_version": "1.9",
        "from_code": source,
        "from_name": _NAMES.get(source, source),
        "to_code": target,
        "to_name": _NAMES.get(target, target),
    }
    card = stored.path / CARD
    contents = {
        "metadata.json": json.dumps(metadata, indent=1).encode(),
        "sentencepiece.model": sentencepiece_model,
        "minisbd/regard.onnx": (files("regard.exchange.argos") / "sentences.onnx").read_bytes(),
        "README.md": card.read_bytes() if card.is_file() else b"",
        **{f"model/{file.name}": file.read_bytes() for file in sorted(engine.iterdir())},
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for file, content in contents.items():
            # A fixed date: the same model gives the same bytes.
            package.writestr(zipfile.ZipInfo(f"{name}/{file}", (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
