"""`tokenizer.json` holds everything, roles included, and Hugging Face reads it with the same ids."""

import json
import pickle
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.base.files import sha256
from regard.text.tokenizer import Tokenizer
from tests.text.factories import KINDS, TEXT, get_tokenizer

TEXTS = ["Peter Piper picked", " two  spaces ", "größere Äpfel für 3,50 €", "<url> x@@y", ""]
SPECIAL_TEXTS = ["<pad> and </s>", "<2de> <mask><unk>"]


@pytest.mark.parametrize("name", KINDS)
def test_file_holds_the_whole_tokenizer(name: str, tmp_path: Path) -> None:
    tokenizer = get_tokenizer(name)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    assert tokenizer.fingerprint == sha256(path)
    loaded = Tokenizer.load(path)
    assert loaded == tokenizer
    assert loaded.specials == tokenizer.specials
    assert [loaded.encode(text) for text in TEXT] == [tokenizer.encode(text) for text in TEXT]
    copy = pickle.loads(pickle.dumps(tokenizer))  # noqa: S301 - for worker processes
    assert copy == tokenizer
    assert copy.encode(TEXT[0]) == tokenizer.encode(TEXT[0])


@pytest.mark.parametrize("name", KINDS)
def test_hugging_face_reads_it_with_the_same_ids(name: str, tmp_path: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    tokenizer = get_tokenizer(name)
    tokenizer.save(tmp_path / "tokenizer.json")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert len(theirs) == tokenizer.size
    assert theirs(TEXTS)["input_ids"] == tokenizer.encode_ids(TEXTS)
    strict = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"), split_special_tokens=True)
    assert strict(TEXTS + SPECIAL_TEXTS)["input_ids"] == tokenizer.encode_ids(TEXTS + SPECIAL_TEXTS)
    assert theirs.convert_ids_to_tokens(tokenizer.specials.pad) == "<pad>"
    if name in ("byte_bpe", "bpe", "unigram", "character", "byte"):
        ids = tokenizer.encode(" Peter  Piper picked ").ids
        assert theirs.decode(ids, clean_up_tokenization_spaces=False) == " Peter  Piper picked "


def test_special_tokens_have_no_word_id() -> None:
    tokenizer = get_tokenizer("byte_bpe")
    ids = tokenizer.encode("a peck").ids
    special = tokenizer.specials
    assert tokenizer.word_ids([special.bos, *ids, special.eos]) == [None, *tokenizer.word_ids(ids), None]
    assert tokenizer.decode([special.bos, *ids, special.eos, special.pad]) == "a peck"


def test_invalid_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(RegardError, match="cannot be read"):
        Tokenizer.load(path)
    for content in (b"", b"{}", b"\xff", b"[1]", b'{"version": "1.0"}'):
        path.write_bytes(content)
        with pytest.raises(RegardError, match="not a valid tokenizer file") as raised:
            Tokenizer.load(path)
        assert raised.value.location == str(path)
    document = json.loads(get_tokenizer("bpe").content)
    for part, message in (
        ("post_processor", "no token for the role: pad"),
        ("decoder", "Regard does not support this tokenizer's `decoder`"),
    ):
        path.write_text(json.dumps(document | {part: None if part == "post_processor" else {"type": "CTC"} | CTC}))
        with pytest.raises(RegardError, match=message):
            Tokenizer.load(path).decode([1])


CTC = {"pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}


def test_invalid_text_is_refused() -> None:
    for encode in (
        lambda text: get_tokenizer("bpe").encode(text),
        lambda text: get_tokenizer("bpe").encode_ids(["a", text]),
    ):
        with pytest.raises(RegardError, match=r"Character 1 .* lone surrogate .U.D800"):
            encode("x\ud800")
        with pytest.raises(TypeError):
            encode(3)
