"""TOML in and out, settings, and faults that are all named at once."""

import json
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from regard.config.parts import attention_stack
from regard.config.toml_file import to_dict
from tests.config.factories import preset_faults


def test_types_of_presets_name_every_preset_of_each_family() -> None:
    """The overloads of `preset` tell type checkers which settings, and so which model, a preset has."""
    names = {
        EncoderDecoderConfig: codec.EncoderDecoderPreset,
        DecoderOnlyConfig: codec.DecoderOnlyPreset,
        EncoderOnlyConfig: codec.EncoderOnlyPreset,
    }
    for name in codec.list_presets():
        assert name in get_args(names[type(codec.preset(name))])
    assert sum(len(get_args(literal)) for literal in names.values()) == len(codec.list_presets())


@pytest.mark.parametrize("name", codec.list_presets())
def test_every_preset_survives_a_round_trip(name: str, tmp_path: Path) -> None:
    config = codec.preset(name)
    assert codec.MODEL_FILES.parse(tomllib.loads(codec.MODEL_FILES.dumps(config))) == config
    codec.MODEL_FILES.save(config, tmp_path / "model.toml")
    assert codec.MODEL_FILES.load(tmp_path / "model.toml") == config
    assert config.format == 1


def test_the_presets_are_those_we_promise() -> None:
    encoder_decoders = ["bart", "base", "big", "lecture", "mini", "rnnsearch", "small", "t5", "tiny"]
    encoder_decoders += ["image-to-text", "speech-to-text"]
    decoder_only = ["image-gpt", "lm-small", "gpt2", "lm-medium", "llama", "lstm"]
    encoder_only = ["bert", "roberta", "encoder-small", "encoder-tiny", "audio-encoder", "vit", "word2vec"]
    assert codec.list_presets() == sorted(encoder_decoders + decoder_only + encoder_only)
    for name in codec.list_presets():
        text = (Path(codec.__file__).parent / "presets" / f"{name}.toml").read_text()
        if "recurrent" not in text:
            assert "norm_order = " in text, f"{name} must state its norm placement"
            assert "final_norm = " in text


def test_a_model_file_carries_task_labels_and_languages() -> None:
    labels = {
        "head": {"kind": "classes", "labels": ["bad", "good"]},
        "task": "text_classification",
        "languages": ["en"],
    }
    config = codec.preset("bert", labels)
    assert isinstance(config, EncoderOnlyConfig)
    again = tomllib.loads(codec.MODEL_FILES.dumps(config))
    assert again["head"]["labels"] == ["bad", "good"]
    assert (again["task"], again["languages"], again["format"]) == ("text_classification", ["en"], 1)


def test_configurations_never_change() -> None:
    config = codec.preset("tiny")
    with pytest.raises(RegardError, match="cannot be changed in place"):
        config.d_model = 3  # type: ignore[misc]
    assert hash(config) == hash(codec.preset("tiny"))


def test_another_kind_starts_its_table_anew() -> None:
    config = codec.preset("tiny", {"encoder.position.kind": "rotary", "encoder.position.theta": 500.0})
    assert isinstance(config, EncoderDecoderConfig)
    assert attention_stack(config.encoder).position.model_dump() == {
        "kind": "rotary",
        "theta": 500.0,
        "layout": "halves",
    }
    assert attention_stack(config.decoder).position.kind == "sinusoidal"


def test_settings_left_at_their_defaults_can_be_set_too() -> None:
    config = codec.preset("tiny", {"encoder.attention.score.scale": 1.0})
    assert isinstance(config, EncoderDecoderConfig)
    assert attention_stack(config.encoder).attention.score.model_dump() == {"kind": "scaled_dot", "scale": 1.0}


def test_a_change_may_mend_a_file_that_is_wrong_by_itself(tmp_path: Path) -> None:
    text = codec.MODEL_FILES.dumps(codec.preset("tiny")).replace("d_model = 128", "d_model = 127")
    (tmp_path / "model.toml").write_text(text)
    assert codec.MODEL_FILES.load(tmp_path / "model.toml", {"d_model": 128}) == codec.preset("tiny")


