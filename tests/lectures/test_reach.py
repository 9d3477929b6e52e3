"""Feed-forward layers connect no words; self-attention connects all."""

from regard.lectures.reach import change_first


def test_only_attention_reaches_other_words() -> None:
    changes = change_first()
    assert changes["feedforward"][0] > 0.1
    assert not changes["feedforward"][1:].any()
    assert changes["attention"].min() > 0.01
