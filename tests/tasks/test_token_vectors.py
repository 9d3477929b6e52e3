"""Neighbors and analogies of the vectors of an embedding."""

import numpy as np
import pytest

from regard.base.errors import RegardError
from regard.config.tokenizers import ByteBpeConfig, WordLevelConfig
from regard.tasks.token_vectors import TokenVectors
from regard.text.learn import learn

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
