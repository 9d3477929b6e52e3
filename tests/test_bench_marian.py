"""The files and clocks with which `bench.decode` runs Marian; Marian itself is not needed."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from bench.marian_model import follow_marian, to_marian, write_marian_model
from bench.peers.marian_decoder import make_length_factor, make_options
from bench.timing import race

from regard.config.codec import preset
from regard.config.model import EncoderDecoderConfig
from regard.config.parts import attention_stack
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder

BOS, EOS, PAD = 1, 2, 0


@pytest.fixture(scope="module")
def settings() -> EncoderDecoderConfig:
    settings = preset("tiny")
    assert isinstance(settings, EncoderDecoderConfig)
    return settings


@pytest.fixture(scope="module")
def model(settings: EncoderDecoderConfig) -> EncoderDecoder:
    model = build(settings, seed=0).eval()
    assert isinstance(model, EncoderDecoder)
    follow_marian(model, BOS)
    return model


def test_the_decoder_starts_with_zeros_and_the_sinusoids_are_those_of_marian(model: EncoderDecoder) -> None:
    assert not model.target.embedding.weight[BOS].any()
    count = 128 // 2
    angles = np.arange(50)[:, None] * np.exp(-np.arange(count) * math.log(10000) / (count - 1))
    expected = np.concatenate((np.sin(angles), np.cos(angles)), axis=1)
    for stack in (model.encoder, model.decoder):
        sinusoids = stack.position.on_input(torch.zeros(1, 50, 128), torch.arange(50)[None])
        np.testing.assert_allclose(sinusoids[0].numpy(), expected, atol=1e-5)


def test_other_positions_are_an_error(settings: EncoderDecoderConfig) -> None:
    decoder = attention_stack(settings.decoder)
    position = decoder.position.model_copy(update={"layout": "interleaved"})
    decoder = decoder.model_copy(update={"position": position})
    model = build(settings.model_copy(update={"decoder": decoder}), seed=0)
    assert isinstance(model, EncoderDecoder)
    with pytest.raises(ValueError, match="halves"):
        follow_marian(model, BOS)


def test_every_weight_has_a_name_of_marian(model: EncoderDecoder) -> None:
    theirs = to_marian(model.state_dict())
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert sum(weight.size for weight in theirs.values()) == parameters + 10_000  # the output bias, zeros
    assert theirs["decoder_ff_logit_out_b"].shape == (1, 10_000)
    up = model.decoder.layers[3].feedforward.up.weight.detach().numpy()
    np.testing.assert_array_equal(theirs["decoder_l4_ffn_W1"], up.T)
    assert theirs["decoder_l1_context_bq"].shape == theirs["encoder_l2_self_Wo_ln_scale"].shape == (1, 128)


def test_the_model_file_has_the_settings_and_the_vocabulary_the_special_tokens(
    settings: EncoderDecoderConfig, model: EncoderDecoder, tmp_path: Path
) -> None:
    write_marian_model(settings, model, tmp_path, eos=EOS, unknown=PAD)
    with np.load(tmp_path / "model.npz") as file:
        assert len(file.files) == 1 + 2 + 4 * (8 + 4 + 4) + 4 * (8 + 8 + 4 + 6)
        config = file["special:model.yml"].tobytes().decode()
    assert "dim-vocabs: [10000, 10000]\n" in config
    assert config.endswith("\0")
    words = (tmp_path / "vocabulary.yml").read_text().splitlines()
    assert words[:4] == ['"<unk>": 0', '"t1": 1', '"</s>": 2', '"t3": 3']
    assert len(words) == 10_000


def test_only_greedy_search_skips_the_log_probabilities() -> None:
    assert "--skip-cost" in make_options(Path("folder"), 1)
    assert "--skip-cost" not in make_options(Path("folder"), 4)


@pytest.mark.parametrize(("length", "max_length"), [(5, 16), (30, 16), (49, 98)])
def test_marian_stops_after_the_maximum_length(length: int, max_length: int) -> None:
    factor = np.float32(make_length_factor([" ".join(["t9"] * length), "t9"], max_length))
    reached = next(words for words in range(1, 200) if words >= factor * (length + 1))
    assert reached == max_length


def test_a_contestant_in_another_process_has_its_own_clock() -> None:
    seconds = iter(range(100))
    times = race({"ours": lambda: None, "theirs": lambda: None}, seconds=0, clocks={"theirs": lambda: next(seconds)})
    assert times["theirs"] == [1000.0] * 3
    assert max(times["ours"]) < 1000
