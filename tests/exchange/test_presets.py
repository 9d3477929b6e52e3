"""Presets of published models: as many parameters as the models of transformers, and the same outputs when small."""

from typing import Any

import pytest
import torch

from regard.config import codec
from regard.exchange.exportable import exportable_to
from regard.exchange.huggingface.architectures import ARCHITECTURES
from regard.exchange.mapping import to_regard
from regard.models.build import build
from regard.models.cost import cost
from regard.models.encoder_only import EncoderOnly
from tests.exchange.models import TOLERANCE, make_batch, max_difference, randomize_weights

transformers = pytest.importorskip("transformers")
ROBERTA = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
T5 = {
    "vocab_size": 32128, "d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 12, "num_heads": 12,
    "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False,
}  # fmt: skip
PUBLISHED: dict[
    str, tuple[str, str, dict[str, Any], int]
] = {  # the architecture, the settings of the published model, and the number of parameters with them
    "roberta": ("Roberta", "ForMaskedLM", ROBERTA, 124_697_433),
    "t5": ("T5", "ForConditionalGeneration", T5, 247_577_856),
}
RENAMED = {  # a RoBERTa is a BERT with other names
    "roberta.": "bert.",
    "lm_head.dense": "cls.predictions.transform.dense",
    "lm_head.layer_norm": "cls.predictions.transform.LayerNorm",
    "lm_head.": "cls.predictions.",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_has_the_parameters_of_the_published_model(name: str) -> None:
    prefix, suffix, settings, expected = PUBLISHED[name]
    config = getattr(transformers, f"{prefix}Config")(**settings)
    with torch.device("meta"):
        theirs = getattr(transformers, prefix + suffix)(config)
    parameters = {id(tensor): tensor.numel() for tensor in theirs.parameters()}
    if name == "t5":  # a new model ties its output matrix, the published files do not
        parameters[id(theirs.shared.weight)] = 2 * theirs.shared.weight.numel()
        assert theirs.lm_head.weight is theirs.shared.weight
    ours = cost(codec.preset(name), batch_size=1, source=1, target=1).parameters.total()
    assert sum(parameters.values()) == ours == expected


def test_t5_exports_to_t5() -> None:
    verdicts = {verdict.target: verdict for verdict in exportable_to(codec.preset("t5"))}
    assert verdicts["huggingface:T5ForConditionalGeneration"].is_exact


def test_a_small_roberta_gives_the_same_outputs() -> None:
    sizes: dict[str, Any] = {"vocab_size": 37, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 24, "max_position_embeddings": 42, "pad_token_id": 1}
    config = transformers.RobertaConfig(**ROBERTA | sizes)
    theirs = randomize_weights(transformers.RobertaForMaskedLM(config).eval())
    changes = {"d_model": 16, "source.vocabulary": 37, "encoder.layers": 2, "encoder.attention.heads": 4}
    changes |= {"encoder.feedforward.d_ff": 24, "encoder.position.length": 40}
    settings = codec.preset("roberta", changes)
    ours = build(settings, seed=0).eval()
    assert isinstance(ours, EncoderOnly)
    tensors = {}
    for name, tensor in theirs.state_dict().items():
        old, new = next((old, new) for old, new in RENAMED.items() if name.startswith(old))
        tensors[name.replace(old, new)] = tensor
    weight_map = ARCHITECTURES["BertForMaskedLM"].make_weight_map(settings, 40)
    ours.load_state_dict(to_regard(weight_map, tensors))
    tokens, valid = make_batch(20, seed=1)
    with torch.no_grad():
        logits = theirs(input_ids=tokens, attention_mask=valid.long()).logits
        assert max_difference(logits, ours(tokens, valid), valid) < TOLERANCE