def test_a_setting_of_another_kind_is_not_a_key() -> None:
    found = preset_faults(
        "gpt2", 'decoder.position={kind = "alibi", theta = 1.0}', 'head={kind = "lm", labels = ["a"]}'
    )
    assert found["decoder.position.theta"] == "is not a key here. Choose from: kind."
    assert found["head.labels"].startswith("is not a key here.")


def test_settings_that_mean_nothing_are_refused() -> None:
    assert "source.types" in preset_faults("tiny", "source.types=2")
    assert "tokens.types" in preset_faults("gpt2", "tokens.types=2")
    assert "task" in preset_faults("gpt2", "task=captioning")
    twice = preset_faults("bert", 'head={kind = "tags", labels = ["a", "b", "a"]}', "task=tagging")
    assert twice == {"head.labels": "is ['a', 'b', 'a']: labels must be different."}


def test_what_is_said_of_a_kind_survives_the_kind_said_after_it() -> None:
    config = codec.preset("gpt2", {"decoder.position.theta": 500.0, "decoder.position.kind": "rotary"})
    assert isinstance(config, DecoderOnlyConfig)
    assert attention_stack(config.decoder).position.model_dump() == {
        "kind": "rotary",
        "theta": 500.0,
        "layout": "halves",
    }


@pytest.mark.parametrize(("kind", "expected"), [("skip", "recover"), ("rewind", "recover"), ("stop", "stop")])
def test_spike_policies_of_earlier_versions_are_read(kind: str, expected: str) -> None:
    spikes = {"kind": kind, "window": 64, "max_spikes": 10} | ({"rewind_steps": 50} if kind == "rewind" else {})
    table = {
        "data": {"train": [{"kind": "documents", "path": "book.txt"}]},
        "model": {"preset": "lm-small"},
        "train": {"steps": 4, "schedule": {"kind": "constant", "lr": 0.01}, "spikes": spikes},
    }
    run = codec.RUN_FILES.parse(table)
    assert run.train.spikes.model_dump() == {"kind": expected, "window": 64}
    assert codec.RUN_FILES.parse(to_dict(run)) == run


def test_a_newer_format_is_refused() -> None:
    assert "format" in preset_faults("tiny", "format=2")


def test_the_schema_describes_every_setting() -> None:
    schema = json.loads(codec.MODEL_FILES.schema())
    assert schema["discriminator"]["propertyName"] == "family"
    rotary = schema["$defs"]["RotaryConfig"]["properties"]
    assert "base of the frequencies" in rotary["theta"]["description"]
    assert schema["$defs"]["RotaryConfig"]["additionalProperties"] is False


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("steps", "Did you mean 'train.steps'?"),
        ("optimizer.kind", "Did you mean 'train.optimizer'?"),
        ("train.batch_tokens", "Did you mean 'data.batch_tokens'?"),
        ("model.layers", "Did you mean 'model.decoder.layers' or 'model.encoder.layers' or 'model.head.layers'?"),
        ("train.stps", "Did you mean 'steps'?"),
    ],
)
def test_a_setting_of_another_table_is_suggested_with_its_table(name: str, suggestion: str) -> None:
    (fault,) = codec.RUN_FILES.find_wrong_changes({name: 3})
    assert fault.hint == suggestion


def test_names_that_some_kind_of_table_has_are_known_without_the_other_settings() -> None:
    changes = {"data.train.0.weight": 2, "model.decoder.position.kind": "rotary", "train.optimizer.betas": [0.9, 0.98]}
    changes |= {"model.preset": "tiny", "train.max_grad_norm": None, "train.schedule": {"kind": "linear"}}
    assert not list(codec.RUN_FILES.find_wrong_changes(changes))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("train.max_grad_norm", -1.0, "is -1.0: input should be greater than"),
        ("train.steps", "many", "is 'many': input should be a valid integer"),
        ("model.decoder.position.kind", "spiral", "is 'spiral'."),
    ],
)
def test_wrong_values_are_found_without_the_other_settings(name: str, value: object, message: str) -> None:
    (fault,) = codec.RUN_FILES.find_wrong_changes({name: value})
    assert fault.path == name
    assert fault.message.startswith(message)
