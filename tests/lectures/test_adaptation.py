"""Ways to tune the model of "it" to the opposite rule."""

import pytest

from regard.lectures import adaptation


def test_the_other_adjective_names_the_other_noun() -> None:
    assert adaptation.swap_adjective("it was too tired") == "it was too wide"
    assert adaptation.swap_adjective(adaptation.swap_adjective("it was too busy")) == "it was too busy"


def test_new_adapters_keep_the_old_rule_and_train_few_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptation, "STEPS", 0)
    for rank in (1, 4):
        assert adaptation.tune(adaptation.adapt(rank)) == (rank * 1024, [0.0])
    layer, shares = adaptation.tune(adaptation.train_last())
    assert (layer, shares) == (33_472, [0.0])
    assert adaptation.tune(lambda _: lambda _: True)[0] > 2 * layer


def test_adapters_learn_the_opposite_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptation, "STEPS", 100)
    assert adaptation.tune(adaptation.adapt(8))[1][-1] > 0.1
