"""The parsers under test: each takes any bytes. A `RegardError` is the expected answer to bytes that are not valid."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

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
# The library that parses the header is not instrumented, but libFuzzer tells inputs apart by how often a loop runs.
COUNTS = (1, 2, 3, 4, 8, 16, 32, 128)  # what it tells apart
REASONS = ("the limit is", "header length", "UTF-8", "invalid type", "missing field", "JSON", "incomplete", "offset")
DTYPES = (torch.float32, torch.bfloat16, torch.float64, torch.float16, torch.int64, torch.int8, torch.bool)


def fuzz_config(content: bytes) -> None:
    """Read config.json."""
    document = _parse(content)
    with _expect_errors():
        config = ConfigReader(document if isinstance(document, dict) else {}, WHERE)
        read_settings(config, find_architecture(config), {}, config)


def fuzz_tokenizer(content: bytes) -> None:
    """Read tokenizer.json, encode and decode."""
    document = _parse(content)
    with _expect_errors():
        tokenizer = rewrite(document, find_roles({}, {}, {}, {}, document, None), 64, location=WHERE).tokenizer
        (ids,) = tokenizer.encode_ids([TEXT])
        tokenizer.decode(ids)
        tokenizer.normalize(TEXT)


def fuzz_gguf(content: bytes) -> None:
    """Read metadata, tensors and tokenizer of a GGUF file."""
    with _expect_errors():
        file = parse(np.frombuffer(content, np.uint8), location=WHERE)
        for tensor in file.tensors.values():
            if np.prod(tensor.shape, dtype=float) <= MAX_ELEMENTS:
                dequantize(tensor)
        with _expect_errors():
            read_config(file, location=WHERE)
        read_tokenizer(file.metadata, 64, location=WHERE)


def fuzz_safetensors(content: bytes) -> None:
    """Read a safetensors file."""
    SCRATCH.write_bytes(content)
    try:
        tensors = load_tensors(SCRATCH)
    except RegardError as error:
        for reason, count in zip(REASONS, COUNTS, strict=True):
            if reason in error.message:
                for _ in range(count):
                    pass
                return
        return
    for tensor in tensors.values():
        for _ in range(COUNTS[DTYPES.index(tensor.dtype) if tensor.dtype in DTYPES else -1]):
            pass


def fuzz_sentencepiece(content: bytes) -> None:
    """Read a SentencePiece model, encode and decode."""
    with _expect_errors():
        tokenizer = Tokenizer(sentencepiece.read_model(content, location=WHERE), location=WHERE)
        (ids,) = tokenizer.encode_ids([TEXT])
        tokenizer.decode(ids)


@contextmanager
def _expect_errors() -> Iterator[None]:
    """Suppress `RegardError`, unless it reports a panic of a Rust library: the check before it should have refused."""
    try:
        yield
    except RegardError as error:
        if type(error.__cause__).__name__ == "PanicException":
            raise AssertionError(str(error)) from error


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
