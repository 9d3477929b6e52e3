"""GGUF files: rows of queries and keys are put back, quantized blocks are read, and damaged files are refused."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from torch import Tensor

from regard.base.errors import DamagedError, RegardError
from regard.exchange.gguf.dequantize import dequantize
from regard.exchange.gguf.format import BLOCK_TYPES, StoredTensor, parse
from regard.exchange.importer import import_model
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.pipeline.load import load_generator
from regard.text.chat_template import find_chat_template
from tests.exchange.models import make_batch, make_stack, parse_settings, randomize_weights
from tests.fuzz.seeds import make_gguf_metadata, write_gguf

WIDTH, HEADS, VOCABULARY = 32, 2, 37
NAMES = {
    "attention.query": "attn_q",
    "attention.key": "attn_k",
    "attention.value": "attn_v",
    "attention.output": "attn_output",
    "attention_residual.norm": "attn_norm",
    "feedforward.gate": "ffn_gate",
    "feedforward.up": "ffn_up",
    "feedforward.down": "ffn_down",
    "feedforward_residual.norm": "ffn_norm",
}


def make_model() -> DecoderOnly:
    """Make a small Llama that prefers some tokens strongly."""
    no_bias = {"query": False, "key": False, "value": False, "output": False}
    decoder = make_stack(
        "pre",
        layers=1,
        norm={"kind": "rms", "eps": 1e-5},
        position={"kind": "rotary", "theta": 10000.0},
        attention={"heads": HEADS, "key_value_heads": 1, "bias": no_bias},
        feedforward={"kind": "gated", "hidden": 64},
    )
    tokens = {"kind": "tokens", "vocabulary": VOCABULARY}
    settings = {"family": "decoder_only", "width": WIDTH, "tokens": tokens, "decoder": decoder}
    model = build(parse_settings(settings | {"head": {"kind": "lm", "tied": False}}), seed=0)
    assert isinstance(model, DecoderOnly)
    randomize_weights(model)
    with torch.no_grad():
        for name in ("query", "key"):
            getattr(model.decoder.layers[0].attention, name).weight.mul_(5.0)  # so that positions matter
    return model


def interleave(weight: Tensor, heads: int) -> Tensor:
    """Reorder the rows as the converter of llama.cpp does."""
    return weight.view(heads, 2, -1, weight.size(1)).transpose(1, 2).reshape(weight.shape)


def write_model(model: DecoderOnly, path: Path, *, is_interleaved: bool = True, **changes: Any) -> None:
    weights = model.state_dict()
    tensors = {
        "token_embd.weight": weights["tokens.embedding.weight"],
        "output.weight": weights["head.projection.weight"],
        "output_norm.weight": weights["decoder.final_norm.weight"],
    }
    for ours, theirs in NAMES.items():
        weight = weights[f"decoder.layers.0.{ours}.weight"]
        if is_interleaved and theirs in ("attn_q", "attn_k"):
            weight = interleave(weight, HEADS if theirs == "attn_q" else 1)
        tensors[f"blk.0.{theirs}.weight"] = weight
    tokens = ["<s>", *(chr(ord("!") + number) for number in range(VOCABULARY - 1))]
    stored = {name: (tuple(tensor.shape), 0, tensor.numpy().tobytes()) for name, tensor in tensors.items()}
    metadata = make_gguf_metadata(tokens, []) | changes
    path.write_bytes(write_gguf({key: value for key, value in metadata.items() if value is not None}, stored))


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


@pytest.mark.parametrize("number", BLOCK_TYPES)
def test_dequantize_each_block_type_equals_the_gguf_package(number: int) -> None:
    block = BLOCK_TYPES[number]
    generator = np.random.default_rng(0)
    data = generator.integers(0, 256, 64 * block.size, np.uint8)
    if block.elements > 1:
        blocks = data.reshape(64, block.size)
        for start in (208,) if block.name == "Q6_K" else (0, 2):  # the scales are finite numbers
            blocks[:, start : start + 2] = generator.normal(size=(64, 1)).astype("<f2").view(np.uint8)
    ours = dequantize(StoredTensor((64, block.elements), block, data)).numpy()
    theirs = gguf.quants.dequantize(data.reshape(64, -1), gguf.GGMLQuantizationType(number)).reshape(ours.shape)
    assert np.allclose(ours, theirs, rtol=1e-6, atol=1e-6, equal_nan=True)


def test_parse_file_of_the_gguf_package_reads_its_tensors(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_block_count(2)
    writer.add_tensor("a.weight", np.arange(6, dtype=np.float32).reshape(2, 3))
    for step in ("write_header_to_file", "write_kv_data_to_file", "write_tensors_to_file", "close"):
        getattr(writer, step)()
    file = parse(np.fromfile(tmp_path / "a.gguf", np.uint8), where="a.gguf")
    assert file.metadata["llama.block_count"] == 2
    assert dequantize(file.tensors["a.weight"]).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general.architecture": (8, "falcon")}, "not 'llama'"),
        ({"llama.rope.scaling.type": (8, "yarn")}, "scaled"),
        ({"llama.rope.scaling.factor": (6, 4.0)}, "scaled"),
        ({"llama.rope.scale_linear": (6, 2.0)}, "scaled"),
        ({"llama.expert_count": (4, 8)}, "mixture of experts"),
        ({"llama.rope.dimension_count": (4, 8)}, "rotate 8 of 16"),
        ({"llama.block_count": (4, 2)}, "do not fit the config"),
        ({"tokenizer.ggml.model": (8, "llama")}, "reads 'gpt2'"),
        ({"tokenizer.ggml.pre": (8, "unheard-of")}, "not supported"),
    ],
)
def test_variants_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_model(make_model(), tmp_path / "tiny.gguf", **changes)
    with pytest.raises(RegardError, match=message):
        import_model(tmp_path / "tiny.gguf", tmp_path / "tiny")


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    write_model(make_model(), tmp_path / "tiny.gguf")
    content = (tmp_path / "tiny.gguf").read_bytes()
    for damaged in (b"", b"GGUF", content[:-40], b"GGML" + content[4:], content[:300], content[:8] + b"\xff" * 16):
        with pytest.raises(DamagedError):
            parse(np.frombuffer(damaged, np.uint8), where="x.gguf")


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
    with pytest.raises(RegardError, match="chat template is stopped"):
        import_model(tmp_path / "tiny.gguf", tmp_path / "tiny")
    assert not (tmp_path / "tiny").exists()
