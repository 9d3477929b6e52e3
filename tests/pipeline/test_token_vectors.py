"""Neighbors and analogies of the vectors of an embedding."""

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.app import app
from regard.config.run import ByteBpeConfig, WordLevelConfig
from regard.pipeline.token_vectors import TokenVectors, load_token_vectors
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.text.learn import learn
from tests.commands import run_command
from tests.pipeline.factories import make_encoder_decoder, make_tokenizers, make_translator_settings

WORDS = ["king", "queen", "man", "woman", "apple"]


def make_token_vectors() -> TokenVectors:
    """Vectors in which king - man + woman is nearest to queen: (royal, male, fruit)."""
    tokenizer = learn([" ".join(WORDS)], WordLevelConfig(vocabulary=20))
    vectors = np.zeros((tokenizer.size, 3), np.float32)
    places = {"king": (1, 1, 0), "queen": (1.1, -1, 0), "man": (0, 1, 0), "woman": (0, -1, 0), "apple": (0, 0.1, 2)}
    for word, vector in places.items():
        vectors[tokenizer.encode_ids([word])[0][0]] = vector
    return TokenVectors(vectors, tokenizer)


def test_an_analogy_is_solved_by_a_sum_of_directions() -> None:
    vectors = make_token_vectors()
    found = vectors.find_neighbors(["king", "woman"], ["man"])
    assert [neighbor.text for neighbor in found] == ["queen", "apple"]  # no given word, no special token
    unit = {word: vectors.vectors[vectors.encode(word)[0]] for word in WORDS}
    unit = {word: vector / np.linalg.norm(vector) for word, vector in unit.items()}
    point = unit["king"] + unit["woman"] - unit["man"]
    assert found[0].similarity == pytest.approx(unit["queen"] @ point / np.linalg.norm(point), abs=1e-6)
    assert vectors.find_rank("queen", ["king", "woman"], ["man"]) == 1
    assert vectors.find_rank("apple", ["king", "woman"], ["man"]) == 2


def test_a_word_is_looked_up_with_the_space_before_it() -> None:
    """Inside a text, tokens of byte-level BPE begin with their space; neither form is a neighbor of itself."""
    tokenizer = learn(["a dog and a dog or a cat"] * 20, ByteBpeConfig(vocabulary=275))
    vectors = TokenVectors(np.random.default_rng(1).normal(size=(tokenizer.size, 8)).astype(np.float32), tokenizer)
    (inside,) = tokenizer.encode_ids([" dog"])[0]
    assert vectors.encode("dog") == [inside]
    assert len(tokenizer.encode_ids(["dog"])[0]) > 1
    assert "dog" not in [neighbor.text.strip() for neighbor in vectors.find_neighbors(["dog"], n_best=tokenizer.size)]


def test_unknown_words_and_ranks_of_given_words_are_refused() -> None:
    vectors = make_token_vectors()
    with pytest.raises(RegardError, match="vocabulary"):
        vectors.find_neighbors(["emperor"])
    with pytest.raises(RegardError, match="vocabulary"):
        vectors.find_neighbors([""])
    with pytest.raises(RegardError, match="given"):
        vectors.find_rank("king", ["king"])


def test_the_command_reads_the_embedding_of_either_side(tmp_path: Path) -> None:
    tokenizers = make_tokenizers()
    settings = make_translator_settings()
    model = make_encoder_decoder(settings)
    write_model(tmp_path / "model", settings, tokenizers, get_weights(model), "# Card\n")
    source = load_token_vectors(tmp_path / "model")
    weight = get_weights(model)["source.embedding.weight"]
    assert np.array_equal(source.vectors, weight.numpy())
    ids = source.encode("Mädchen")
    mean = torch.nn.functional.normalize(weight, dim=1)[ids].mean(dim=0)
    expected = torch.nn.functional.cosine_similarity(mean[None], weight).numpy()
    best = source.find_neighbors(["Mädchen"], n_best=1)[0]
    assert best.similarity == pytest.approx(expected[best.token], abs=1e-6)
    result = CliRunner().invoke(
        app, ["embed", str(tmp_path / "model"), "Mädchen", "--neighbors", "--target", "--n-best", "3"]
    )
    assert result.exit_code == 0
    assert f"{best.similarity:.4f}" in result.stdout
    assert len(ids) > 1
    assert f"is {len(ids)} tokens" in result.stderr

    with pytest.raises(RegardError, match="several tokens"):
        source.find_rank("Mädchen", ["men"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("king", "--minus", "man"), "--minus and --target need --neighbors"),
        (("king", "--neighbors", "--output", "vectors.npy"), "not --output"),
        (("--neighbors",), "needs a word"),
    ],
)
def test_embed_command_refuses_options_without_neighbors(
    options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "model.toml").touch()
    done = run_command("embed", str(tmp_path), *options)
    assert done.code == 1
    assert message in done.errors
