"""The scripts of examples/whisper: names of tensors, the tokenizer, resampling, and the committed table."""

import sys
from pathlib import Path

import numpy as np
import pytest
from examples.whisper import clips, convert

TRANSCRIPTS = Path(__file__).parents[2] / "examples/whisper/transcripts.tsv"


def test_names_are_those_of_transformers() -> None:
    assert convert.rename("encoder.conv1.weight") == "model.encoder.conv1.weight"
    assert convert.rename("encoder.ln_post.bias") == "model.encoder.layer_norm.bias"
    assert convert.rename("decoder.positional_embedding") == "model.decoder.embed_positions.weight"
    assert convert.rename("decoder.blocks.11.mlp.2.bias") == "model.decoder.layers.11.fc2.bias"


def test_merges_are_found_from_ranks() -> None:
    ranks = {bytes([byte]): byte for byte in range(256)}
    for token in (b"th", b"in", b"the", b" the", b"ing", b"thing"):
        ranks[token] = len(ranks)
    specials = {text: 262 + number for number, text in enumerate((convert.END, convert.START, convert.NO_TIMESTAMPS))}
    tokenizer = convert.make_tokenizer(ranks, specials)
    assert convert.split(b"thing", ranks) == (b"th", b"ing")
    ids = tokenizer.encode("the thing ♪").ids
    assert ids[:3] == [263, 264, ranks[b"the"]]
    assert ids[3:5] == [ranks[b" "], ranks[b"thing"]]
    assert ids[-1] == 262
    assert tokenizer.decode(ids) == "the thing ♪"


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050])
def test_a_tone_stays_a_tone(rate: int) -> None:
    tone = 10_000 * np.sin(2 * np.pi * 500 * np.arange(rate) / rate)
    resampled = clips.resample(np.rint(tone).astype(np.int16), rate)
    expected = 10_000 * np.sin(2 * np.pi * 500 * np.arange(16_000) / 16_000)
    assert resampled.shape == (16_000,)
    assert np.abs(resampled - expected).max() <= 3


def test_files_survive(tmp_path: Path) -> None:
    samples = np.array([0, -32768, 32767], np.int16)
    clips.write_wav(tmp_path / "a.wav", samples)
    assert clips.read_wav(tmp_path / "a.wav")[0].tolist() == samples.tolist()
    assert "whisper" not in sys.modules, "converting needs it, these tests do not"


def test_all_committed_transcripts_are_equal() -> None:
    header, *rows = (line.split("\t") for line in TRANSCRIPTS.read_text(encoding="utf-8").splitlines())
    assert header[-2:] == ["Regard", "openai-whisper"]
    assert len(rows) == len(clips.SENTENCES) + 10
    assert all(row[1] == "yes" and row[-2] == row[-1] for row in rows)
