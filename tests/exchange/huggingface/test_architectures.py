"""The choice of an architecture for an export, and configs in both directions."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.codec import MODEL_FILES
from regard.config.toml_file import to_dict
from regard.exchange.export import ExportOptions, export_model
from regard.exchange.huggingface.architectures import ARCHITECTURES
from regard.exchange.huggingface.config_reader import ConfigReader
from tests.exchange.cases import CASES
from tests.exchange.folders import write_case
from tests.exchange.models import POSITIONS, parse_settings

pytestmark = pytest.mark.usefixtures("one_short_text")


def test_a_model_without_architecture_is_refused(tmp_path: Path) -> None:
    write_case("pegasus-gelu", tmp_path / "ours")
    with pytest.raises(RegardError, match=r"MarianMTModel: encoder.norm_order is pre"):
        export_model(tmp_path / "ours", "huggingface", options=ExportOptions(architecture="MarianMTModel"))
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]  # nothing is left behind
    with pytest.raises(RegardError, match="There is no export target 'onyx'"):
        export_model(tmp_path / "ours", "onyx")
    with pytest.raises(RegardError, match="would change the model folder"):
        export_model(tmp_path / "ours", "huggingface", tmp_path / "ours")


IN_TABLES = ("interleaved", "halves")  # sinusoids that become learned tables
ROUND_TRIPS = [name for name in CASES if not name.endswith(IN_TABLES)]


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_config_read_back_gives_the_same_model(name: str) -> None:
    architecture, model = ARCHITECTURES[CASES[name].architecture], parse_settings(CASES[name].settings)
    config = architecture.write_config(model, POSITIONS)
    again = to_dict(MODEL_FILES.parse(architecture.read_config(ConfigReader(config, "config.json"), {})))
    expected = to_dict(model)
    for table in (again, expected):  # what the tensors say, what no config holds, and a default that is spelled out
        for key in ("head", "source", "task", "max_length_ratio"):
            table.pop(key, None)
        for stack in ("encoder", "decoder"):
            for attention in ("attention", "cross"):
                table.get(stack, {}).get(attention, {}).pop("key_dim", None)
    assert again == expected


def test_embedding_dropout_of_gpt2_is_read() -> None:
    gpt2 = ARCHITECTURES["GPT2LMHeadModel"]
    table = gpt2.read_config(ConfigReader({"vocab_size": 9, "embd_pdrop": 0.3, "resid_pdrop": 0.2}, "config.json"), {})
    assert table["decoder"]["dropout"] == {"embedding": 0.3, "sublayer": 0.2, "attention": 0.1}


@pytest.mark.parametrize("value", [[], {"kind": "relu"}, "swiglu"])
def test_unknown_feedforward_of_t5_is_refused(value: object) -> None:
    config = {"vocab_size": 9, "tie_word_embeddings": False, "feed_forward_proj": value}
    with pytest.raises(RegardError, match="'feed_forward_proj' is"):
        ARCHITECTURES["T5ForConditionalGeneration"].read_config(ConfigReader(config, "config.json"), {})
