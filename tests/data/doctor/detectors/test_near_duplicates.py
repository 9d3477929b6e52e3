"""Near-duplicates, and lines that only resemble each other."""

import random

from regard.data.doctor.detectors.near_duplicates import MinHashes


def make_random_sentence(rng: random.Random, words: int) -> str:
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 9))) for _ in range(words))


def test_near_duplicates_are_found_and_unrelated_texts_are_not() -> None:
    rng = random.Random(1)
    texts = [make_random_sentence(rng, 40) for _ in range(400)]
    changed = []
    for text in texts[:100]:
        words = text.split()
        words[rng.randrange(40)] = "other"
        changed.append(" ".join(words))
    min_hashes = MinHashes()
    min_hashes.add(texts)
    min_hashes.add(changed)
    rows, earlier = min_hashes.find_near_duplicates()
    earlier_row = dict(zip(rows.tolist(), earlier.tolist(), strict=True))
    correct = [row for row in range(100) if earlier_row.get(400 + row) == row]
    assert len(correct) >= 95
    assert set(earlier_row) <= set(range(400, 500))


def test_lines_that_share_three_quarters_are_not_near_duplicates() -> None:
    rng = random.Random(2)
    texts = [make_random_sentence(rng, 40) for _ in range(100)]
    min_hashes = MinHashes()
    min_hashes.add(texts)
    min_hashes.add([f"{text[: len(text) * 3 // 4]} {make_random_sentence(rng, 10)}" for text in texts])
    assert len(min_hashes.find_near_duplicates()[0]) <= 5


def test_near_duplicates_must_be_long_enough_to_be_near() -> None:
    min_hashes = MinHashes()
    min_hashes.add(["Thank you, sir.", "Thank you, Sir!", ""])
    assert min_hashes.find_near_duplicates()[0].tolist() == []
    assert MinHashes().find_near_duplicates()[0].tolist() == []
