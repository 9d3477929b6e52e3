"""Model settings that must fit together."""

import pytest

from regard.base.errors import ConfigError
from regard.config import codec
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.config.parts import CrossRecurrentConfig, attention_stack
from regard.config.toml_file import to_dict
from tests.config.factories import preset_faults


def test_heads_and_tasks_must_agree() -> None:
    assert "task" in preset_faults("bert", "task=text_classification")
    assert "task" in preset_faults("gpt2", "task=text_classification")
    pool_faults = preset_faults("gpt2", 'head={kind = "classes", labels = ["a", "b"]}', "task=text_classification")
    assert pool_faults == {"head.pool": "is 'first', but the first token attends only to itself. Use 'last' or 'mean'."}
    image = '{kind = "patches", patch = 4}'
    assert "head.kind" in preset_faults("bert", f"source={image}")
    assert "target.kind" in preset_faults("tiny", f"source={image}")


def test_families_know_their_tables() -> None:
    tiny, llama = codec.preset("tiny"), codec.preset("llama")
    assert isinstance(tiny, EncoderDecoderConfig)
    assert tiny.target_tokens == tiny.source
    assert isinstance(llama, DecoderOnlyConfig)
    attention = attention_stack(llama.decoder).attention
    assert attention.groups == 8
    assert attention.dims(llama.d_model) == (128, 128)


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
    assert "encoder.bidirectional" in preset_faults("rnnsearch", "d_model=255")
    assert "decoder.cross.kind" in preset_faults("rnnsearch", "decoder.cross.kind=fixed_vector")


@pytest.mark.parametrize("name", codec.list_presets())
def test_repr_of_a_preset_is_one_short_line(name: str) -> None:
    text = repr(codec.preset(name))
    assert len(text) < 130
    assert "\n" not in text
    assert "d_model=" in text
