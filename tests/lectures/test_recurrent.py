"""Attention over recurrent states as the decks write it: e_ij, alpha_ij, c_i as plain tensors."""

import torch

from regard.config.codec import preset
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.record import Record
from regard.nn.recurrent import RecurrentLayer
from regard.nn.scores import Additive

SOURCE, TARGET, WIDTH = 5, 4, 6


def small_model(**changes: object) -> EncoderDecoder:
    settings = preset("rnnsearch", {"d_model": WIDTH, "source.vocabulary": 20} | changes)
    model = build(settings, seed=1).eval()
    assert isinstance(model, EncoderDecoder)
    return model


def layer_of(model: EncoderDecoder) -> RecurrentLayer:
    layer = model.decoder.layers[0]
    assert isinstance(layer, RecurrentLayer)
    return layer


@torch.no_grad()
def test_bahdanau_step_by_step() -> None:
    # Deck 004: e_ij = v tanh(W s_(i-1) + U h_j), alpha_ij = softmax_j(e_ij), c_i = sum_j alpha_ij h_j, and then
    # s_i = f(s_(i-1), y_(i-1), c_i).
    model = small_model(**{"decoder.cross.score.hidden": 7})
    source, target = torch.randint(20, (1, SOURCE)), torch.randint(20, (1, TARGET))
    record = Record()
    output = model.hidden_states(source, target, record=record)[0]
    (h,), _ = model.encode(source)  # (S, D)
    layer = layer_of(model)
    assert layer.cross is not None
    assert layer.combine is not None
    score = layer.cross.score
    assert isinstance(score, Additive)
    w, u, v = score.query_weight[0], score.key_weight[0], score.vector[0]
    cell = torch.nn.GRUCell(2 * WIDTH, WIDTH)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).copy_(getattr(layer.cell, f"{name}_l0"))
    s = torch.zeros(WIDTH)
    for i, y in enumerate(model.target(target)[0][0]):
        e = torch.stack([v @ torch.tanh(w @ s + u @ h[j]) for j in range(SOURCE)])
        alpha = torch.exp(e) / torch.exp(e).sum()
        c = sum(alpha[j] * h[j] for j in range(SOURCE))
        assert isinstance(c, torch.Tensor)
        s = cell(torch.cat((y, c))[None], s[None])[0]
        torch.testing.assert_close(record.weights("decoder.0.cross")[0, 0, i], alpha, atol=2e-5, rtol=0)
        torch.testing.assert_close(record.attention["decoder.0.cross"].output[0, 0, i], c, atol=2e-5, rtol=0)
        torch.testing.assert_close(output[i], torch.tanh(layer.combine(torch.cat((c, s)))), atol=2e-5, rtol=0)


@torch.no_grad()
def test_luong_attends_with_the_new_state() -> None:
    model = small_model(**{"decoder.cross.kind": "luong"})
    source, target = torch.randint(20, (1, SOURCE)), torch.randint(20, (1, TARGET))
    (output,), (h,) = model.hidden_states(source, target), model.encode(source)[0]
    layer = layer_of(model)
    assert layer.cross is not None
    assert layer.combine is not None
    weight = layer.cross.score.weight[0]  # type: ignore[index]
    for i, s in enumerate(layer.cell(model.target(target)[0])[0][0]):
        alpha = torch.stack([s @ weight @ h[j] for j in range(SOURCE)]).softmax(dim=0)
        expected = torch.tanh(layer.combine(torch.cat((alpha @ h, s))))
        torch.testing.assert_close(output[i], expected, atol=2e-5, rtol=0)


@torch.no_grad()
def test_without_attention_one_vector_is_all_that_the_decoder_knows_of_the_source() -> None:
    """The bottleneck: states before the last may be anything, and the output does not change."""
    model = small_model(**{"encoder.bidirectional": False, "decoder.cross.kind": "fixed_vector"})
    source, target = torch.randint(20, (2, SOURCE)), torch.randint(20, (2, TARGET))
    valid = torch.tensor([[True] * SOURCE, [True] * (SOURCE - 2) + [False] * 2])
    memory, _ = model.encode(source, valid)
    changed = torch.randn_like(memory)
    changed[0, -1], changed[1, -3] = memory[0, -1], memory[1, -3]  # the last valid states
    assert torch.equal(model.decode(target, (memory, valid)), model.decode(target, (changed, valid)))
    attentive = small_model()
    assert not torch.allclose(attentive.decode(target, (memory, valid)), attentive.decode(target, (changed, valid)))
