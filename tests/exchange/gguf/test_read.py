"""GGUF files: rows of queries and keys are put back, quantized blocks are read, and damaged files are refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.exchange.importer import import_model
from regard.tasks.load import load_generator
from regard.text.chat_template import find_chat_template
from tests.exchange.gguf.factories import make_model, write_model
from tests.exchange.models import make_batch


def compute_loss(model: Any, tokens: Tensor) -> float:
    logits = model(tokens)[:, :-1]
    return float(torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()))


def test_rows_are_put_back(tmp_path: Path) -> None:
    """The imported model has the loss of the original; without restoring rows it would generate, and be wrong."""
    model = make_model().eval()
    write_model(model, tmp_path / "tiny.gguf")
    import_model(tmp_path / "tiny.gguf", tmp_path / "tiny")
    generator = load_generator(tmp_path / "tiny")
    for name, weight in generator.model.state_dict().items():
        assert torch.equal(weight, model.state_dict()[name]), name
    tokens = make_batch(20, seed=1)[0]
    with torch.no_grad():
        assert compute_loss(generator.model, tokens) == compute_loss(model, tokens)
        write_model(model, tmp_path / "wrong.gguf", is_interleaved=False)  # rows that the import then moves away
        import_model(tmp_path / "wrong.gguf", tmp_path / "wrong")
        wrong = compute_loss(load_generator(tmp_path / "wrong").model, tokens)
        assert abs(wrong - compute_loss(model, tokens)) > 1e-3
    assert not generator.settings.starts_with_bos
    assert generator.encode_prompts(["12AB"], 1) == [[ord(letter) - ord("!") + 1 for letter in "12AB"]]


def test_files_of_llama_3_begin_with_bos_and_keep_their_template(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"tokenizer.ggml.pre": (8, "llama-bpe")}
    changes["tokenizer.chat_template"] = (8, "{{ messages[0].content }}")
    for name, has_bos in (("missing", None), ("set", True), ("off", False)):
        changes["tokenizer.ggml.add_bos_token"] = None if has_bos is None else (7, has_bos)
        write_model(make_model(), tmp_path / f"{name}.gguf", **changes)
        import_model(tmp_path / f"{name}.gguf", tmp_path / name)
        assert load_generator(tmp_path / name).settings.starts_with_bos == (has_bos is not False)
        assert find_chat_template(tmp_path / name) == "{{ messages[0].content }}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general.architecture": (8, "falcon")}, "not 'llama'"),
        ({"llama.rope.scaling.type": (8, "yarn")}, "scaled"),
        ({"llama.rope.scaling.factor": (6, 4.0)}, "scaled"),
        ({"llama.rope.scale_linear": (6, 2.0)}, "scaled"),
        ({"llama.expert_count": (4, 8)}, "mixture of experts"),
        ({"llama.rope.dimension_count": (4, 8)}, "rotate 8 of 16"),
        ({"llama.block_count": (4, 2)}, "do not match the config"),
        ({"tokenizer.ggml.model": (8, "llama")}, "reads 'gpt2'"),
        ({"tokenizer.ggml.pre": (8, "unheard-of")}, "not supported"),
    ],
)
def test_variants_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_model(make_model(), tmp_path / "tiny.gguf", **changes)
    with pytest.raises(RegardError, match=message):
        import_model(tmp_path / "tiny.gguf", tmp_path / "tiny")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_import_weight_that_is_not_finite_is_refused(number: float, tmp_path: Path) -> None:
    model = make_model()
    with torch.no_grad():
        model.decoder.layers[0].attention.value.weight[0, 0] = number
    write_model(model, tmp_path / "tiny.gguf")
    with pytest.raises(RegardError, match=r"attention\.value\.weight has NaN or infinite values"):
        import_model(tmp_path / "tiny.gguf", tmp_path / "tiny")


def test_import_template_bomb_in_metadata_is_refused(tmp_path: Path) -> None:
    template = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    changes: dict[str, Any] = {"tokenizer.chat_template": (8, template)}
    write_model(make_model(), tmp_path / "tiny.gguf", **changes)
    with pytest.raises(RegardError, match="chat template was stopped"):
        import_model(tmp_path / "tiny.gguf", tmp_path / "tiny")
    assert not (tmp_path / "tiny").exists()
