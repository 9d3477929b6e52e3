"""Audio clips in batches: spectrograms of any length, masked at random as a function of keys."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.base.keyed_random import make_key
from regard.base.labels import IGNORE_INDEX
from regard.config.inputs import MelConfig
from regard.config.run import SpecAugmentConfig
from regard.config.sources import AudioConfig
from regard.config.tokenizers import CharacterLevelConfig
from regard.data.batches.audio import (
    FREQUENCY_START,
    FREQUENCY_WIDTH,
    TIME_START,
    TIME_WIDTH,
    check_rate,
    mask_spectrogram,
    measure_bins,
)
from regard.data.batches.loader import Loader
from regard.data.batches.order import OrderSettings
from regard.data.corpus import Corpus
from regard.data.example import AudioClip, CorpusError, Defects, Example, Location
from regard.data.held_out import train_validation_split
from regard.data.mel import log_mel
from regard.data.shards.prepare import open_corpus, prepare, prepare_in_memory
from regard.data.shards.shard import Shards
from regard.data.shards.tokenize import deserialize_examples, serialize_examples, store_examples
from regard.tasks.audio_classification import AudioClassificationRows
from regard.tasks.transcription import TranscriptionRows
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.training.runs import write_audio

MEL = MelConfig(bins=8, rate=8000)
MASKS = SpecAugmentConfig()


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    write_audio(tmp_path, 60)
    return Corpus([AudioConfig(path=str(tmp_path / "audio"))])


def make_loader(shards: Shards, masks: SpecAugmentConfig | None, **options: Any) -> Loader:
    return Loader(
        shards, AudioClassificationRows(MEL, masks, 3), OrderSettings(seed=1, max_tokens=64, max_length=16), **options
    )


def test_a_row_counts_frames(corpus: Corpus) -> None:
    shards = prepare_in_memory(corpus, None, Defects())
    loader = make_loader(shards, None)
    batches = list(loader.iter_epoch(0))
    assert sum(len(batch.samples) for batch in batches) == 60
    for batch in batches:
        assert batch.source is not None
        assert batch.source_valid is not None
        rows, frames, bins = batch.source.shape
        assert rows * frames <= 64
        assert bins == 8
        assert batch.input_count == int(batch.source_valid.sum())
        for sample, row, valid in zip(batch.samples.tolist(), batch.source, batch.source_valid, strict=True):
            shard = shards.shards[0]
            start, end = shard.offsets()[sample : sample + 2]
            expected = log_mel(shards.load_tokens(0)[start:end].view(np.int16), MEL)
            assert np.array_equal(row[valid].numpy(), expected)
            assert not row[~valid].any()


def test_shards_on_disk_hold_the_samples(corpus: Corpus, tmp_path: Path) -> None:
    prepare(corpus, None, tmp_path / "shards", Defects(), shard_size=20_000)
    shards = open_corpus(tmp_path / "shards", verify=True)
    memory = prepare_in_memory(corpus, None, Defects())
    assert len(shards.shards) > 2
    assert shards.sample_rate == memory.sample_rate == 8000
    joined = np.concatenate([shards.load_tokens(number) for number in range(len(shards.shards))])
    assert np.array_equal(joined, memory.load_tokens(0))
    assert joined.view(np.int16).min() < -5000, "samples have a sign"
    assert measure_bins(shards, MEL) == measure_bins(memory, MEL)
    examples = [example for _, example in corpus.examples(Defects())]
    assert deserialize_examples(serialize_examples(examples)) == examples


def test_masks_depend_on_epoch_and_sample_only(corpus: Corpus) -> None:
    shards = prepare_in_memory(corpus, None, Defects())

    def collect(loaders: list[Loader], epoch: int) -> dict[int, bytes]:
        batches = [batch for loader in loaders for batch in loader.iter_epoch(epoch)]
        return {
            sample: row[valid].numpy().tobytes()
            for batch in batches
            if batch.source is not None and batch.source_valid is not None
            for sample, row, valid in zip(batch.samples.tolist(), batch.source, batch.source_valid, strict=True)
            if sample >= 0
        }

    one = collect([make_loader(shards, MASKS)], 0)
    three = collect([make_loader(shards, MASKS, rank=rank, world_size=3) for rank in range(3)], 0)
    assert one == three
    assert one != collect([make_loader(shards, MASKS)], 1)
    plain = collect([make_loader(shards, None)], 0)
    assert sum(one[sample] != plain[sample] for sample in plain) > 40


def test_spectrogram_masks_cover_at_most_their_share() -> None:
    purposes = (TIME_WIDTH, TIME_START, FREQUENCY_WIDTH, FREQUENCY_START)
    widest = 0
    for seed in range(200):
        spectrogram = np.ones((40, 20), np.float32)
        settings = SpecAugmentConfig(time_masks=1, frequency_masks=1)
        mask_spectrogram(spectrogram, settings, {purpose: make_key(seed, purpose) for purpose in purposes})
        rows, columns = (np.flatnonzero(~spectrogram.any(axis=axis)) for axis in (1, 0))
        assert len(rows) <= 6  # 15 %
        assert len(columns) <= 3
        for band in (rows, columns):
            assert not len(band) or (np.diff(band) == 1).all()
        widest = max(widest, len(rows))
        untouched = np.delete(np.delete(spectrogram, rows, axis=0), columns, axis=1)
        assert (untouched == 1).all()
    assert widest == 6


def test_texts_are_the_labels_of_speech(corpus: Corpus, tmp_path: Path) -> None:
    tokenizers = TokenizerPair.joint(learn(["low high"], CharacterLevelConfig()))
    speech = Corpus([AudioConfig(path=str(tmp_path / "speech.tsv"), second="text")])
    shards = prepare_in_memory(speech, tokenizers, Defects())
    assert shards.streams == ("audio", "target")
    specials = tokenizers.target.specials
    loader = Loader(
        shards, TranscriptionRows(MEL, None, 1, specials), OrderSettings(seed=1, max_tokens=64, max_length=16)
    )
    texts, audio = [], []
    for batch in loader.iter_epoch(0):
        assert batch.target is not None
        assert batch.source is not None
        for sample, target, labels in zip(batch.samples.tolist(), batch.target, batch.labels, strict=True):
            ids = labels[labels != IGNORE_INDEX].tolist()
            assert ids[-1] == specials.eos
            assert target[: len(ids)].tolist() == [specials.bos, *ids[:-1]]
            texts.append((sample, tokenizers.target.decode(ids[:-1])))
        audio += [(sample, row) for sample, row in zip(batch.samples.tolist(), batch.source, strict=True)]
    lines = (tmp_path / "speech.tsv").read_text().splitlines()
    assert [text for _, text in sorted(texts)] == [line.split("\t")[1] for line in lines]
    assert {tuple(row.shape)[1] for _, row in audio} == {8}
    del corpus


def test_a_prompt_before_the_text_has_no_label(corpus: Corpus, tmp_path: Path) -> None:
    tokenizers = TokenizerPair.joint(learn(["low high"], CharacterLevelConfig()))
    shards = prepare_in_memory(
        Corpus([AudioConfig(path=str(tmp_path / "speech.tsv"), second="text")]), tokenizers, Defects()
    )
    specials, settings = tokenizers.target.specials, OrderSettings(seed=1, max_tokens=64, max_length=16)
    plain = {row[0]: row[1:] for row in _iter_rows(Loader(shards, TranscriptionRows(MEL, None, 1, specials), settings))}
    task = TranscriptionRows(MEL, None, 1, specials, prompt=(1, 2))
    for sample, labels, target in _iter_rows(Loader(shards, task, settings)):
        n_labels = sum(label != IGNORE_INDEX for label in plain[sample][0])
        assert labels[: 2 + n_labels] == [IGNORE_INDEX, IGNORE_INDEX, *plain[sample][0][:n_labels]]
        assert target[: 2 + n_labels] == [specials.bos, 1, 2, *plain[sample][1][1:n_labels]]
    assert np.array_equal(task.row_lengths(np.array([[800], [4]])), [[10], [7]])
    del corpus


def _iter_rows(loader: Loader) -> Iterator[tuple[int, list[int], list[int]]]:
    for batch in loader.iter_epoch(0):
        assert batch.target is not None
        yield from zip(batch.samples.tolist(), batch.labels.tolist(), batch.target.tolist(), strict=True)


def test_equal_audio_are_held_out_together(corpus: Corpus) -> None:
    train, held_out = train_validation_split(corpus, 0.3, seed=1)
    parts = [{example.audio for _, example in part.examples(Defects())} for part in (train, held_out)]
    assert all(parts)
    assert not parts[0] & parts[1]


def test_audio_of_several_rates_are_refused() -> None:
    examples = [
        Example(Location("f", n), "", label="x", audio=AudioClip(rate, bytes(8))) for n, rate in ((1, 8), (2, 16))
    ]
    with pytest.raises(CorpusError, match="16 samples per second; earlier clips have 8") as caught:
        store_examples(examples, None)
    assert caught.value.location == "f:2"
    shards = [store_examples([example], None, origin=f"s{n}") for n, example in enumerate(examples)]
    with pytest.raises(RegardError, match="s0 has audio clips of 8 samples per second, but s1 of 16"):
        Shards(shards)
    with pytest.raises(RegardError, match="16 samples per second; the model reads 8,000"):
        check_rate(Shards(shards[1:]), MEL)
    text = Example(Location("f", 1), "", target="text", audio=AudioClip(8, bytes(8)))
    with pytest.raises(CorpusError, match="there is no tokenizer"):
        store_examples([text], None)
