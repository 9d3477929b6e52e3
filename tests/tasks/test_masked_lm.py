"""Gaps in texts, filled by an encoder."""

from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import EncoderOnlyConfig
from regard.config.tokenizers import AnyTokenizerConfig, BpeConfig, ByteBpeConfig, UnigramConfig, WordLevelConfig
from regard.look.tokens import describe_token
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from regard.tasks.masked_lm import FillCandidate, FilledText, FillMask
from regard.text.learn import learn
from regard.text.pretokenize import SPACE_MARK
from regard.text.tokenizer_pair import TokenizerPair
from tests.text.factories import make_tokenizer


def test_a_gap_is_filled_by_what_stood_there(trained_encoders: dict[str, Path]) -> None:
    fill_mask = regard.load(trained_encoders["masked_lm"])
    assert isinstance(fill_mask, FillMask)
    first, second = fill_mask.fill(["red dog ___ blue cat", "old ___ finds new tree"], n_best=3)
    assert first.text == "red dog sees blue cat"
    assert second.text == "old house finds new tree"
    ((best, *others),) = first.gaps
    assert best.text == "sees"
    assert len(others) == 2
    assert best.probability > others[0].probability > others[1].probability


def test_gaps_at_the_edges_and_several_of_them(trained_encoders: dict[str, Path]) -> None:
    fill_mask = regard.load(trained_encoders["masked_lm"])
    assert isinstance(fill_mask, FillMask)
    (filled,) = fill_mask.fill(["red dog sees ___ ___"])
    assert len(filled.gaps) == 2
    assert filled.text.startswith("red dog sees")
    (marked,) = fill_mask.fill(["red dog [] blue cat"], gap="[]")
    assert marked.text == "red dog sees blue cat"
    with pytest.raises(RegardError, match="Text 2 has no gap"):
        fill_mask.fill(["red ___", "blue"])


def test_order_and_batches_change_nothing(trained_encoders: dict[str, Path]) -> None:
    fill_mask = regard.load(trained_encoders["masked_lm"])
    assert isinstance(fill_mask, FillMask)
    texts = ["red ___ sees", "old house finds new ___", "___ dog", "a long text with one ___ in the middle of it"]
    batched, alone = fill_mask.fill(texts), [fill_mask.fill([text], batch_tokens=1)[0] for text in texts]
    assert [result.text for result in batched] == [result.text for result in alone]


def test_filled_text_escapes_a_predicted_line_break() -> None:
    """A masked model may predict a line break; printed raw, it broke one output line into two."""
    filled = FilledText("a\nb", ((FillCandidate("\n", 0.75, 5), FillCandidate("\x1b", 0.25, 6)),))
    assert filled.to_lines("a ___ b", 2) == ["a⏎b", "  ⏎ 75.0%, \\x1b 25.0%"]


@pytest.mark.parametrize(
    "kind",
    [
        ByteBpeConfig(vocabulary=300),
        BpeConfig(vocabulary=200),
        UnigramConfig(vocabulary=60),
        WordLevelConfig(vocabulary=60),
    ],
)
def test_a_text_with_a_gap_is_tokenized_as_the_text_without_it(kind: AnyTokenizerConfig) -> None:
    sentences = ["red dog sees blue cat", "old house finds new tree"]
    trained_tokenizer = learn(sentences * 20, kind)
    settings = codec.preset(
        "encoder-small", {"d_model": 32, "source.vocabulary": trained_tokenizer.size, "encoder.layers": 1}
    )
    assert isinstance(settings, EncoderOnlyConfig)
    model = build(settings, seed=1)
    assert isinstance(model, EncoderOnly)
    fill_mask = FillMask(model, TokenizerPair.joint(trained_tokenizer), settings)
    row, whole = (
        fill_mask.encode_row(1, "red dog ___ blue cat", "___")[1:-1],
        trained_tokenizer.encode(sentences[0]).ids,
    )
    gap = row.index(trained_tokenizer.specials.mask)
    before, after = row[:gap], row[gap + 1 :]
    assert trained_tokenizer.decode(before).strip() == "red dog"
    assert (before, after) == (whole[: len(before)], whole[-len(after) :])
    assert "  " not in fill_mask.fill(["red dog ___ blue cat"])[0].text
    if kind.kind in ("bpe", "unigram"):  # a space mark stands for a space only
        joined = [trained_tokenizer.vocabulary[token] for token in fill_mask.encode_row(1, "red d___g", "___")]
        gap = joined.index("<mask>")
        assert joined[gap + 1].strip(SPACE_MARK) == "g"
        assert "".join(joined[1:gap]).endswith("d")
        assert joined[gap + 1].startswith("g")


def test_candidate_that_continues_a_word_keeps_its_mark() -> None:
    tokenizer = make_tokenizer(["where", "is", "?", "##ven"])
    assert tokenizer.token_texts(tokenizer.encode("isven").ids) == ("is", "##ven")
    settings = codec.preset("encoder-small", {"d_model": 32, "source.vocabulary": tokenizer.size, "encoder.layers": 1})
    assert isinstance(settings, EncoderOnlyConfig)
    model = build(settings, seed=1)
    assert isinstance(model, EncoderOnly)
    filled = FillMask(model, TokenizerPair.joint(tokenizer), settings).fill("where is ___?", n_best=tokenizer.size)
    texts = {candidate.text for candidate in filled.gaps[0]}
    assert {"where", "is", "?", "##ven"} <= texts
    assert describe_token(tokenizer, tokenizer.encode("isven").ids[1])["text"] == "##ven"


def test_gaps_are_marked_and_candidates_are_at_most_the_vocabulary(trained_encoders: dict[str, Path]) -> None:
    fill_mask = regard.load_fill_mask(trained_encoders["masked_lm"])
    with pytest.raises(RegardError, match="marks a gap is empty"):
        fill_mask.fill(["red dog ___"], gap="")
    (filled,) = fill_mask.fill(["red dog ___"], n_best=100_000)
    assert len(filled.gaps[0]) == fill_mask.tokenizers.source.size
