"""`regard.save`: save a model that was not trained by a run."""

from pathlib import Path

import torch

from regard.base.arguments import as_path, check_type
from regard.base.errors import RegardError
from regard.base.files import AnyPath, backup_path
from regard.config.model import AnyModelConfig, BaseModelConfig
from regard.models.build import AnyModel, build
from regard.store.model_folder import has_tokenizer, write_model
from regard.store.weights import get_weights
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair


def save(
    folder: AnyPath,
    model: AnyModel,
    tokenizers: Tokenizer | TokenizerPair | None,
    config: AnyModelConfig,
    *,
    card: str | None = None,
    replace: bool = False,
) -> Path:
    """Save a model as a model folder, for `regard.load` and all commands.

    Args:
        folder: The folder to create.
        model: The model, as `regard.build(config)` returned it, with any weights.
        tokenizers: One tokenizer for both sides or a `TokenizerPair`; None for a model without text.
        config: The settings that the model was built from.
        card: Text of the model card, README.md. Default: the model's task and size.
        replace: Replace an older folder.

    Returns:
        The folder.

    Raises:
        RegardError: The folder exists, or model, tokenizers and config do not match.
    """
    path = as_path("folder", folder)
    check_type("model", model, torch.nn.Module, "a model from regard.build")
    check_type("tokenizers", tokenizers, Tokenizer | TokenizerPair | None, "a tokenizer, a TokenizerPair or None")
    check_type("config", config, BaseModelConfig, "model settings, for example regard.preset('tiny')")
    pair = TokenizerPair.joint(tokenizers) if isinstance(tokenizers, Tokenizer) else tokenizers
    if has_tokenizer(config) != (pair is not None):
        needs = "needs a tokenizer" if pair is None else "has no tokenizer"
        raise RegardError(f"A model for the task '{config.task}' {needs}.", location=str(path))
    weights = get_weights(model)
    with torch.device("meta"):
        expected = get_weights(build(config))
    for name in [*expected, *weights]:
        given, needed = (tuple(table[name].shape) if name in table else None for table in (weights, expected))
        if given != needed:
            message = f"The model's weight '{name}' has the shape {given}; the config needs {needed}."
            raise RegardError(message, location=str(path), hint="Pass the config that the model was built from.")
    size = sum(tensor.numel() for tensor in weights.values())
    card = card or f"# {config.task}\n\nA model of the {config.family} family with {size:,} parameters.\n"
    write_model(path, config, pair, weights, card, replace=replace, backup=backup_path(path))
    return path
