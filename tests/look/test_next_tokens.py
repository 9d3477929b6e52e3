"""Next-token probabilities at each position of the output."""

import math

import pytest
import torch

from regard.look.build import look_into
from regard.look.document import to_json
from regard.look.look import Look
from regard.look.next_tokens import MAX_POSITIONS, find_next_tokens
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.replay import ModelRun
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator
from tests.look.conftest import SOURCE


@pytest.mark.parametrize("task", ["translation", "causal_lm"])
def test_next_tokens_are_the_best_of_one_forward_pass(task: str, looks: dict[str, Look]) -> None:
    document, run = looks[task].document, looks[task].run
    entry, target = document["next"], document["sequences"]["target"]
    logprobs = run.input.distributions(run.input.target, run.input.rows)  # (positions, V)
    best = logprobs.sort(dim=1, descending=True)
    assert torch.equal(torch.tensor(entry["tokens"]), best.indices[:, :8])
    assert torch.tensor(entry["probabilities"]) == pytest.approx(best.values[:, :8].exp(), abs=1e-6)
    generated = [index for index, token in enumerate(target) if not token.get("prompt")]
    assert generated == list(range(entry["first"], len(target)))
    assert {str(token) for row in entry["tokens"] for token in row} <= document["vocabulary"].keys()
    for place, tokens, probabilities in zip(generated, entry["tokens"], entry["probabilities"], strict=True):
        shown = dict(zip(tokens, probabilities, strict=True)).get(target[place]["id"])
        probability = math.exp(target[place]["logprob"] or -math.inf)
        assert shown is None or shown == pytest.approx(probability, abs=1e-5)
        assert shown is not None or probability <= probabilities[-1] + 1e-6


def test_next_tokens_are_small_and_only_of_generating_models(translator: Translator, looks: dict[str, Look]) -> None:
    document = look_into(translator, SOURCE, search=Beam(2), max_new_tokens=10).document
    assert len(document["next"]["tokens"]) == 10
    assert len(to_json(document["next"])) < 2000
    assert not any("next" in looks[task].document for task in ("masked_lm", "text_classification", "tagging"))


def test_next_tokens_of_a_long_text_end_at_the_limit(generator: TextGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.tasks.replay.MAX_LOGITS", 1000)  # three rows at a time
    look = look_into(generator, "A little", max_new_tokens=12, ablation=False)
    whole = look.document["next"]
    monkeypatch.setattr("regard.look.next_tokens.MAX_POSITIONS", 5)
    short = find_next_tokens(ModelRun(look.run.input, "", "", generated=look.run.generated))
    assert MAX_POSITIONS > len(whole["tokens"]) == 12
    assert short["tokens"] == whole["tokens"][:5]
