"""Words of outputs, and their log-odds."""

import math
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.blame.question import ask, compute_log_odds, find_word, to_log_odds
from regard.blame.run import open_run
from regard.config.tokenizers import ByteBpeConfig
from regard.tasks.load import load
from regard.text.learn import learn
from tests.blame.runs import QUESTION


def test_word_is_found_in_the_model_output(planted_run: Path) -> None:
    pipeline, _ = open_run(planted_run)
    question = ask(pipeline, QUESTION, "Brot")
    translation = pipeline.translate(QUESTION)  # type: ignore[attr-defined]
    assert question.row.labels == list(translation.tokens[:3])
    assert question.row.new_labels == [translation.tokens[2]]
    (log_odds,) = compute_log_odds(pipeline.make_scorer(1.0), [question])
    assert log_odds == pytest.approx(to_log_odds(translation.logprobs[2]), abs=1e-3)
    with pytest.raises(RegardError, match="does not contain 'Mond': Hund findet Brot"):
        ask(pipeline, QUESTION, "Mond")


def test_whole_words_are_preferred_to_parts() -> None:
    tokenizer = learn(["Er bist ist isten."] * 9, ByteBpeConfig(vocabulary=300))
    (tokens,) = tokenizer.encode_ids(["bist ist isten."])
    span = find_word(tokens, tokenizer, "ist")
    assert span is not None
    assert tokenizer.decode(tokens[: span[0]]) == "bist"
    part = find_word(tokens, tokenizer, "ten")
    assert part is not None
    assert "ten" in tokenizer.decode(tokens[slice(*part)])
    assert find_word(tokens, tokenizer, "Hund") is None


def test_log_odds_of_a_certain_word_are_finite() -> None:
    assert to_log_odds(0.0) == pytest.approx(-math.log(1e-12))


def test_exported_model_has_no_run(planted_run: Path) -> None:
    load(planted_run / "best")
    with pytest.raises(RegardError, match="not a run folder"):
        open_run(planted_run / "best")
