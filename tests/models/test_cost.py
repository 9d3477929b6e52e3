"""Predicted costs against what torch counts."""

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from regard.config.codec import MODEL_FILES, preset
from regard.models.build import build
from regard.models.cost import cost
from regard.models.cpu_decoder import CpuDecoder
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from tests.matrix.models import OPTIONS, Choice, choice_name, list_recurrent_choices, make_settings, random_tokens

BATCH, SOURCE, TARGET = 3, 11, 7
BASE = {"position": "rotary", "norm_order": "pre", "norm": "layer"}
CHOICES = [
    BASE | {"family": family, "score": score, "heads": "gqa", "feedforward": feedforward}
    for family in OPTIONS["family"]
    for score, feedforward in zip(OPTIONS["score"], ["relu", "gelu", "swiglu", "relu", "swiglu"], strict=True)
]
# By default the scores of LSTMs and GRUs only: each score in both of its forms.
RECURRENT_CHOICES = [
    pytest.param(
        choice,
        marks=pytest.mark.slow if choice["cell"] == "rnn" and choice["score"] != "none" else (),
        id=choice_name(choice),
    )
    for choice in list_recurrent_choices()
]


def sizes(family: str) -> dict[str, int]:
    source = 0 if family == "decoder_only" else SOURCE
    target = 0 if family == "encoder_only" else TARGET
    return {"batch_size": BATCH, "source": source, "target": target}


def run(model: nn.Module, family: str) -> Tensor:
    match family:
        case "encoder_decoder":
            return model(random_tokens(BATCH, SOURCE, seed=1), random_tokens(BATCH, TARGET, seed=2))
        case "decoder_only":
            return model(random_tokens(BATCH, TARGET, seed=2))
        case _:
            return model(random_tokens(BATCH, SOURCE, seed=1))


