"""Inputs unlike the training data."""

import random

from regard.text.familiarity import LONG, UNLIKE, Familiarity


def make_texts(count: int, seed: int, start: int = 0) -> list[list[int]]:
    """Return random walks over 20 tokens."""
    generator, texts = random.Random(seed), []
    for _ in range(count):
        text = [start + generator.randrange(20)]
        while len(text) < generator.randint(5, 15):
            text.append(start + (text[-1] - start + generator.choice((1, 1, 1, 2, 5))) % 20)
        texts.append(text)
    return texts


def test_alarms_fire_on_other_tokens_other_orders_and_long_texts() -> None:
    familiarity = Familiarity.count(make_texts(500, 0), 50).with_limits(make_texts(500, 1))
    held_out = make_texts(500, 2)
    assert sum(bool(familiarity.find_alarms(text)) for text in held_out) <= 25
    assert all(UNLIKE in familiarity.find_alarms(text) for text in make_texts(100, 3, start=20))
    backwards = [familiarity.find_alarms(text[::-1]) for text in held_out]
    assert sum(UNLIKE in alarms for alarms in backwards) > 300
    assert LONG in familiarity.find_alarms([token for text in held_out[:5] for token in text])


def test_surprise_of_an_empty_text_and_an_unknown_token_is_finite() -> None:
    familiarity = Familiarity.count([[1, 2]], 5)
    assert familiarity.surprise([]) == 0
    assert 0 < familiarity.surprise([1, 2]) < familiarity.surprise([4, 4]) < 20


def test_familiarity_survives_json() -> None:
    familiarity = Familiarity.count(make_texts(50, 0), 50).with_limits(make_texts(50, 1))
    copy = Familiarity.model_validate_json(familiarity.model_dump_json())
    assert copy == familiarity
    assert copy.surprise([1, 2, 3]) == familiarity.surprise([1, 2, 3])
