"""The script that scores the kept labels of SST-2."""

import sys
from pathlib import Path

import pytest
import torch
from examples.sst2 import last_layer, run

from regard.config.codec import preset
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from regard.nn.masks import no_mask

SETTINGS = {"source.vocabulary": 50, "encoder.position": {"kind": "learned", "length": 8}}  # positions as in MiniLM


def test_tuning_is_compared_with_prompts_on_the_sentences_that_both_label(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "compare"])
    monkeypatch.setattr(run, "RESAMPLES", 80)
    run.main()
    output = capsys.readouterr().out
    assert "prompt-0: 85.00 (85.00) on 200 sentences" in output
    assert "full - prompt-16: +24.17" in output


def test_the_difference_of_equal_labels_is_zero() -> None:
    assert run.bootstrap([[True, False]], [[True, False, True]])[0] == 0
    assert Path(run.HERE / "labels").is_dir()


def test_the_last_layer_continues_where_the_layers_below_end() -> None:
    model: EncoderOnly = build(preset("encoder-tiny", SETTINGS), seed=1).eval()
    below, last = last_layer.split_last(model)
    tokens = torch.arange(10, 22).unflatten(0, (2, 6))
    states = below.hidden_states(tokens)[0]
    torch.testing.assert_close(last.eval()(states, no_mask()), model.hidden_states(tokens)[0])


def test_only_what_a_way_names_is_trained() -> None:
    model: EncoderOnly = build(preset("encoder-tiny", SETTINGS), seed=1).eval()
    _, last = last_layer.split_last(model)
    width = 128
    sentences = last_layer.Sentences([torch.randn(length, width) for length in (3, 5, 4)], torch.tensor([0, 1, 0]))
    layer = last.layers[-1]
    size = sum(parameter.numel() for parameter in layer.parameters())
    counts = [
        last_layer.tune(last, way, sentences, sentences, 1)[0]
        for way in (
            lambda _: lambda _: False,
            last_layer.adapt(1),
            last_layer.adapt(2),
            last_layer.train_layer(),
            last_layer.train_layer(layer),
            last_layer.train_layer(layer, is_extra=True),
        )
    ]
    assert counts == [0, 8 * width, 16 * width, size, size, size]
