"""Each of the five dropouts acts in training, alone, and rests otherwise."""

import pytest
import torch

from regard.base.errors import ShapeError
from regard.config.codec import MODEL_FILES
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from tests.matrix.models import WIDTH, make_model, random_tokens
from tests.models.factories import CLOSE, MEL, STACK, TOKENS

CHOICE = {
    "family": "encoder_decoder",
    "position": "sinusoidal",
    "norm_order": "pre",
    "norm": "layer",
    "heads": "mha",
    "feedforward": "relu",
}


@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
@pytest.mark.parametrize("place", ["token", "embedding", "sublayer", "attention", "feedforward"])
def test_a_dropout_alone(place: str, score: str, norm_order: str) -> None:
    choice = CHOICE | {"score": score, "norm_order": norm_order}
    model = make_model(choice, dropout={place: 0.5})
    assert isinstance(model, EncoderDecoder)
    source, target = random_tokens(2, 6, seed=1), random_tokens(2, 5, seed=2)
    plain = make_model(choice)
    eval_output = model(source, target)
    assert torch.equal(eval_output, plain(source, target))
    model.train()
    torch.manual_seed(0)
    first, second = model(source, target), model(source, target)
    assert not torch.equal(first, eval_output)
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(first, model(source, target))
    assert torch.equal(plain.train()(source, target), eval_output)  # without a rate, training is the same


@pytest.mark.parametrize("place", ["token", "embedding", "sublayer", "attention", "feedforward"])
def test_both_stacks_drop(place: str) -> None:
    model = make_model(CHOICE | {"score": "scaled_dot"}, dropout={place: 0.5})
    assert isinstance(model, EncoderDecoder)
    source, target = random_tokens(2, 6, seed=1), random_tokens(2, 5, seed=2)
    memory = model.encode(source)
    model.train()
    assert not torch.equal(model.encode(source)[0], memory[0])
    assert not torch.equal(model.decode(target, memory), model.decode(target, memory))


def test_a_token_is_dropped_as_a_whole_and_its_position_stays() -> None:
    model = make_model(CHOICE | {"score": "scaled_dot"}, dropout={"token": 0.25})
    assert isinstance(model, EncoderDecoder)
    stack = model.encoder.train()
    places = torch.arange(200)[None]
    positions = stack.position.on_input(torch.zeros(8, 200, WIDTH), places)
    embedded = stack._embed(torch.ones(8, 200, WIDTH), places) - positions
    torch.testing.assert_close(embedded, embedded[..., :1].expand_as(embedded))
    is_kept = embedded[..., 0] > 0.5
    assert 0.2 < 1 - is_kept.double().mean() < 0.3
    torch.testing.assert_close(embedded[..., 0], is_kept / 0.75, atol=1e-4, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("stem", ["linear", "convolution"])
def test_audio_is_transcribed_by_an_encoder_decoder(stem: str) -> None:
    decoder = STACK | {"cross": {"heads": 2}}
    table = {"family": "encoder_decoder", "d_model": 12, "task": "transcription", "encoder": STACK, "decoder": decoder}
    model = build(MODEL_FILES.parse(table | {"source": MEL | {"stem": stem}, "target": TOKENS}), seed=0).eval()
    assert isinstance(model, EncoderDecoder)
    mel, target = torch.randn(2, 7, 5), torch.tensor([[1, 2, 3], [4, 5, 6]])
    valid = torch.arange(7) < torch.tensor([[7], [5]])  # 7 frames fill four vectors, 5 frames three
    batched = model(mel, target, valid)
    alone = model(mel[1:, :5], target[1:])
    torch.testing.assert_close(batched[1:], alone, atol=CLOSE, rtol=0)
    with pytest.raises(ShapeError, match="4 mel bins"):
        model(mel[..., :4], target)
