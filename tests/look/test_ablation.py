"""Switched-off heads: the batched pass equals zeroing each head by hand, in the forward pass and in a search."""

import copy

import pytest
import torch
from torch import Tensor

from regard.base.blobs import decode_blob
from regard.look.ablation import count_heads, head_key, iter_heads, switch_off
from regard.look.attention import attention_name
from regard.look.build import look_into
from regard.look.look import Look
from regard.nn.record import Record
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.search import Beam, Sampling
from regard.tasks.text_classification import Classifier
from regard.tasks.translation.translator import Translator
from tests.look.conftest import SOURCE
from tests.look.factories import zero_head


@pytest.mark.parametrize("task", ["translation", "causal_lm", "masked_lm", "text_classification", "tagging"])
def test_every_head_equals_zeroing_it(task: str, looks: dict[str, Look]) -> None:
    look = looks[task]
    ablation, passage = look.document["ablation"], look.run.input
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
    assert changed  # a text that no head changes would prove nothing
    assert ablation["texts"].keys() == {head_key(head) for head in iter_heads(translation_look.record)}


@pytest.mark.parametrize("search", [Beam(3), Beam(1), Beam(2, stop_after=2), Sampling()], ids=repr)
def test_batched_searches_without_a_head_equal_single_ones(search: Beam | Sampling, generator: TextGenerator) -> None:
    look = look_into(generator, "A little", search=search, n_best=getattr(search, "beam_size", 1), max_new_tokens=8)
    ablation = look.document["ablation"]
    assert ablation is not None
    texts = {head_key(head): look.without_heads([head])["text"] for head in iter_heads(look.record)}
    assert ablation["texts"] == texts
    assert len(set(texts.values())) > 1


@pytest.mark.parametrize("task", ["translation", "causal_lm", "masked_lm", "text_classification", "tagging"])
def test_single_heads_of_a_live_page_equal_the_document(task: str, looks: dict[str, Look]) -> None:
    look = looks[task]
    ablation = look.document["ablation"]
    assert ablation is not None
    assert ablation["outputs"] == look.run.places
    for group, layer, head in list(iter_heads(look.record))[::3]:
        live, key = look.without_heads([(group, layer, head)]), head_key((group, layer, head))
        assert live["delta"] == pytest.approx(ablation["delta"][group][layer][head], abs=2e-4)
        deltas = decode_blob(look.document["blobs"][ablation["token_deltas"][group]])[layer, head]
        assert live["token_deltas"] == pytest.approx(deltas.tolist(), abs=2e-4)
        assert sum(deltas.tolist()) == pytest.approx(live["delta"], abs=2e-4)
        assert live.get("text") == ablation["texts"].get(key)
        stored = ablation.get("predictions", {}).get(key)
        assert (stored is None) == (look.run.generated is not None)
        for new, expected in zip(stored or [], live.get("predictions", []), strict=True):
            assert new["labels"] == expected["labels"]
            assert new["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-4)


def test_new_labels_equal_those_of_zeroed_weights(classifier: Classifier) -> None:
    look = look_into(classifier, "Two young men.")
    ablation = look.document["ablation"]
    assert ablation is not None
    for (group, layer, head), (new,) in zip(iter_heads(look.record), ablation["predictions"].values(), strict=True):
        model = copy.deepcopy(classifier.model)
        zero_head(model, attention_name(group, layer), head)
        expected = Classifier(model, classifier.tokenizers, classifier.settings).classify("Two young men.")
        assert new["labels"][0] == expected.label
        assert dict(zip(new["labels"], new["probabilities"], strict=True)) == pytest.approx(
            expected.probabilities, abs=1e-4
        )


def test_long_searches_are_left_to_the_strongest_heads(
    generator: TextGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced = look_into(generator, "A little", max_new_tokens=4, ablation=True)
    heads = len(list(iter_heads(forced.record)))
    # Just enough to measure every head once, but not to search again without each.
    flops = 2.0 * generator.num_parameters * forced.run.input.length * heads
    monkeypatch.setattr("regard.look.build.MAX_FLOPS", flops)
    ablation = look_into(generator, "A little", max_new_tokens=4).document["ablation"]
    assert ablation is not None
    largest = max(abs(value or 0.0) for row in ablation["delta"]["decoder.self"] for value in row)
    kept = [key.rsplit(".", 2) for key in ablation["texts"]]
    assert 0 < len(kept) < heads
    assert any(
        abs(ablation["delta"]["decoder.self"][int(layer)][int(head)] or 0.0) == largest for _, layer, head in kept
    )
    every = look_into(generator, "A little", max_new_tokens=4, ablation=True).document["ablation"]
    assert every is not None
    assert len(every["texts"]) == heads


def test_several_heads_at_once(translation_look: Look) -> None:
    counts = count_heads(translation_look.record)
    passage = translation_look.run.input
    all_heads = list(iter_heads(translation_look.record))
    together = passage.replay(switch_off(all_heads, counts)).sum()
    replacements = dict.fromkeys(counts, torch.zeros_like)
    assert float(together) == pytest.approx(float(passage.replay(Record(replace=replacements)).sum()), abs=1e-4)
