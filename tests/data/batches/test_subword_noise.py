"""Subword noise: the same text as other tokens, and the same tokens after any stop."""

from pathlib import Path

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.config.sources import ConllConfig, LinesConfig
from regard.config.tokenizers import ByteBpeConfig
from regard.data.batches.arrays import StoredSamples
from regard.data.batches.loader import Loader
from regard.data.batches.order import DataPosition, OrderSettings
from regard.data.batches.subword_noise import resegmenter
from regard.data.corpus import Corpus
from regard.data.example import Defects
from regard.data.shards.prepare import prepare_in_memory
from regard.tasks.causal_lm.rows import CausalLMRows
from regard.tasks.tagging import TaggingRows
from regard.tasks.text_classification import ClassificationRows
from regard.tasks.translation.rows import TranslationRows
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from tests.training.runs import make_sentences, translate_sentence

SETTINGS = ByteBpeConfig(vocabulary=330, dropout=0.3)


@pytest.fixture(scope="module")
def tokenizers() -> TokenizerPair:
    english = make_sentences(200)
    return TokenizerPair.joint(learn([*english, *map(translate_sentence, english)], SETTINGS))


def make_loader(folder: Path, tokenizers: TokenizerPair, *, max_length: int = 64) -> Loader:
    english = make_sentences(60)
    (folder / "a.en").write_text("".join(f"{sentence}\n" for sentence in english))
    (folder / "a.de").write_text("".join(f"{translate_sentence(sentence)}\n" for sentence in english))
    corpus = Corpus([LinesConfig(source=str(folder / "a.en"), target=str(folder / "a.de"))])
    shards = prepare_in_memory(corpus, tokenizers, Defects())
    resegment = resegmenter(tokenizers, SETTINGS, seed=1, max_length=max_length)
    return Loader(
        shards,
        TranslationRows(tokenizers.source.specials, tokenizers.target.specials),
        OrderSettings(max_tokens=512, max_length=max_length),
        resegment=resegment,
    )


def epoch_texts(data_loader: Loader, tokenizers: TokenizerPair, epoch: int) -> dict[int, tuple[list[int], str, str]]:
    """Return, by sample, the ids of its target and both texts."""
    by_sample = {}
    for batch in data_loader.iter_epoch(epoch):
        assert batch.source is not None
        for sample, source, labels in zip(
            batch.samples.tolist(), batch.source.tolist(), batch.labels.tolist(), strict=True
        ):
            target = [token for token in labels if token >= 0]
            by_sample[sample] = (target, tokenizers.source.decode(source), tokenizers.target.decode(target))
    return by_sample


def test_the_text_stays_and_the_segmentation_changes_every_epoch(tmp_path: Path, tokenizers: TokenizerPair) -> None:
    data_loader = make_loader(tmp_path, tokenizers)
    first, second = (epoch_texts(data_loader, tokenizers, epoch) for epoch in (0, 1))
    assert len(first) == 60
    for sample, (_, source, target) in first.items():
        assert translate_sentence(source) == target
        assert second[sample][1:] == (source, target)
    assert sum(first[sample][0] != second[sample][0] for sample in first) > 30
    assert first == epoch_texts(data_loader, tokenizers, 0)


def test_a_stop_changes_no_segmentation(tmp_path: Path, tokenizers: TokenizerPair) -> None:
    data_loader = make_loader(tmp_path, tokenizers)
    steps = data_loader.steps()
    first_steps = [next(steps) for _ in range(5)]
    again = next(make_loader(tmp_path, tokenizers).steps(first_steps[2].next_position))
    assert isinstance(first_steps[2].next_position, DataPosition)
    assert again.batches[0].labels.tolist() == first_steps[3].batches[0].labels.tolist()


def test_a_segmentation_that_is_too_long_gives_way_to_the_stored_one(tmp_path: Path, tokenizers: TokenizerPair) -> None:
    data_loader = make_loader(tmp_path, tokenizers, max_length=14)
    lengths = [batch.labels.size(1) for batch in data_loader.iter_epoch(0)]
    assert max(lengths) <= 14


def test_a_truncated_text_is_resegmented_too(tokenizers: TokenizerPair) -> None:
    resegment = resegmenter(tokenizers, SETTINGS, seed=1, max_length=16)
    assert resegment is not None
    (plain,) = tokenizers.source.encode_ids([" ".join(make_sentences(20))])
    assert len(plain) > 16
    zero = np.zeros(1, np.int64)
    stored = StoredSamples(np.array(plain), np.array([[len(plain)]]), zero, zero, zero, zero)
    resegmented = resegment(stored)
    assert resegmented.lengths[0, 0] == resegmented.tokens.size > len(plain)
    task = ClassificationRows(tokenizers.source.specials, max_length=16)
    assert task.make_arrays(resegmented).source[0, 1:-1].tolist() == resegmented.tokens[:14].tolist()  # type: ignore[index]


def test_running_text_cannot_be_resegmented(tmp_path: Path, tokenizers: TokenizerPair) -> None:
    data_loader = make_loader(tmp_path, tokenizers)
    resegment = resegmenter(tokenizers, SETTINGS, seed=1, max_length=64)
    with pytest.raises(RegardError, match="cannot have subword noise"):
        Loader(
            data_loader.shards,
            CausalLMRows(tokenizers.source.specials),
            OrderSettings(max_length=64, packs_sequences=True),
            resegment=resegment,
        )


def test_tagged_text_cannot_be_resegmented(tmp_path: Path, tokenizers: TokenizerPair) -> None:
    (tmp_path / "a.conll").write_text("the\tDET\ndog\tNOUN\n\na\tDET\ncat\tNOUN\n\n")
    shards = prepare_in_memory(Corpus([ConllConfig(path=str(tmp_path / "a.conll"))]), tokenizers, Defects())
    resegment = resegmenter(tokenizers, SETTINGS, seed=1, max_length=64)
    with pytest.raises(RegardError, match="cannot have subword noise"):
        Loader(shards, TaggingRows(tokenizers.source.specials), OrderSettings(max_length=64), resegment=resegment)


def test_half_a_character_is_unchanged(tokenizers: TokenizerPair) -> None:
    resegment = resegmenter(tokenizers, SETTINGS, seed=1, max_length=64)
    assert resegment is not None
    tokens = tokenizers.source.encode_ids(["the dog sees a \N{SNOWMAN}"])[0][:-1]  # cut inside the last one
    zero = np.zeros(1, np.int64)
    records = StoredSamples(np.array(tokens), np.array([[len(tokens)]]), zero, zero, zero, zero - 1)
    assert resegment(records).tokens.tolist() == tokens


def test_without_noise_there_is_no_resegmenter(tokenizers: TokenizerPair) -> None:
    assert resegmenter(tokenizers, ByteBpeConfig(), seed=1, max_length=64) is None


@pytest.mark.parametrize("needs", [("image", "target"), ("audio", "target")])
def test_images_and_audio_cannot_be_resegmented(
    needs: tuple[str, ...], tmp_path: Path, tokenizers: TokenizerPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    shards, task = (
        make_loader(tmp_path, tokenizers).shards,
        TranslationRows(tokenizers.source.specials, tokenizers.target.specials),
    )
    monkeypatch.setattr(type(task), "needs", needs)
    monkeypatch.setattr(type(shards), "streams", property(lambda _: needs), raising=False)
    resegment = resegmenter(tokenizers, SETTINGS, seed=1, max_length=64)
    with pytest.raises(RegardError, match="Images and audio clips cannot have subword noise"):
        Loader(shards, task, OrderSettings(max_length=64), resegment=resegment)
