"""Models of the presets' shapes with random weights, whose outputs all have the same length.

Outputs of random weights have no natural length. Here eos has a logit of about -30, and the decoder has learned
positions for 16 tokens: every output has exactly 16, in every engine and behind every server.
"""

import gzip
from pathlib import Path
from typing import Any

import torch

from bench.corpora import DATA
from bench.peers import ROOT
from regard.config import codec
from regard.config.tokenizers import ByteBpeConfig, SpecialsConfig
from regard.exchange.export import ExportOptions, export_model
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair

FOLDER = ROOT / "build/bench-serve"
CORPUS = DATA / "multi30k"
DEMO = ROOT / "src/regard/assets/demo"
BEAM_SIZE, TARGET_TOKENS = 4, 16
VOCABULARIES = {"mini": 2000, "base": 32000}  # Multi30k has merges for 26,657


def read_sentences() -> tuple[list[str], list[str]]:
    """Return Multi30k's training sentences in both languages and its English test sentences; else those of the demo."""
    if CORPUS.exists():
        train = [_read_lines(CORPUS / f"train.{language}.gz") for language in ("en", "de")]
        return train[0] + train[1], _read_lines(CORPUS / "test_2016_flickr.en.gz")
    pairs = [line.split("\t") for line in _read_lines(DEMO / "train.tsv.gz")]
    test = [line.split("\t")[0] for line in _read_lines(DEMO / "test.tsv.gz")]
    return [text for pair in pairs for text in pair[:2]], test


def _read_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def make_model(preset: str) -> Path:
    """Create the model folder of a preset, unless it exists."""
    folder = FOLDER / preset
    if folder.exists():
        return folder
    sentences, _ = read_sentences()
    tokenizer = learn(sentences, ByteBpeConfig(vocabulary=VOCABULARIES[preset], specials=SpecialsConfig(languages=())))
    position = {"kind": "learned", "length": TARGET_TOKENS}
    changes = {"source.vocabulary": tokenizer.size, "languages": ["en", "de"], "decoder.position": position}
    settings = codec.preset(preset, changes)
    model: Any = build(settings, seed=0).eval()
    with torch.no_grad():
        norm = model.decoder.layers[-1].feedforward_residual.norm
        norm.weight[0], norm.bias[0] = 0.0, 3.0
        model.target.embedding.weight[:, 0] = 0.0
        model.target.embedding.weight[tokenizer.specials.eos, 0] = -10.0
    write_model(folder, settings, TokenizerPair.joint(tokenizer), get_weights(model), "Random weights.")
    return folder


def make_export(preset: str, dtype: str) -> Path:
    """Export a preset's model to CTranslate2, unless the export exists."""
    folder = FOLDER / f"{preset}-{dtype}"
    if not folder.exists():
        export_model(make_model(preset), "ctranslate2", folder, ExportOptions(dtype=dtype))
    return folder
