"""Tokens of a document: text, bytes, role and word."""

from collections.abc import Iterable, Sequence
from typing import Literal, cast

from regard.base.blobs import finite
from regard.look.document import Token, TokenInfo
from regard.tasks.pipeline import Pipeline
from regard.tasks.replay import DrawnInput, ModelRun
from regard.text.tokenizer import Tokenizer

Sequences = dict[Literal["source", "target"], list[Token]]


def describe_sequences(pipeline: Pipeline, run: ModelRun) -> Sequences:
    """Return the encoder's tokens, and the tokens that the decoder read and generated."""
    sequences: Sequences = {}
    if run.drawn is not None:
        sequences["source"] = _describe_vectors(run.drawn)
    elif run.input.source:
        sequences["source"] = describe_tokens(pipeline.tokenizers.source, run.input.source)
    if run.generated is not None:
        generation, best = run.generated.generation, run.generated.hypotheses[0]
        ids, prompt = [*generation.prompt, *best.tokens], len(generation.prompt)
        sequences["target"] = describe_tokens(generation.tokenizer, ids, best.logprobs, prompt)
    return sequences


def _describe_vectors(drawn: DrawnInput) -> list[Token]:
    """Return the encoder's input vectors as tokens: each is a separate word."""
    first = [Token(id=-1, word=None, text="class token", role="special")] * drawn.class_tokens
    return first + [Token(id=number, word=number, text=name, role="text") for number, name in enumerate(drawn.names)]


def describe_token(tokenizer: Tokenizer, token: int) -> TokenInfo:
    """Return text, role and, if they are not valid UTF-8, bytes of a token."""
    token_bytes = tokenizer.token_bytes
    (text,) = tokenizer.token_texts([token])
    if token in token_bytes.control:
        return TokenInfo(text=text, role="special")
    content = token_bytes.bytes[token]
    info = TokenInfo(text=text, role="text")
    if "\ufffd" in text and not _is_utf8(content):
        info["bytes"] = content.hex()
    return info


def describe_tokens(
    tokenizer: Tokenizer, ids: Sequence[int], logprobs: Sequence[float] | None = None, prompt: int = 0
) -> list[Token]:
    """Return the tokens of a sequence.

    Args:
        tokenizer: The tokenizer of the sequence.
        ids: Its token ids.
        logprobs: Log-probability of each token after the prompt; None if no token was generated.
        prompt: Number of first tokens that were given.
    """
    tokens = []
    for index, (token, word) in enumerate(zip(ids, tokenizer.word_ids(ids), strict=True)):
        entry = cast("Token", {"id": token, "word": word, **describe_token(tokenizer, token)})
        if logprobs is not None and index < prompt:
            entry["prompt"] = True
        elif logprobs is not None:
            entry["logprob"] = finite(logprobs[index - prompt])
        tokens.append(entry)
    return tokens


def describe_vocabulary(tokenizer: Tokenizer, ids: Iterable[int]) -> dict[str, TokenInfo]:
    """Return the tokens of a vocabulary by id; ids below 0 are left out."""
    return {str(token): describe_token(tokenizer, token) for token in sorted(set(ids)) if token >= 0}


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
