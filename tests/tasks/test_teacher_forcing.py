"""Scores of long texts in windows."""

import pytest
import torch

from regard.tasks.scorer import Scorer
from regard.tasks.teacher_forcing import encode_windows
from tests.tasks.factories import (
    TEXTS,
    TOLERANCE,
    make_generator_settings,
    make_lm_scorer,
    make_tokenizer,
    make_tokenizers,
)


def test_every_token_is_scored_once_with_the_longest_context() -> None:
    scorer = make_lm_scorer()
    text = " ".join(TEXTS)
    ids = make_tokenizer().encode_ids([text])[0]
    tokens = [make_tokenizer().specials.bos, *ids, make_tokenizer().specials.eos]
    for size in (2, 5, 8, len(tokens) - 1, len(tokens)):
        rows = encode_windows([text, "two"], make_tokenizers(), make_generator_settings(), size)
        counted = [label for row in rows if row.text_index == 0 for label in row.new_labels]
        assert counted == tokens[1:]
        assert all(len(row.inputs) == len(row.labels) <= size for row in rows)
        assert all(row.overlap == size - size // 2 for row in rows[1:] if row.text_index == 0)
    (result,) = scorer.score([text], window=8)
    logprobs = _reference_window_logprobs(scorer, tokens[4:12])  # the second window reads tokens 4 to 11
    assert result.logprobs[8:12] == pytest.approx(
        [float(logprobs[position, tokens[position + 5]]) for position in range(4, 8)], abs=TOLERANCE
    )
    assert scorer.score([text], window=len(tokens))[0].logprobs == pytest.approx(
        scorer.score([text])[0].logprobs, abs=TOLERANCE
    )


def _reference_window_logprobs(scorer: Scorer, inputs: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return scorer.model(torch.tensor([inputs]))[0].log_softmax(dim=-1)  # type: ignore[call-arg]
