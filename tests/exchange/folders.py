"""Small models of Regard in folders, with a tokenizer of the right size, and their counterparts in `transformers`."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from regard.base import extras
from regard.config.inputs import TokensConfig
from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig
from regard.config.tokenizers import CharacterLevelConfig
from regard.exchange.export import ExportOptions, export_model
from regard.models.build import AnyModel, build
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair
from tests.exchange.cases import CASES, Case
from tests.exchange.models import parse_settings, randomize_weights

CHARACTERS = " .,abcdefghijklmnopqrstuvwxyzäöü?!-'"
SPECIAL_TOKENS = 7
FOLDER_CASES = [
    *("marian-relu", "marian-scaled-bias", "marian-separate-bias=True", "pegasus-gelu", "pegasus-scaled-bias"),
    *("bart-silu", "bart-interleaved", "mbart-gelu_tanh", "mbart-halves", "t5-plain-tied=True", "t5-gated-tied=False"),
    *("gpt2-tied", "gpt2-halves", "llama-both-biases", "llama-key-dim", "llama-tied", "qwen2-silu", "qwen3-bias"),
    *("bert-mlm-gelu", "bert-classes-types=0", "bert-tags-halves", "bert-none-gelu"),
    *("esm-mlm", "esm-classes", "esm-tags", "esm-none"),
]
"""One or more cases of each architecture."""


@cache
def make_tokenizer(size: int) -> Tokenizer:
    """Make a character-level tokenizer of this size."""
    tokenizer = learn([CHARACTERS[: size - SPECIAL_TOKENS]], CharacterLevelConfig())
    assert tokenizer.size == size
    return tokenizer


def make_tokenizers(settings: AnyModelConfig) -> TokenizerPair:
    """Make the tokenizers of a model: one of its own for a target with embeddings of its own."""
    if isinstance(settings, EncoderDecoderConfig) and isinstance(settings.target, TokensConfig):
        source: Any = settings.source
        return TokenizerPair(make_tokenizer(source.vocabulary), make_tokenizer(settings.target.vocabulary))
    tokens: Any = settings.tokens if isinstance(settings, DecoderOnlyConfig) else settings.source
    return TokenizerPair.joint(make_tokenizer(tokens.vocabulary))


def write_case(name: str, folder: Path) -> tuple[AnyModel, AnyModelConfig]:
    """Write the model folder of a case, with random weights."""
    case: Case = CASES[name]
    settings = parse_settings(case.settings | {"languages": ["en", "de"]})
    model = build(settings, seed=0)
    randomize_weights(model)
    write_model(folder, settings, make_tokenizers(settings), get_weights(model), "# Case\n")
    return model, settings


def export_unchecked(model: Path, folder: Path, options: ExportOptions | None = None) -> Path:
    """Export without a parity check, which takes most of the time, for tests that compare the export themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(extras.EXTRAS, "huggingface", (("no_such_module",), ""))
        return export_model(model, "huggingface", folder, options)[0]


def load_theirs(folder: Path, auto_class: str, **arguments: Any) -> nn.Module:
    """Load a folder with an Auto class; no tensor may be missing or unexpected."""
    transformers = pytest.importorskip("transformers")
    if auto_class == "AutoModel":
        arguments["add_pooling_layer"] = False
    module, info = getattr(transformers, auto_class).from_pretrained(
        folder, output_loading_info=True, attn_implementation="eager", **arguments
    )
    assert not any(info.values()), info
    return module.eval()
