"""TOML in and out, settings, and faults that are all named at once."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from regard.base import limits
from regard.base.errors import ConfigError, RegardError
from regard.config import codec
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from regard.config.parts import CrossRecurrentConfig, attention_stack
from regard.config.toml_file import TomlTable, parse_settings, to_dict


def parse_faults(table: TomlTable) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        codec.MODEL_FILES.parse(table)
    return {fault.path: f"{fault.what} {fault.fix or ''}".strip() for fault in caught.value.faults}


def preset_faults(name: str, *settings: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        codec.preset(name, parse_settings(settings))
    return {fault.path: f"{fault.what} {fault.fix or ''}".strip() for fault in caught.value.faults}


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
    encoder_only = ["bert", "roberta", "encoder-small", "encoder-tiny", "sound-encoder", "vit", "word2vec"]
    assert codec.list_presets() == sorted(encoder_decoders + decoder_only + encoder_only)
    for name in codec.list_presets():
        text = (Path(codec.__file__).parent / "presets" / f"{name}.toml").read_text()
        if "recurrent" not in text:
            assert "placement = " in text, f"{name} must state its norm placement"
            assert "final_norm = " in text


def test_a_model_file_carries_task_labels_and_languages() -> None:
    labels = {"head": {"kind": "classes", "labels": ["bad", "good"]}, "task": "classify", "languages": ["en"]}
    config = codec.preset("bert", labels)
    assert isinstance(config, EncoderOnlyConfig)
    again = tomllib.loads(codec.MODEL_FILES.dumps(config))
    assert again["head"]["labels"] == ["bad", "good"]
    assert (again["task"], again["languages"], again["format"]) == ("classify", ["en"], 1)


def test_configurations_never_change() -> None:
    config = codec.preset("tiny")
    with pytest.raises(ValidationError, match="frozen"):
        config.width = 3  # type: ignore[misc]
    assert hash(config) == hash(codec.preset("tiny"))


def test_settings_are_toml_or_bare_words() -> None:
    settings = ["a=1", "b.c=0.5", "d=true", "e=word", 'f="1"', "g=[1, 2]", 'h={kind = "rotary", theta = 5}', "i=a b"]
    expected: dict[str, Any] = {"a": 1, "b.c": 0.5, "d": True, "e": "word", "f": "1", "g": [1, 2]}
    assert parse_settings(settings) == expected | {"h": {"kind": "rotary", "theta": 5}, "i": "a b"}
    with pytest.raises(ConfigError, match=r"a\.b=c"):
        parse_settings(["width"])


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
    text = codec.MODEL_FILES.dumps(codec.preset("tiny")).replace("width = 128", "width = 127")
    (tmp_path / "model.toml").write_text(text)
    assert codec.MODEL_FILES.load(tmp_path / "model.toml", {"width": 128}) == codec.preset("tiny")


def test_every_fault_is_named_at_once_with_its_path_and_a_hint() -> None:
    found = preset_faults(
        "tiny",
        "encoder.position.kind=rotery",
        "encoder.attention.head=3",
        "decoder.layers=four",
        "decoder.dropout.sublayer=1.5",
        "widht=3",
        "decoder.feedforward.kind=gated",
    )
    assert found == {
        "encoder.position.kind": "is 'rotery'. Did you mean 'rotary'?",
        "encoder.attention.head": "is not a key here. Did you mean 'heads'?",
        "decoder.layers": "is 'four': input should be a valid integer.",
        "decoder.dropout.sublayer": "is 1.5: input should be less than 1.",
        "decoder.feedforward.hidden": "is missing.",
        "widht": "is not a key here. Did you mean 'width'?",
    }


def test_a_setting_of_another_kind_is_not_a_key() -> None:
    found = preset_faults(
        "gpt2", 'decoder.position={kind = "alibi", theta = 1.0}', 'head={kind = "lm", labels = ["a"]}'
    )
    assert found["decoder.position.theta"] == "is not a key here. Choose from: kind."
    assert found["head.labels"].startswith("is not a key here.")


def test_fields_that_do_not_fit_together_are_named_at_once() -> None:
    found = preset_faults("tiny", "encoder.attention.heads=3", "decoder.cross.key_value_heads=3", "width=127")
    assert (
        found["encoder.attention.heads"] == "is 3, which does not divide the width 127. Change heads, or set key_dim."
    )
    assert found["decoder.cross.key_value_heads"] == "is 3, which does not divide 4 heads. Use one of [1, 2, 4]."
    assert "encoder.position" in found
    odd = preset_faults("gpt2", "decoder.position.kind=rotary", "decoder.attention.key_dim=7")
    assert odd == {"decoder.position": "rotates pairs, but key_dim is 7. Use an even key_dim."}


def test_buckets_that_reach_beyond_the_distance_are_refused() -> None:
    found = preset_faults("gpt2", 'decoder.position={kind = "relative", buckets = 32, distance = 16}')
    assert found.keys() == {"decoder.position.distance"}
    codec.preset("gpt2", {"decoder.position": {"kind": "relative", "buckets": 32, "distance": 17}})


def test_heads_and_tasks_must_agree() -> None:
    assert "task" in preset_faults("bert", "task=classify")
    assert "task" in preset_faults("gpt2", "task=classify")
    pool_faults = preset_faults("gpt2", 'head={kind = "classes", labels = ["a", "b"]}', "task=classify")
    assert pool_faults == {"head.pool": "is 'first', but the first token attends to no other. Use 'last' or 'mean'."}
    image = '{kind = "patches", patch = 4}'
    assert "head.kind" in preset_faults("bert", f"source={image}")
    assert "target.kind" in preset_faults("tiny", f"source={image}")


def test_settings_that_mean_nothing_are_refused() -> None:
    assert "source.types" in preset_faults("tiny", "source.types=2")
    assert "tokens.types" in preset_faults("gpt2", "tokens.types=2")
    assert "task" in preset_faults("gpt2", "task=caption")
    twice = preset_faults("bert", 'head={kind = "tags", labels = ["a", "b", "a"]}', "task=tag")
    assert twice == {"head.labels": "is ['a', 'b', 'a']: labels must be different."}


def test_what_is_said_of_a_kind_survives_the_kind_said_after_it() -> None:
    config = codec.preset("gpt2", {"decoder.position.theta": 500.0, "decoder.position.kind": "rotary"})
    assert isinstance(config, DecoderOnlyConfig)
    assert attention_stack(config.decoder).position.model_dump() == {
        "kind": "rotary",
        "theta": 500.0,
        "layout": "halves",
    }


def test_a_missing_or_unknown_family() -> None:
    assert parse_faults({"width": 8}) == {"family": "is missing: it selects the type of its table."}
    assert parse_faults({"family": "decoder-only"}) == {"family": "is 'decoder-only'. Did you mean 'decoder_only'?"}
    assert "decoder" in parse_faults({"family": "decoder_only"})


def test_a_newer_format_is_refused() -> None:
    assert "format" in preset_faults("tiny", "format=2")


def test_values_that_are_no_tables() -> None:
    with pytest.raises(ConfigError, match="'width' is a value"):
        codec.preset("tiny", {"width.height": 3})
    assert parse_faults({"family": "decoder_only", "width": 8, "tokens": 3, "decoder": []}).keys() == {
        "tokens",
        "decoder",
    }


def test_broken_files_and_unknown_presets_are_explained(tmp_path: Path) -> None:
    broken = tmp_path / "model.toml"
    broken.write_bytes(b"width = \n")
    with pytest.raises(ConfigError, match="is not TOML"):
        codec.MODEL_FILES.load(broken)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not TOML"):
        codec.MODEL_FILES.load(broken)
    with pytest.raises(RegardError, match="cannot be read: No such file"):
        codec.MODEL_FILES.load(tmp_path / "nothing.toml")
    broken.write_bytes(b"family = 1979-05-27\n")
    with pytest.raises(ConfigError, match="family"):
        codec.MODEL_FILES.load(broken, {"width": 8})
    with pytest.raises(RegardError, match="Did you mean 'tiny'"):
        codec.preset("tini")


def test_the_schema_describes_every_setting() -> None:
    schema = json.loads(codec.MODEL_FILES.schema())
    assert schema["discriminator"]["propertyName"] == "family"
    rotary = schema["$defs"]["RotaryConfig"]["properties"]
    assert "base of the frequencies" in rotary["theta"]["description"]
    assert schema["$defs"]["RotaryConfig"]["additionalProperties"] is False


def test_families_know_their_tables() -> None:
    tiny, llama = codec.preset("tiny"), codec.preset("llama")
    assert isinstance(tiny, EncoderDecoderConfig)
    assert tiny.target_tokens == tiny.source
    assert isinstance(llama, DecoderOnlyConfig)
    attention = attention_stack(llama.decoder).attention
    assert attention.groups == 8
    assert attention.dims(llama.width) == (128, 128)


def test_a_stack_without_a_kind_has_attention() -> None:
    """Files of versions without recurrent stacks load, and their faults have the same paths."""
    table = to_dict(codec.preset("tiny"))
    for stack in ("encoder", "decoder"):
        assert table[stack].pop("kind") == "attention"
    assert codec.MODEL_FILES.parse(table) == codec.preset("tiny")
    table["encoder"]["attention"]["heads"] = 0
    table["decoder"]["layer"] = 2
    with pytest.raises(ConfigError) as caught:
        codec.MODEL_FILES.parse(table)
    assert {fault.path for fault in caught.value.faults} == {"encoder.attention.heads", "decoder.layer"}


def test_a_stack_can_become_recurrent() -> None:
    changes = {"decoder.cross.kind": "luong", "decoder.layers": 2, "decoder.kind": "recurrent"}
    config = codec.preset("tiny", changes | {"encoder.kind": "recurrent", "encoder.layers": 1})
    assert isinstance(config, EncoderDecoderConfig)
    assert isinstance(config.decoder, CrossRecurrentConfig)
    assert (config.decoder.cross.kind, config.decoder.layers) == ("luong", 2)
    assert "encoder.kind" in preset_faults("tiny", "encoder.kind=recurent")


def test_recurrent_stacks_that_cannot_be() -> None:
    assert "decoder.bidirectional" in preset_faults("lstm", "decoder.bidirectional=true")
    assert "encoder.bidirectional" in preset_faults("rnnsearch", "width=255")
    assert "decoder.cross.kind" in preset_faults("rnnsearch", "decoder.cross.kind=fixed_vector")


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("updates", "Did you mean 'train.updates'?"),
        ("optimizer.kind", "Did you mean 'train.optimizer'?"),
        ("train.batch_tokens", "Did you mean 'data.batch_tokens'?"),
        ("model.layers", "Did you mean 'model.decoder.layers' or 'model.encoder.layers' or 'model.head.layers'?"),
        ("train.update", "Did you mean 'updates'?"),
    ],
)
def test_a_setting_of_another_table_is_suggested_with_its_table(name: str, suggestion: str) -> None:
    (fault,) = codec.RUN_FILES.find_wrong_changes({name: 3})
    assert fault.fix == suggestion


def test_names_that_some_kind_of_table_has_are_known_without_the_other_settings() -> None:
    changes = {"data.train.0.weight": 2, "model.decoder.position.kind": "rotary", "train.optimizer.betas": [0.9, 0.98]}
    changes |= {"model.preset": "tiny", "train.clip": None, "train.schedule": {"kind": "linear"}}
    assert not list(codec.RUN_FILES.find_wrong_changes(changes))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("train.clip", -1.0, "is -1.0: input should be greater than"),
        ("train.updates", "many", "is 'many': input should be a valid integer"),
        ("model.decoder.position.kind", "spiral", "is 'spiral'."),
    ],
)
def test_wrong_values_are_found_without_the_other_settings(name: str, value: object, message: str) -> None:
    (fault,) = codec.RUN_FILES.find_wrong_changes({name: value})
    assert fault.path == name
    assert fault.what.startswith(message)


def test_a_file_that_could_not_be_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SETTINGS", 100)
    with pytest.raises(RegardError, match="may have 100"):
        codec.MODEL_FILES.save(codec.preset("tiny"), tmp_path / "model.toml")
    assert not (tmp_path / "model.toml").exists()