def count_flops(action: Any) -> int:
    """FLOPs by torch's counter, which counts neither the CPU's fused attention nor its fused LSTM."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `flags` reads all settings of oneDNN, also those of other devices
        plain_lstm = torch.backends.mkldnn.flags(enabled=False)
        with sdpa_kernel(SDPBackend.MATH), plain_lstm, FlopCounterMode(display=False) as counter:
            action()
    return counter.get_total_flops()


@pytest.mark.parametrize(
    "choice", [*(pytest.param(choice, id=choice_name(choice)) for choice in CHOICES), *RECURRENT_CHOICES]
)
def test_flops_are_within_two_percent_of_what_torch_counts(choice: Choice) -> None:
    config, family = MODEL_FILES.parse(make_settings(choice)), choice["family"]
    model, expected = build(config, seed=0), cost(config, **sizes(choice["family"]))
    assert count_flops(lambda: run(model, family)) == pytest.approx(expected.forward.total(), rel=0.02)
    first_step = 0.06 if "cell" in choice else 0.02  # the state before the first of few tokens needs no gradient
    assert count_flops(lambda: run(model, family).sum().backward()) == pytest.approx(
        expected.training.total(), rel=first_step
    )
    if isinstance(model, EncoderDecoder | DecoderOnly):

        def decode() -> None:
            if isinstance(model, EncoderDecoder):
                state = model.start(random_tokens(BATCH, SOURCE, seed=1), capacity=TARGET)
            else:
                state = model.start(TARGET)
            for token in random_tokens(BATCH, TARGET, seed=2).split(1, dim=1):
                model.step(token, state)
            assert state.bytes == expected.kv_cache.total()  # exactly

        with torch.no_grad():
            assert count_flops(decode) == pytest.approx(expected.decoding.total(), rel=0.02)


def test_decoding_without_a_cache_starts_every_step_anew() -> None:
    config = MODEL_FILES.parse(make_settings(CHOICES[0]))
    model, expected = build(config, seed=0), cost(config, **sizes("encoder_decoder"))

    def decode() -> None:
        for length in range(1, TARGET + 1):
            model(random_tokens(BATCH, SOURCE, seed=1), random_tokens(BATCH, TARGET, seed=2)[:, :length])

    with torch.no_grad():
        assert count_flops(decode) == pytest.approx(expected.decoding_uncached.total(), rel=0.02)


@pytest.mark.parametrize("family", OPTIONS["family"])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("norm_order", OPTIONS["norm_order"])
@pytest.mark.parametrize("feedforward", OPTIONS["feedforward"])
def test_activations_are_near_what_autograd_keeps(
    family: str, dropout: float, norm_order: str, feedforward: str
) -> None:
    choice = BASE | {"family": family, "score": "scaled_dot", "heads": "gqa"}
    choice |= {"norm_order": norm_order, "feedforward": feedforward, "position": "sinusoidal"}
    rates = {"embedding": dropout, "sublayer": dropout, "feedforward": dropout}
    table = make_settings(choice, dropout=rates) | {"d_model": 64}
    for name in ("encoder", "decoder"):
        if name in table:
            table[name] |= {"attention": {"heads": 4, "key_value_heads": 2}}
            table[name]["feedforward"] = table[name]["feedforward"] | {"d_ff": 256}
    config = MODEL_FILES.parse(table)
    model = build(config, seed=0).train()
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved: dict[int, int] = {}

    def record_saved(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(record_saved, lambda tensor: tensor):
        logits = run(model, family)
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), logits.flatten(0, 1).argmax(-1))
    assert sum(saved.values()) == pytest.approx(cost(config, **sizes(family)).activations.total(), rel=0.1)
    del loss


def test_the_lectures_counts() -> None:
    """Quadratic in N and M, N x M across; one head costs what eight of an eighth cost; weights N^2 h."""
    config = preset("base")
    once, twice = cost(config, batch_size=1, source=100, target=50), cost(config, batch_size=1, source=200, target=50)
    assert twice.forward["source x source"] == 4 * once.forward["source x source"]
    assert twice.forward["target x source"] == 2 * once.forward["target x source"]
    assert twice.forward["target x target"] == once.forward["target x target"]
    assert once.forward["source x source"] == 6 * 4 * 100 * 100 * 512
    assert once.attention_weights["source x source"] == 4 * 8 * 100 * 100
    single = preset("base", {"encoder.attention.heads": 1})
    assert cost(single, batch_size=1, source=100, target=50).forward == once.forward
    # With the cache a step is linear in what is written, without it quadratic.
    long = cost(config, batch_size=1, source=10, target=400)
    assert long.decoding["target x target"] < long.decoding_uncached["target x target"] / 100


@pytest.mark.parametrize("stem", ["linear", "convolution"])
def test_media_and_heads(stem: str) -> None:
    patches = {"kind": "patches", "patch": 4, "channels": 3, "stem": stem}
    table = make_settings(BASE | {"family": "encoder_only", "score": "dot", "heads": "mqa", "feedforward": "relu"})
    head = {"kind": "classes", "labels": ["a", "b", "c"]}
    config = MODEL_FILES.parse(table | {"source": patches, "head": head, "task": "image_classification"})
    model: nn.Module = build(config, seed=0)
    expected = cost(config, batch_size=2, source=9)
    image = torch.randn(2, 3, 12, 12)
    assert count_flops(lambda: model(image)) == expected.forward.total()
    assert count_flops(lambda: model(image).sum().backward()) == pytest.approx(expected.training.total(), rel=0.02)


@pytest.mark.parametrize("stem", ["linear", "convolution"])
def test_audio(stem: str) -> None:
    mel = {"kind": "mel", "bins": 5, "frames": 2, "stem": stem}
    table = make_settings(BASE | {"family": "encoder_only", "score": "dot", "heads": "mqa", "feedforward": "relu"})
    config = MODEL_FILES.parse(table | {"source": mel, "head": {"kind": "none"}, "task": "embedding"})
    model: nn.Module = build(config, seed=0)
    expected = cost(config, batch_size=2, source=9)
    clip = torch.randn(2, 18, 5)
    assert count_flops(lambda: model(clip)) == expected.forward.total()
    assert count_flops(lambda: model(clip).sum().backward()) == pytest.approx(expected.training.total(), rel=0.02)


def test_a_prefix_is_read_once() -> None:
    patches = {"kind": "patches", "patch": 4, "channels": 3}
    table = make_settings(BASE | {"family": "decoder_only", "score": "additive", "heads": "gqa", "feedforward": "relu"})
    config = MODEL_FILES.parse(table | {"prefix": patches, "task": "captioning"})
    model, expected = build(config, seed=0), cost(config, batch_size=2, source=9, target=5)
    assert isinstance(model, DecoderOnly)
    image, tokens = torch.randn(2, 3, 12, 12), random_tokens(2, 5, seed=1)

    def decode() -> None:
        state = model.start(14, prefix=image)
        for token in tokens.split(1, dim=1):
            model.step(token, state)
        assert state.bytes == expected.kv_cache.total()

    with torch.no_grad():
        assert count_flops(lambda: model(tokens, prefix=image)) == expected.forward.total()
        assert count_flops(decode) == expected.decoding.total()
        uncached_flops = sum(count_flops(lambda n=n: model(tokens[:, :n], prefix=image)) for n in range(1, 6))
    assert uncached_flops == expected.decoding_uncached.total()
    assert expected.attention_weights["target x target"] == 4 * 2 * 4 * 14 * 14


CHOICE: Choice = {
    "family": "decoder_only",
    "position": "sinusoidal",
    "score": "scaled_dot",
    "norm_order": "pre",
    "norm": "layer",
    "heads": "gqa",
    "feedforward": "relu",
}


@pytest.mark.parametrize("max_length", [64, pytest.param(2048, marks=pytest.mark.slow)])
@torch.inference_mode()
def test_flops_with_the_cache_are_linear_and_without_it_quadratic(max_length: int) -> None:
    config = MODEL_FILES.parse(make_settings(CHOICE))
    model = build(config, seed=0).eval()
    assert isinstance(model, DecoderOnly)
    stride = max_length // 4
    cached_flops: list[int] = []
    cpu_decoder_flops: list[int] = []
    uncached_flops: list[int] = []
    for length in range(stride, max_length + 1, stride):
        tokens = random_tokens(2, length, seed=1)
        for step, counts in ((model.step, cached_flops), (CpuDecoder(model).step, cpu_decoder_flops)):
            state = model.start(max_length)
            model.step(tokens[:, :-1], state)
            with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
                step(tokens[:, -1:], state)
            counts.append(counter.get_total_flops())
            assert state.bytes == cost(config, batch_size=2, target=max_length).kv_cache.total()
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            model(tokens)
        uncached_flops.append(counter.get_total_flops())
    assert cached_flops == cpu_decoder_flops
    first, second, third = (cached_flops[place + 1] - cached_flops[place] for place in range(3))
    assert first == second == third > 0  # a straight line
    increments = [uncached_flops[place + 1] - uncached_flops[place] for place in range(3)]
    assert increments[2] - increments[1] == increments[1] - increments[0] > 0  # a parabola
