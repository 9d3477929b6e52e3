"""Switched-off heads: the batched pass equals zeroing each head by hand, in the forward pass and in a search."""

import copy

import pytest
import torch
from torch import Tensor

from regard.look.ablation import count_heads, iter_heads, switch_off
from regard.look.attention import attention_name
from regard.look.look import Look
from regard.nn.attention import Attention
from regard.nn.record import Record
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from tests.look.conftest import SOURCE


def zero_head(model: torch.nn.Module, name: str, head: int) -> None:
    """Zero the rows of the output projection that read a head: its values no longer reach the residual."""
    (attention,) = (module for module in model.modules() if isinstance(module, Attention) and module.name == name)
    with torch.no_grad():
        start = head * attention.value_dim
        attention.output.weight[:, start : start + attention.value_dim] = 0.0


@pytest.mark.parametrize("task", ["translate", "causal_lm", "masked_lm", "classify", "tag"])
def test_every_head_equals_zeroing_it(task: str, looks: dict[str, Look]) -> None:
    look = looks[task]
    ablation, passage = look.document["ablation"], look.reading.passage
    assert ablation is not None
    baseline = float(passage.replay().sum())
    assert ablation["baseline"] == pytest.approx(baseline)
    heads = list(iter_heads(look.record))
    assert len(heads) == sum(group["layers"] * group["heads"] for group in look.document["attention"])
    for group, layer, head in heads[:: max(1, len(heads) // 6)]:
        name = attention_name(group, layer)

        def zero(output: Tensor, head: int = head) -> Tensor:
            output = output.clone()
            output[:, head] = 0.0
            return output

        change = float(passage.replay(Record(replace={name: zero})).sum()) - baseline
        assert ablation["delta"][group][layer][head] == pytest.approx(change, abs=2e-4)


def test_zeroed_weights_give_the_same_change_and_the_same_translation(
    translator: Translator, translation_look: Look
) -> None:
    ablation = translation_look.document["ablation"]
    assert ablation is not None
    changed = 0
    for key, text in ablation["texts"].items():
        group, layer, head = key.rsplit(".", 2)
        model = copy.deepcopy(translator.model)
        zero_head(model, attention_name(group, int(layer)), int(head))
        zeroed = Translator(model, translator.tokenizers, translator.settings)
        assert zeroed.translate(SOURCE, Beam(3), max_new_tokens=8).text == text
        changed += text != translation_look.document["output"]
        live = translation_look.without_heads([(group, int(layer), int(head))])  # type: ignore[list-item]
        delta = ablation["delta"][group][int(layer)][int(head)]  # type: ignore[index]
        assert live == {"text": text, "delta": pytest.approx(delta, abs=2e-4)}
    assert changed  # a text that no head changes would prove nothing
    assert any(key.startswith("encoder") for key in ablation["texts"])


def test_several_heads_at_once(translation_look: Look) -> None:
    counts = count_heads(translation_look.record)
    passage = translation_look.reading.passage
    all_heads = list(iter_heads(translation_look.record))
    together = passage.replay(switch_off(all_heads, counts)).sum()
    replacements = dict.fromkeys(counts, torch.zeros_like)
    assert float(together) == pytest.approx(float(passage.replay(Record(replace=replacements)).sum()), abs=1e-4)
