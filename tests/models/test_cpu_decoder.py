"""`CpuDecoder.step` equals the model's own step, also after reordering and cropping the state."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.config.codec import MODEL_FILES
from regard.models import cpu_decoder
from regard.models.build import build
from regard.models.cpu_decoder import CpuDecoder, LazyCpuDecoder
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.kv_cache import DecodingState
from tests.matrix.models import Choice, choice_name, decoding_choices, make_model, random_tokens

ROWS, SOURCE, CLOSE = 3, 7, 3e-5
VALID = torch.arange(SOURCE) < torch.tensor([7, 4, 6])[:, None]
Model = EncoderDecoder | DecoderOnly

PARTS: dict[str, dict[str, Any]] = {
    "gated": {"feedforward": {"kind": "gated", "d_ff": 24, "activation": "silu", "bias": False}},
    "grouped": {"attention": {"heads": 4, "key_value_heads": 2, "key_dim": 6, "value_dim": 5}},
    "no-bias": {"attention": {"heads": 4, "bias": {"query": True, "key": False, "value": True, "output": False}}},
    "input-norm": {"input_norm": True, "norm": {"kind": "rms"}},
    "rotary": {"position": {"kind": "rotary"}, "attention": {"heads": 4, "key_value_heads": 1}},
}


def make_perturbed_model(settings: dict[str, Any]) -> Model:
    """Build a model in which no weight is 0 or 1."""
    model = build(MODEL_FILES.parse(settings), seed=1).eval()
    assert isinstance(model, EncoderDecoder | DecoderOnly)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.1)
    return model


def make_translator(**changes: Any) -> EncoderDecoder:
    stack = {
        "layers": 2,
        "norm_order": "pre",
        "final_norm": True,
        "position": {"kind": "sinusoidal"},
        "attention": {"heads": 4},
        "feedforward": {"kind": "plain", "d_ff": 24},
    } | changes
    cross = stack["attention"]
    settings = {
        "family": "encoder_decoder",
        "d_model": 16,
        "source": {"kind": "tokens", "vocabulary": 23},
        "target": {"kind": "tokens", "vocabulary": 23, "scale": True},
        "encoder": stack,
        "decoder": stack | {"cross": cross},
        "head": {"kind": "lm", "bias": True},
    }
    model = make_perturbed_model(settings)
    assert isinstance(model, EncoderDecoder)
    return model


def start_state(model: Model, capacity: int = 12) -> DecodingState:
    if isinstance(model, EncoderDecoder):
        return model.start(random_tokens(ROWS, SOURCE, seed=3), VALID, capacity=capacity)
    return model.start(capacity)


def assert_same_steps(model: Model, decoder: CpuDecoder) -> None:
    """Compare steps of one and several tokens, with rows as beams, moved, dropped and cropped."""
    cpu_state, model_state = start_state(model), start_state(model)

    def compare_step(rows: int, count: int) -> None:
        tokens = random_tokens(rows, count, seed=cpu_state.kv_cache.length)
        torch.testing.assert_close(decoder.step(tokens, cpu_state), model.step(tokens, model_state), atol=CLOSE, rtol=0)

    def reorder_both(*index: int) -> None:
        for state in (cpu_state, model_state):
            state.reorder(torch.tensor(index))

    compare_step(ROWS, 1)
    compare_step(ROWS, 2)
    reorder_both(0, 0, 1, 1, 2, 2)
    compare_step(6, 1)
    reorder_both(1, 0, 2, 2, 5, 4)
    compare_step(6, 1)
    reorder_both(4, 5, 2, 2)  # one sentence is dropped, another takes its rows
    compare_step(4, 1)
    reorder_both(3, 1, 0)  # rows no longer share a memory
    compare_step(3, 1)
    for state in (cpu_state, model_state):
        state.crop([3, 5, 4])
    compare_step(3, 1)
    reorder_both(2)
    compare_step(1, 1)


@torch.no_grad()
@pytest.mark.parametrize("choice", list(decoding_choices()), ids=choice_name)
def test_all_kinds_of_models(choice: Choice) -> None:
    model = make_model(choice)
    assert isinstance(model, EncoderDecoder | DecoderOnly)
    decoder = CpuDecoder(model)
    is_plain = (
        choice["score"] in ("dot", "scaled_dot") and choice.get("feedforward") != "swiglu"
    )  # swiglu comes with query and key norms; recurrent layers have no position
    assert decoder.is_supported == (is_plain and choice.get("position", "alibi") not in ("alibi", "relative"))
    if decoder.is_supported:
        assert_same_steps(model, decoder)


@torch.no_grad()
@pytest.mark.parametrize("part", PARTS)
def test_all_kinds_of_parts(part: str) -> None:
    model = make_translator(**PARTS[part])
    decoder = CpuDecoder(model)
    assert decoder.is_supported
    assert_same_steps(model, decoder)


@torch.no_grad()
def test_unsupported_models_use_their_own_step() -> None:
    model = make_translator(window=3)
    assert not CpuDecoder(model).is_supported
    assert_same_steps(model, CpuDecoder(model))
    adapted = make_translator()
    adapted.decoder.layers[1].attention.key = nn.utils.parametrizations.weight_norm(nn.Linear(16, 16))
    assert not CpuDecoder(adapted).is_supported
    assert_same_steps(adapted, CpuDecoder(adapted))


@torch.no_grad()
def test_learned_positions_end_with_an_error_and_others_continue() -> None:
    model = make_translator(position={"kind": "learned", "length": 8})
    decoder, state = CpuDecoder(model), start_state(model)
    for _ in range(8):
        decoder.step(random_tokens(ROWS, 1, seed=1), state)
    with pytest.raises(Exception, match="learned positions end at 8"):
        decoder.step(random_tokens(ROWS, 1, seed=1), state)
    model = make_translator()
    decoder, cpu_state, model_state = CpuDecoder(model), start_state(model, 300), start_state(model, 300)
    for position in range(300):  # beyond the first position table
        token = random_tokens(ROWS, 1, seed=position)
        torch.testing.assert_close(decoder.step(token, cpu_state), model.step(token, model_state), atol=CLOSE, rtol=0)


@pytest.mark.parametrize("training", [False, True])
def test_changed_weights_take_effect_at_the_next_use(training: bool) -> None:
    for change in (_train_step, _load, _assign, _write_element, _write_data, _replace_module, _convert_to_float64):
        model = make_translator()
        decoder, tokens = LazyCpuDecoder(), random_tokens(ROWS, 2, seed=1)
        before = _prepared_step(model, decoder, tokens, training)
        change(model)
        after = _prepared_step(model, decoder, tokens, training)
        assert after.dtype != before.dtype or not torch.allclose(after, before, atol=CLOSE, rtol=3e-5)


def _prepared_step(model: EncoderDecoder, decoder: LazyCpuDecoder, tokens: Tensor, training: bool) -> Tensor:
    """Logits of the last step inside `prepared`, which must be those of the model's own step."""
    model.train(training)
    with decoder.prepared(model), torch.no_grad():
        cpu_state, model_state = start_state(model), start_state(model)
        logits = torch.empty(0)
        for token in tokens.split(1, dim=1):  # two steps: with a single key, queries change nothing
            logits = decoder.step(token, cpu_state)
            torch.testing.assert_close(logits, model.step(token, model_state), atol=CLOSE, rtol=3e-5)
    assert all(module.training == training for module in model.modules())
    model.eval()
    return logits


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for each packed matrix."""
    packs, pack = [], cpu_decoder._pack

    def counted_pack(parts: Any, biases: Any) -> Any:
        packs.append(parts)
        return pack(parts, biases)

    monkeypatch.setattr(cpu_decoder, "_pack", counted_pack)
    return packs


def test_nested_blocks_share_one_copy_and_restore_the_mode_last(packs: list[Any]) -> None:
    model = make_translator().train()
    decoder = LazyCpuDecoder()
    with decoder.prepared(model):
        count = len(packs)
        model.decoder.layers[0].feedforward.train()
        with decoder.prepared(model):
            assert len(packs) == count > 0
            assert not model.decoder.layers[0].feedforward.training
        assert not model.training
    assert all(module.training for module in model.modules())
    with pytest.raises(AssertionError), torch.no_grad():
        decoder.step(random_tokens(ROWS, 1, seed=1), start_state(model))


@torch.no_grad()
def _scale_weight(linear: nn.Linear) -> None:
    linear.weight.mul_(2)


def _replace_weight(linear: nn.Linear) -> None:
    linear.weight = nn.Parameter(linear.weight.detach() * 2)


def _replace_data(linear: nn.Linear) -> None:
    linear.weight.data = linear.weight.data * 2


def _transpose_data(linear: nn.Linear) -> None:
    linear.weight.data = linear.weight.data.t()  # the same address


@pytest.mark.parametrize("change", [_scale_weight, _replace_weight, _replace_data, _transpose_data])
def test_nested_block_packs_only_changed_weights(change: Callable[[nn.Linear], None], packs: list[Any]) -> None:
    model = make_translator()
    decoder, tokens = LazyCpuDecoder(), random_tokens(ROWS, 2, seed=1)
    with decoder.prepared(model):
        before = _prepared_step(model, decoder, tokens, training=False)
        packs.clear()
        change(model.decoder.layers[1].attention.output)
        after = _prepared_step(model, decoder, tokens, training=False)
    assert len(packs) == 1
    assert not torch.allclose(after, before, atol=CLOSE, rtol=3e-5)


def test_nested_block_reads_changed_attributes() -> None:
    model = make_translator()
    decoder, tokens = LazyCpuDecoder(), random_tokens(ROWS, 2, seed=1)
    with decoder.prepared(model):
        before = _prepared_step(model, decoder, tokens, training=False)
        model.decoder.layers[1].feedforward.activation = torch.tanh
        after = _prepared_step(model, decoder, tokens, training=False)
    assert not torch.allclose(after, before, atol=CLOSE, rtol=3e-5)


def test_adapters_in_one_outer_block_do_not_keep_old_copies() -> None:
    model = make_translator()
    decoder, count = LazyCpuDecoder(), 0
    with decoder.prepared(model):
        for _ in range(3):
            _scale_weight(model.decoder.layers[1].attention.output)
            with decoder.prepared(model):
                assert decoder._decoder is not None
                count = len(decoder._decoder.copies)
        assert count == 1 + 6 * len(model.decoder.layers)


def test_weights_of_inference_mode_are_packed_for_every_block() -> None:
    with torch.inference_mode():
        model = make_translator()
        decoder, tokens = LazyCpuDecoder(), random_tokens(ROWS, 2, seed=1)
        with decoder.prepared(model):
            before = _prepared_step(model, decoder, tokens, training=False)
            model.decoder.layers[1].attention.output.weight.mul_(2)
            after = _prepared_step(model, decoder, tokens, training=False)
    assert not torch.allclose(after, before, atol=CLOSE, rtol=3e-5)


def _train_step(model: nn.Module) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    loss: Tensor = model(random_tokens(ROWS, SOURCE, seed=3), random_tokens(ROWS, 4, seed=4)).sum()
    loss.backward()
    optimizer.step()


def _load(model: nn.Module) -> None:
    model.load_state_dict({name: tensor + 1 for name, tensor in model.state_dict().items()})


def _assign(model: nn.Module) -> None:
    model.load_state_dict({name: tensor + 1 for name, tensor in model.state_dict().items()}, assign=True)


@torch.no_grad()
def _write_element(model: nn.Module) -> None:
    next(model.get_submodule("decoder").parameters())[-1, -1] = 7.0


def _write_data(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(1.001)


def _replace_module(model: nn.Module) -> None:
    model.get_submodule("decoder.layers.1.feedforward").register_module("down", nn.Linear(24, 16))


def _convert_to_float64(model: nn.Module) -> None:
    model.double()
