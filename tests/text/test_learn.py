"""Learning is deterministic, respects the vocabulary size, and raises helpful errors."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from random import Random

import pytest

from regard.base.errors import RegardError
from regard.config.tokenizers import (
    AnyTokenizerConfig,
    BpeConfig,
    ByteBpeConfig,
    ByteLevelConfig,
    SpecialsConfig,
    UnigramConfig,
    WordLevelConfig,
)
from regard.text import learn as learn_module
from regard.text.learn import learn
from tests.text.factories import KINDS, TEXT, get_tokenizer, read_shared_lines

SCRIPT = """
import json, random, sys
from tests.text.factories import KINDS, TEXT
from regard.text.learn import learn
texts = TEXT * 3
random.Random(int(sys.argv[1])).shuffle(texts)
print(json.dumps({name: learn(texts, settings).fingerprint for name, settings in KINDS.items()}))
"""


def test_same_text_gives_same_file() -> None:
    """Other process, hash seed, number of threads and order of lines."""
    fingerprints = []
    for seed in ("1", "2"):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "TOKENIZERS_PARALLELISM": "true" if seed == "1" else "false",
        }
        run = [sys.executable, "-c", SCRIPT, seed]
        result = subprocess.run(run, capture_output=True, text=True, env=environment, check=True)  # noqa: S603
        fingerprints.append(json.loads(result.stdout))
    assert fingerprints[0] == fingerprints[1]
    assert len(set(fingerprints[0].values())) == len(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [ByteBpeConfig(), BpeConfig(), UnigramConfig(), WordLevelConfig()], ids=lambda settings: settings.kind
)
@pytest.mark.parametrize("name", ["multi30k/train.de.gz", "tinyshakespeare/input.txt.gz", "tatoeba_deen/train.de.gz"])
def test_same_corpus_gives_same_file(name: str, settings: AnyTokenizerConfig) -> None:
    texts = read_shared_lines(name, 30_000)
    assert learn(texts, settings) == learn(Random(1).sample(texts, len(texts)), settings)


MEMORY = """
import resource, sys
from regard.config.run import *
from regard.text.learn import learn
words = [f"word{number}" for number in range(2000)]
texts = (" ".join(words[start : start + 20]) for _ in range(int(sys.argv[1])) for start in range(0, 2000, 20))
texts = [" ".join(texts)] if sys.argv[3] == "one text" else texts
learn(texts, {"bpe": Bpe, "byte_bpe": ByteBpe, "unigram": Unigram, "character": CharacterLevel}[sys.argv[2]]())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["byte_bpe", "bpe", "unigram", "character"])
def test_memory_does_not_grow_with_the_text(kind: str) -> None:
    peaks = [_measure_memory(times, kind, "lines") for times in (30, 300)]  # 0.5 and 5 million characters
    assert peaks[1] < 1.1 * peaks[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["byte_bpe", "bpe", "unigram"])
def test_memory_hardly_grows_with_one_long_text(kind: str) -> None:
    peaks = [_measure_memory(times, kind, "one text") for times in (60, 600)]  # 1 and 10 million characters
    assert peaks[1] < 1.5 * peaks[0]  # both hold the text itself


def _measure_memory(times: int, kind: str, form: str) -> int:
    """Return the peak in kilobytes."""
    run = [sys.executable, "-c", MEMORY, str(times), kind, form]
    return int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)  # noqa: S603


def test_special_tokens_count_towards_the_size() -> None:
    assert get_tokenizer("byte_bpe").size == 310
    assert get_tokenizer("bpe").size == 120
    assert get_tokenizer("unigram").size == 76
    assert get_tokenizer("word").size == 45
    assert get_tokenizer("byte").size == 256 + 7
    tagged = get_tokenizer("byte_bpe tagged")
    assert tagged.size == 310
    assert set(tagged.specials.languages) == {"de", "en"}
    assert list(tagged.specials.extra) == ["<url>", "@@"]


def test_text_is_never_encoded_as_special_tokens() -> None:
    """The training text is full of "<pad>": no learned token may equal it, or it would have the special id."""
    texts = ["<pad> <pad></s> <unk>"] * 50
    for settings in (
        ByteBpeConfig(vocabulary=400),
        BpeConfig(vocabulary=60),
        UnigramConfig(vocabulary=60),
        WordLevelConfig(),
    ):
        tokenizer = learn(texts, settings)
        ids = tokenizer.encode(texts[0]).ids
        assert not set(ids) & (tokenizer.specials.control - {tokenizer.specials.unk})
        if settings.kind != "word":
            assert tokenizer.decode(ids) == texts[0]
            assert tokenizer.specials.unk not in ids


