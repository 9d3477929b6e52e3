"""SentencePiece models: ours are read by `sentencepiece` with equal ids, foreign ones are read here with equal ids."""

import gzip
import io
import json
import random
from importlib.resources import files
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.tokenizers import BpeConfig, NormalizeConfig, SpecialsConfig, UnigramConfig
from regard.text import sentencepiece
from regard.text.learn import learn
from regard.text.subword_regularization import UnigramSampling
from regard.text.tokenizer import Tokenizer

spm = pytest.importorskip("sentencepiece")

ODD = [
    *("", " ", "  ", " a leading space", "a trailing space ", "two  spaces", "\ta tab", "line\nbreak", "\u00a0"),
    *("<unk> <pad> </s> <s>", "<0x41> <0xFF>", "日本語", "💩 ß é", "e\u0301", "ﬁ", "▁mark▁▁", "x" * 300, "\u0000"),
]


def read_demo() -> list[str]:
    content = gzip.decompress((files("regard") / "assets/demo/train.tsv.gz").read_bytes()).decode()
    return [text for line in content.splitlines()[:1000] for text in line.split("\t")[:2]]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return read_demo()


@pytest.fixture(scope="module")
def tokenizer(texts: list[str]) -> Tokenizer:
    return learn(texts, UnigramConfig(vocabulary=700, byte_fallback=True))


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> bytes:
    return sentencepiece.write_model(tokenizer.document)


def train_foreign(texts: list[str], **options: object) -> bytes:
    output = io.BytesIO()
    settings = {"vocab_size": 400, "minloglevel": 2, "hard_vocab_limit": False, "num_threads": 1} | options
    spm.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=output, **settings)
    return output.getvalue()


def test_no_text_is_unknown_with_byte_fallback(tokenizer: Tokenizer, texts: list[str]) -> None:
    for text in [*ODD[:-3], *texts[:100]]:  # not ▁: it is a space, as in SentencePiece
        ids = tokenizer.encode_ids([text])[0]
        assert tokenizer.specials.unk not in ids
        assert tokenizer.decode(ids) == text
        decoder = tokenizer.make_streaming_decoder()
        assert "".join(decoder.push(token) for token in ids) + decoder.finish() == text


def test_a_byte_name_in_a_text_is_not_the_byte(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_ids(["<0x41>"])[0]
    assert tokenizer.vocabulary.index("<0x41>") not in ids


def test_sampled_segmentations_of_bytes_are_the_text(tokenizer: Tokenizer) -> None:
    sampler = UnigramSampling(tokenizer, probability=1.0)
    for sample in range(20):
        ids = sampler.encode_ids("日本 the red dog 💩", seed=1, epoch=1, sample=sample)
        assert tokenizer.decode(ids) == "日本 the red dog 💩"


def test_sentencepiece_gives_our_ids_and_texts(tokenizer: Tokenizer, model: bytes, texts: list[str]) -> None:
    processor = spm.SentencePieceProcessor(model_proto=model)
    lines = [*ODD, *texts]
    ours = tokenizer.encode_ids(lines)
    assert processor.encode(lines) == ours
    assert [processor.decode(ids) for ids in ours] == [tokenizer.decode(ids) for ids in ours]
    specials = tokenizer.specials
    assert (processor.bos_id(), processor.eos_id()) == (specials.bos, specials.eos)
    assert (processor.pad_id(), processor.unk_id()) == (specials.pad, specials.unk)
    assert processor.vocab_size() == tokenizer.size


def test_our_model_is_read_back(tokenizer: Tokenizer, model: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.model").write_bytes(model)
    again = Tokenizer.load(tmp_path / "a.model")
    assert again.specials == tokenizer.specials
    assert again.encode_ids(ODD) == tokenizer.encode_ids(ODD)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False, "pad_id": 3},
        {"user_defined_symbols": ["<term>"], "normalization_rule_name": "nmt_nfkc_cf"},
        {"split_by_whitespace": False},
    ],
    ids=["defaults", "identity", "user-defined", "no-split"],
)
def test_a_foreign_model_gives_equal_ids(options: dict[str, object], texts: list[str]) -> None:
    content = train_foreign(texts, **options)
    processor, ours = spm.SentencePieceProcessor(model_proto=content), Tokenizer(sentencepiece.read_model(content))
    lines = [line for line in ODD if "<0x" not in line and "\u0000" not in line] + texts
    assert [ours.encode_ids([line])[0] for line in lines] == processor.encode(lines)
    assert ours.specials.eos == processor.eos_id()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (BpeConfig(vocabulary=300), "not a unigram model"),
        (UnigramConfig(vocabulary=300, normalize=NormalizeConfig(form="nfkc")), "normalizes text"),
        (UnigramConfig(vocabulary=300, specials=SpecialsConfig(extra=("<term>",))), "extra tokens"),
    ],
)
def test_what_sentencepiece_cannot_represent_is_refused(
    settings: BpeConfig | UnigramConfig, reason: str, texts: list[str]
) -> None:
    with pytest.raises(RegardError, match=reason):
        sentencepiece.write_model(learn(texts[:200], settings).document)


def test_a_bpe_model_is_refused(texts: list[str]) -> None:
    with pytest.raises(RegardError, match="only unigram models"):
        sentencepiece.read_model(train_foreign(texts, model_type="bpe"))


def test_damaged_models_are_errors(model: bytes) -> None:
    """Every cut and many mutations: a RegardError or a tokenizer, nothing else."""
    generator = random.Random(1)
    outcomes = {"error": 0, "tokenizer": 0}
    small = model[:2000]
    cases = [small[:length] for length in range(0, 2000, 7)]
    for _ in range(300):
        damaged = bytearray(model if generator.random() < 0.1 else small)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        cases.append(bytes(damaged))
    for case in cases:
        try:
            json.loads(sentencepiece.read_model(case))
            outcomes["tokenizer"] += 1
        except RegardError:
            outcomes["error"] += 1
    assert min(outcomes.values()) > 0


def test_a_length_beyond_the_file_allocates_nothing() -> None:
    with pytest.raises(RegardError, match="extends beyond its message"):
        sentencepiece.read_model(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
    with pytest.raises(RegardError, match="not terminated"):
        sentencepiece.read_model(b"\xff" * 100)
