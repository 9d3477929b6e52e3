"""Check that a model and its tokenizers match. This module does not import torch."""

from regard.base.errors import RegardError
from regard.config.inputs import TokensConfig
from regard.config.model import AnyModelConfig, EncoderDecoderConfig, EncoderOnlyConfig
from regard.text.tokenizer_pair import TokenizerPair


def check_vocabulary_sizes(settings: AnyModelConfig, tokenizers: TokenizerPair, *, location: str) -> None:
    """Raise `RegardError` if the vocabulary sizes of the model and its tokenizers differ."""
    for side, expected, actual in _list_vocabulary_sizes(settings, tokenizers):
        if expected != actual:
            raise RegardError(
                f"The model has {expected} {side} tokens, the tokenizer has {actual}.",
                location=location,
                hint="Use the tokenizer that the model was trained with.",
            )


def _list_vocabulary_sizes(settings: AnyModelConfig, tokenizers: TokenizerPair) -> list[tuple[str, int, int]]:
    match settings:
        case EncoderDecoderConfig():
            sizes = [("target", settings.target_tokens.vocabulary, tokenizers.target.size)]
            if isinstance(settings.source, TokensConfig):
                sizes.append(("source", settings.source.vocabulary, tokenizers.source.size))
            return sizes
        case EncoderOnlyConfig():
            if isinstance(settings.source, TokensConfig):
                return [("source", settings.source.vocabulary, tokenizers.source.size)]
            return []
    return [("text", settings.tokens.vocabulary, tokenizers.source.size)]
