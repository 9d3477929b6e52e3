"""Embeddings that start from the vectors of another model, matched by the text of tokens."""

from pathlib import Path
from typing import Any

import pytest
import torch

from regard.base.errors import ConfigError, RegardError
from regard.config.codec import preset
from regard.config.model import EncoderDecoderConfig
from regard.config.tokenizers import BpeConfig, ByteBpeConfig, WordLevelConfig
from regard.models.build import build
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from regard.tasks.token_vectors import load_token_vectors
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.events import Event, Message
from regard.training.initial_vectors import copy_vectors
from regard.training.run import fit, resume
from tests.training.runs import make_sentences, make_small_run, write_corpus

EMBEDDING = "source.embedding.weight"
STILL = {
    "train.schedule": {"kind": "constant", "lr": 1e-12},
    "train.steps": 2,
    "validation.every_steps": 2,
    "tokenizer.vocabulary": 360,
}


def write_vectors(folder: Path, width: int = 16) -> Path:
    """Write a word2vec model with random vectors and a tokenizer of words."""
    tokenizer = learn(make_sentences(50), WordLevelConfig(vocabulary=60))
    settings = preset("word2vec", {"d_model": width, "source.vocabulary": tokenizer.size})
    write_model(folder, settings, TokenizerPair.joint(tokenizer), get_weights(build(settings, seed=7)), "card")
    return folder


def find_row(tokenizer: Tokenizer, text: str) -> int:
    (token,) = tokenizer.encode_ids([text])[0]
    return token


def test_a_run_starts_from_the_vectors_of_another_model(tmp_path: Path) -> None:
    vectors, events = write_vectors(tmp_path / "vectors"), list[Event]()
    files = write_corpus(tmp_path / "corpus")
    run = make_small_run("translation", files, {**STILL, "model.source.vectors": str(vectors)})
    plain = make_small_run("translation", files, STILL)
    fit(run, tmp_path / "run", listeners=[events.append])
    fit(plain, tmp_path / "plain")
    trained, untouched, theirs = (
        read_model(tmp_path / "run"),
        read_model(tmp_path / "plain"),
        load_token_vectors(vectors),
    )
    assert isinstance(trained.settings, EncoderDecoderConfig)
    assert trained.settings == untouched.settings  # the folder of vectors is not part of the model
    tokenizer = trained.tokenizers.source
    found = [
        word for word in ("the", "dog", "house", "likes", "under") if len(tokenizer.encode_ids([f" {word}"])[0]) == 1
    ]
    assert found
    rows = [find_row(tokenizer, f" {word}") for word in found]
    theirs_rows = torch.from_numpy(theirs.vectors)[[find_row(theirs.tokenizer, word) for word in found]]
    embedding, before = (get_weights(stored.model)[EMBEDDING] for stored in (trained, untouched))
    torch.testing.assert_close(embedding[rows], theirs_rows, rtol=0, atol=1e-6)
    others = [tokenizer.specials.bos, find_row(tokenizer, "z")]
    torch.testing.assert_close(embedding[others], before[others], rtol=0, atol=1e-6)  # as drawn
    changed = int((embedding - before).abs().amax(dim=1).gt(1e-3).sum())
    (message,) = [event.text for event in events if isinstance(event, Message) and "The vectors of" in event.text]
    assert f"initialize {changed:,} of {tokenizer.size:,} tokens" in message
    assert str(vectors) in (tmp_path / "run" / "best" / "README.md").read_text()
    (vectors / "model.toml").unlink()  # a resumed run needs the folder no more
    resume(tmp_path / "run", more=1)


@pytest.mark.parametrize("kind", [ByteBpeConfig, BpeConfig])
def test_words_are_found_whatever_marks_their_spaces(kind: type[ByteBpeConfig | BpeConfig], tmp_path: Path) -> None:
    tokenizer = learn(make_sentences(200), kind(vocabulary=360 if kind is ByteBpeConfig else 90))
    settings = preset(
        "tiny", {"d_model": 16, "encoder.layers": 1, "decoder.layers": 1, "source.vocabulary": tokenizer.size}
    )
    folder = write_vectors(tmp_path / "vectors")
    settings = settings.model_copy(update={"source": settings.source.model_copy(update={"vectors": str(folder)})})
    model, theirs = build(settings, seed=1), load_token_vectors(folder)
    before = get_weights(model)[EMBEDDING].clone()
    copy_vectors(model, settings, TokenizerPair.joint(tokenizer), lambda _: None)
    embedding = get_weights(model)[EMBEDDING]
    ids = tokenizer.encode_ids([" ".join(make_sentences(20))])[0]
    known = set(theirs.tokenizer.vocabulary)
    texts = zip(ids[1:], tokenizer.token_texts(ids[1:]), strict=True)
    whole = {token: text.strip() for token, text in texts if " " in text and text.strip() in known}
    assert whole
    for token, word in whole.items():
        expected = torch.from_numpy(theirs.vectors)[find_row(theirs.tokenizer, word)]
        assert torch.equal(embedding[token], expected)
    inner = [token for token, text in enumerate(tokenizer.token_texts(range(tokenizer.size))) if text == "o"]
    assert torch.equal(embedding[inner], before[inner])  # a part of a word is no word


def test_what_cannot_start_from_vectors_is_refused_first(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    folder = write_vectors(tmp_path / "wide", width=20)
    run = make_small_run("causal_lm", files, {**STILL, "model.tokens.vectors": str(folder)})
    with pytest.raises(RegardError, match="have 20 dimensions, but the model has d_model = 16"):
        fit(run, tmp_path / "run")
    assert not (tmp_path / "run" / "shards").exists()
    changes: dict[str, Any] = {"finetune": {"parent": "parent"}, "tokenizer": {"kind": "parent"}}
    with pytest.raises(ConfigError, match="start from those of the parent"):
        make_small_run("causal_lm", files, {"model.tokens.vectors": "folder", **changes})
