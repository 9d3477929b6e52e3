"""Pseudo-perplexity of masked language models."""

import math
from pathlib import Path

import pytest
import torch

import regard
from regard.base.errors import RegardError
from regard.tasks.encoding import add_special_tokens
from regard.tasks.masked_lm import FillMask
from regard.tasks.pseudo_likelihood import pseudo_likelihood
from tests.cli.factories import evaluate_json
from tests.commands import run_command


def test_pseudo_perplexity_masks_every_token_once(trained_encoders: dict[str, Path], tmp_path: Path) -> None:
    fill_mask = regard.load(trained_encoders["masked_lm"])
    assert isinstance(fill_mask, FillMask)
    texts = ["red dog sees blue cat", "old house", "a new tree finds red dog"]
    result = pseudo_likelihood(fill_mask, texts, batch_tokens=20)
    tokenizer, total, count = fill_mask.tokenizers.source, 0.0, 0
    for text, logprobs in zip(texts, result.logprobs, strict=True):
        ids = tokenizer.encode_ids([text])[0]
        assert len(logprobs) == len(ids)
        for position, token in enumerate(ids):
            row = add_special_tokens(tokenizer, [*ids[:position], tokenizer.specials.mask, *ids[position + 1 :]])
            with torch.inference_mode():
                logits = fill_mask.model.eval()(torch.tensor([row]))[0, 1 + position]
            logprob = float(logits.log_softmax(dim=-1)[token])
            assert logprobs[position] == pytest.approx(logprob, abs=1e-5)
            total, count = total + logprob, count + 1
    assert result.tokens == count
    assert result.pseudo_perplexity == pytest.approx(math.exp(-total / count), rel=1e-4)
    (tmp_path / "text").write_text("\n".join(texts) + "\n")
    evaluation = evaluate_json(trained_encoders["masked_lm"], "--text", tmp_path / "text", "--lines")
    assert evaluation["pseudo_likelihood"]["pseudo_perplexity"] == pytest.approx(result.pseudo_perplexity, rel=1e-4)
    shown = run_command(
        "evaluate", str(trained_encoders["masked_lm"]), "--text", str(tmp_path / "text"), "--window", "4"
    )
    assert "pseudo-perplexity" in shown.output
    with pytest.raises(RegardError, match="A window cannot have 1 token"):
        pseudo_likelihood(fill_mask, texts, window=1)
