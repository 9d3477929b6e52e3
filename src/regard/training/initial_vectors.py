"""Initialize embeddings with the vectors of another model, such as word2vec's: `model.source.vectors`.

The two models may have different tokenizers. A row is copied from the token with the same text if both or neither begin
or end a word; other rows keep their random initialization.
"""

from pathlib import Path

import torch
from torch import nn

from regard.base.errors import RegardError
from regard.config.codec import MODEL_FILES
from regard.config.inputs import TokensConfig
from regard.config.model import AnyModelConfig
from regard.models.inputs import TokenInput
from regard.store.model_path import MODEL, find_model
from regard.tasks.token_vectors import TokenVectors, load_token_vectors
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.events import Listener, Message

TABLES = ("source", "target", "tokens")


def find_vectors(settings: AnyModelConfig) -> dict[str, Path]:
    """Return the vector folders by the name of the model's embedding."""
    tables = {name: getattr(settings, name, None) for name in TABLES}
    return {
        name: Path(table.vectors) for name, table in tables.items() if isinstance(table, TokensConfig) and table.vectors
    }


def clear_vectors(settings: AnyModelConfig) -> AnyModelConfig:
    """Return the settings without the folders, which a trained model no longer needs."""
    changes = {name: getattr(settings, name).model_copy(update={"vectors": None}) for name in find_vectors(settings)}
    return settings.model_copy(update=changes)


def check_vectors(settings: AnyModelConfig) -> None:
    """Raise RegardError if a folder has no model, or one with a different width."""
    for name, folder in find_vectors(settings).items():
        width = MODEL_FILES.load(find_model(folder) / MODEL).d_model
        if width != settings.d_model:
            message = f"Its vectors have {width} dimensions, but the model has d_model = {settings.d_model}."
            hint = f"Set model.d_model = {width}, or train vectors with {settings.d_model} dimensions."
            raise RegardError(message, location=f"model.{name}.vectors = {folder}", hint=hint)


def copy_vectors(model: nn.Module, settings: AnyModelConfig, tokenizers: TokenizerPair, emit: Listener) -> None:
    """Copy matching rows into the embeddings of a new model and report how many.

    Raises:
        RegardError: The folder has no model with token embeddings, or one with a different width.
    """
    check_vectors(settings)
    for name, folder in find_vectors(settings).items():
        vectors = _load(folder, is_target=name == "target")
        tokenizer = tokenizers.target if name == "target" else tokenizers.source
        rows, their_rows = _match(tokenizer, vectors.tokenizer)
        part = getattr(model, name)
        assert isinstance(part, TokenInput)  # noqa: S101 - a table of tokens
        with torch.no_grad():
            part.embedding.weight[rows] = torch.from_numpy(vectors.vectors)[their_rows].to(part.embedding.weight)
        emit(
            Message(
                f"The vectors of {folder} initialize {len(rows):,} of {tokenizer.size:,} tokens (model.{name}); the "
                "others are random."
            )
        )


def _load(folder: Path, *, is_target: bool) -> TokenVectors:
    """Load the vectors of a side, or the only ones of a one-sided model."""
    has_target = MODEL_FILES.load(find_model(folder) / MODEL).family == "encoder_decoder"
    return load_token_vectors(folder, is_target=is_target and has_target)


def _match(tokenizer: Tokenizer, other: Tokenizer) -> tuple[list[int], list[int]]:
    """Return the tokens shared with the other tokenizer, and their ids there."""
    ours, theirs = _list_texts(tokenizer), _list_texts(other)
    texts = [text for text in ours if text in theirs]
    return [ours[text] for text in texts], [theirs[text] for text in texts]


def _list_texts(tokenizer: Tokenizer) -> dict[tuple[bytes, bool], int]:
    """Return token ids by text without spaces and by whether the token begins or ends a word."""
    table = tokenizer.token_bytes
    return {
        (text.strip(b" ") or text, table.is_start[token] or table.is_end[token]): token
        for token, text in enumerate(table.bytes)
        if token not in table.control and token != tokenizer.specials.unk
    }
