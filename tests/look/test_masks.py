"""Masks: leaks of future tokens are found."""

import pytest
import torch

from regard.look.look import Look
from regard.look.masks import check_leak
from regard.nn.masks import no_mask, same_document
from regard.tasks.replay import ReplayInput
from tests.look.factories import IDS
from tests.tasks.factories import make_decoder_only, make_generator_settings, make_tokenizers


def test_leak_of_a_single_row_is_found() -> None:
    """Rows 0 and 1 see their own document only; row 2, the last one before the change, sees the future."""
    model = make_decoder_only(make_generator_settings())
    model.mask = same_document(torch.tensor([[0, 0, 1, 1, 1, 1]]))
    leak = check_leak(ReplayInput(model, target=IDS))
    assert leak is not None
    assert (leak["prefix"], leak["replaced"]) == (3, 3)
    with torch.no_grad():
        before, after = (
            model(torch.tensor([ids]))[0].log_softmax(-1) for ids in (IDS, IDS[:3] + [token - 1 for token in IDS[3:]])
        )
    changes = (before - after).abs().amax(dim=1)
    assert changes[:2].max() == 0
    assert changes[2] > 0.01
    assert leak["change"] == pytest.approx(changes[2].item(), abs=1e-5)
    assert leak["later_change"] == pytest.approx(changes[3:].max().item(), abs=1e-5)


def test_a_leak_is_found() -> None:
    model = make_decoder_only(make_generator_settings())
    model.mask = no_mask()
    leak = check_leak(ReplayInput(model, target=make_tokenizers().source.encode("Two young men.").ids))
    assert leak is not None
    assert leak["change"] > 0.01


def test_future_tokens_do_not_leak(looks: dict[str, Look]) -> None:
    for task in ("translation", "causal_lm"):
        views = {view["group"]: view for view in looks[task].document["masks"]}
        leak = views["decoder.self"]["leak"]
        assert leak is not None
        assert leak["change"] == 0.0
        assert leak["later_change"] > 0.01
        assert views["decoder.self"]["terms"] == [{"kind": "causal"}]
