"""word2vec: its two tasks train by the common trainer, and words in the same contexts become neighbors."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.base.errors import ConfigError, RegardError
from regard.config.codec import preset
from regard.config.model import EncoderOnlyConfig
from regard.config.sources import DocumentsConfig
from regard.config.tokenizers import WordLevelConfig
from regard.config.toml_file import to_dict
from regard.models.build import build
from regard.models.inputs import TokenInput
from regard.tasks.embedding import Embedder
from regard.tasks.load import load
from regard.tasks.token_vectors import load_token_vectors
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.recipes.configure import configure
from regard.training.run import fit
from tests.training.runs import make_small_run, write_corpus

ANIMALS, TOOLS = ("dog", "cat", "cow", "hen"), ("saw", "axe", "pen", "key")
TASKS = ("cbow", "skip_gram")


def write_sentences(path: Path) -> None:
    """Animals and tools never share a neighbor, and two animals are never in one sentence."""
    rng = random.Random(1)
    frames = {ANIMALS: ("old {} eats grass today", "young {} eats corn now"), TOOLS: ("this {} cuts wood well",)}
    groups = list(frames)
    lines = []
    for _ in range(400):
        group = rng.choice(groups)
        lines.append(rng.choice(frames[group]).format(rng.choice(group)))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def make_run(task: str, folder: Path) -> Any:
    changes = {
        "data.train": [{"kind": "lines", "source": str(folder / "sentences.txt")}],
        "data.held_out": 0.0,
        "tokenizer": {"kind": "word", "vocabulary": 60},
        "model.task": task,
        "model.source": {"kind": "tokens", "vocabulary": 60},
        "model.encoder": to_dict(preset("word2vec"))["encoder"],
        "model.head": {"kind": "bag", "window": 2},
        "train.steps": 60,
        "train.schedule": {"kind": "cosine", "lr": 0.03, "warmup": 4},
        "train.label_smoothing": 0.0,
        "train.ema": 0.0,
        "train.average": 1,
        "train.save_every": 100,
        "validation.every_steps": 100,
    }
    return make_small_run("masked_lm", write_corpus(folder / "corpus"), changes)


@pytest.mark.parametrize("task", TASKS)
def test_words_of_the_same_contexts_become_neighbours(task: str, tmp_path: Path) -> None:
    write_sentences(tmp_path / "sentences.txt")
    fit(make_run(task, tmp_path), tmp_path / "run")
    vectors = load_token_vectors(tmp_path / "run")
    for group in (ANIMALS, TOOLS):
        nearest = [neighbor.text for neighbor in vectors.find_neighbors([group[0]], n_best=3)]
        assert set(nearest) == set(group[1:])
    assert isinstance(load(tmp_path / "run"), Embedder)


def test_layers_and_the_head_of_word2vec_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="must predict"):
        preset("word2vec", {"encoder.layers": 1})
    with pytest.raises(ConfigError, match="reads embeddings"):
        preset("tiny", {"encoder.layers": 0})
    with pytest.raises(ConfigError, match="head"):
        preset("encoder-tiny", {"task": "cbow"})


def test_the_preset_without_a_recipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n" * 2000, encoding="utf-8")
    with pytest.raises(RegardError, match="run file"):
        configure(DocumentsConfig(path=str(tmp_path / "a.txt")), preset="word2vec")


@pytest.mark.parametrize("task", TASKS)
def test_a_word_has_the_vector_of_its_token(task: str) -> None:
    """The vectors of cls and sep are random: training has none of them."""
    tokenizer = learn(["a dog and a cat"], WordLevelConfig(vocabulary=20))
    settings = preset("word2vec", {"source.vocabulary": tokenizer.size, "task": task})
    assert isinstance(settings, EncoderOnlyConfig)
    model = build(settings, seed=1)
    embedder = Embedder(model, TokenizerPair.joint(tokenizer), settings)
    (token,) = tokenizer.encode_ids(["dog"])[0]
    assert isinstance(model.source, TokenInput)
    expected = model.source.embedding.weight[token].detach().numpy()
    vectors = embedder.embed(["dog", "", "dog cat"])
    cosine = vectors[0] @ expected / np.linalg.norm(vectors[0]) / np.linalg.norm(expected)
    assert cosine == pytest.approx(1, abs=1e-5)
    assert not vectors[1].any()