@pytest.mark.parametrize("kind", [ByteBpeConfig, BpeConfig, UnigramConfig])
def test_special_token_may_equal_a_word(kind: type[ByteBpeConfig | BpeConfig | UnigramConfig]) -> None:
    """Merges that would produce its text, and those that need them, are removed; the word is segmented differently."""
    texts = [" peck pecker pecking peckers pecked x"] * 9
    tokenizer = learn(texts, kind(vocabulary=300, specials=SpecialsConfig(pad="peck", mask="pe", extra=("ing",))))
    for text in (texts[0], "xpeckx xpex pe xpeck pex"):
        ids = tokenizer.encode(text).ids
        assert tokenizer.decode(ids) == text
        assert not set(ids) & tokenizer.specials.control
    assert tokenizer.vocabulary[tokenizer.specials.pad] == "peck"
    assert tokenizer.vocabulary.count("peck") == tokenizer.vocabulary.count("pe") == 1
    assert len(tokenizer.vocabulary) == tokenizer.size == max(tokenizer.specials.extra.values()) + 1


def test_extra_token_is_one_token() -> None:
    for name in ("byte_bpe tagged", "bpe tagged", "unigram tagged", "character tagged", "byte_bpe normal"):
        tokenizer = get_tokenizer(name)
        ids = tokenizer.encode("peck<url>peck @@ <url>").ids
        assert ids.count(tokenizer.specials.extra["<url>"]) == 2
        assert ids.count(tokenizer.specials.extra["@@"]) == 1
        assert tokenizer.decode(ids) == "peck<url>peck @@ <url>"
        if name.startswith(("byte", "character")):
            assert tokenizer.word_ids(ids)[-1] == 2, "words are what spaces separate"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (ByteBpeConfig(vocabulary=200), "too small for 7 special tokens and the 256 bytes"),
        (BpeConfig(vocabulary=20), "too small for 7 special tokens and the characters"),
        (UnigramConfig(vocabulary=20), "not large enough"),
        (WordLevelConfig(vocabulary=5), "too small for 7 special tokens"),
        (ByteBpeConfig(specials=SpecialsConfig(pad="_")), "'_' is too short"),
        (ByteBpeConfig(specials=SpecialsConfig(extra=("<s>",))), "both a special and an extra"),
    ],
)
def test_impossible_settings_raise(settings: AnyTokenizerConfig, message: str) -> None:
    with pytest.raises(RegardError, match=message) as raised:
        learn(TEXT, settings)
    assert raised.value.hint


@pytest.mark.parametrize("settings", [settings for settings in KINDS.values() if settings.kind != "byte"])
@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_no_text_raises(settings: AnyTokenizerConfig, texts: list[str]) -> None:
    with pytest.raises(RegardError, match="no text to learn from"):
        learn(texts, settings)


def test_byte_level_needs_no_text() -> None:
    assert learn([], ByteLevelConfig()) == get_tokenizer("byte")


def test_too_many_characters_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn_module, "MAX_CHARACTERS", 1000)

    def endless() -> Iterator[str]:
        while True:
            yield TEXT[0]

    with pytest.raises(RegardError, match="more than 1,000 characters"):
        learn(endless(), ByteBpeConfig(vocabulary=300))


def test_reading_error_is_passed_on() -> None:
    def broken() -> Iterator[str]:
        yield TEXT[0]
        raise RegardError("The disk is gone.", location="a.en:2")

    for settings in KINDS.values():
        if settings.kind != "byte":
            with pytest.raises(RegardError, match="The disk is gone"):
                learn(broken(), settings)


@pytest.mark.parametrize("text", ["a", "aa", "▁", "\0", " ", "\n", "é é", "x" * 10_000])
@pytest.mark.parametrize("kind", [ByteBpeConfig, BpeConfig, UnigramConfig, WordLevelConfig])
def test_very_small_and_odd_texts(
    kind: type[ByteBpeConfig | BpeConfig | UnigramConfig | WordLevelConfig], text: str
) -> None:
    tokenizer = learn([text], kind(vocabulary=300))
    assert tokenizer.size <= 300
    if kind is ByteBpeConfig:
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
