"""The parsers under test: each takes any bytes. A `RegardError` is the expected answer to bytes that are not valid."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from regard.base.errors import RegardError
from regard.base.parsing import parse_json
from regard.exchange.gguf.dequantize import dequantize
from regard.exchange.gguf.format import parse
from regard.exchange.gguf.read import read_config
from regard.exchange.gguf.tokenizer import read_tokenizer
from regard.exchange.huggingface.config_reader import ConfigReader
from regard.exchange.huggingface.read import find_architecture, find_roles, read_settings
from regard.exchange.huggingface.tokenizer_reader import rewrite
from regard.store.weights import load_tensors
from regard.text import sentencepiece
from regard.text.tokenizer import Tokenizer

WHERE = "fuzzed bytes"
MAX_ELEMENTS = 10_000  # of a tensor that is dequantized
TEXT = "A dog, 2 cats; ünïcode <pad> 犬"
MEMORY = Path("/dev/shm")  # noqa: S108 - files in memory, if the system has them
SCRATCH = Path(tempfile.gettempdir() if not MEMORY.is_dir() else MEMORY) / f"regard-fuzz-{os.getpid()}.safetensors"


def fuzz_config(content: bytes) -> None:
    """Read config.json."""
    document = _parse(content)
    with suppress(RegardError):
        config = ConfigReader(document if isinstance(document, dict) else {}, WHERE)
        read_settings(config, find_architecture(config), {})


def fuzz_tokenizer(content: bytes) -> None:
    """Read tokenizer.json, encode and decode."""
    document = _parse(content)
    with suppress(RegardError):
        tokenizer = rewrite(document, find_roles({}, {}, {}, {}, document, None), 64, where=WHERE).tokenizer
        (ids,) = tokenizer.encode_ids([TEXT])
        tokenizer.decode(ids)
        tokenizer.normalise(TEXT)


def fuzz_gguf(content: bytes) -> None:
    """Read metadata, tensors and tokenizer of a GGUF file."""
    with suppress(RegardError):
        file = parse(np.frombuffer(content, np.uint8), where=WHERE)
        for tensor in file.tensors.values():
            if np.prod(tensor.shape, dtype=float) <= MAX_ELEMENTS:
                dequantize(tensor)
        with suppress(RegardError):
            read_config(file, where=WHERE)
        read_tokenizer(file.metadata, 64, where=WHERE)


def fuzz_safetensors(content: bytes) -> None:
    """Read a safetensors file."""
    SCRATCH.write_bytes(content)
    with suppress(RegardError):
        load_tensors(SCRATCH)


def fuzz_sentencepiece(content: bytes) -> None:
    """Read a SentencePiece model, encode and decode."""
    with suppress(RegardError):
        tokenizer = Tokenizer(sentencepiece.read_model(content, where=WHERE), where=WHERE)
        (ids,) = tokenizer.encode_ids([TEXT])
        tokenizer.decode(ids)


def _parse(content: bytes) -> object:
    """Parse JSON; `read_json` turns the `ValueError` of malformed text into a `RegardError`."""
    try:
        return parse_json(content)
    except ValueError:
        return None


TARGETS: dict[str, Callable[[bytes], None]] = {
    "config": fuzz_config,
    "tokenizer": fuzz_tokenizer,
    "gguf": fuzz_gguf,
    "safetensors": fuzz_safetensors,
    "sentencepiece": fuzz_sentencepiece,
}
