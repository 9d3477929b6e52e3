"""Every pipeline from Python: loaders by kind, one text in and one result out, reprs, devices."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import AnyModelConfig
from regard.config.parts import attention_stack
from regard.models.build import build
from regard.pipeline.ensemble import EnsembleTranslator
from regard.pipeline.load import TASKS, load
from regard.pipeline.scorer import Scorer
from regard.pipeline.translator import Translator
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.pipeline.factories import (
    TEXTS,
    make_encoder_decoder,
    make_generator_settings,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
)

LOADERS: dict[str, Any] = {  # an embedder takes every encoder: tests/pipeline/test_embedder.py
    "translate": regard.load_translator,
    "continue": regard.load_generator,
    "fill": regard.load_fill_mask,
    "classify": regard.load_classifier,
    "tag": regard.load_classifier,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An untrained model of each task."""
    folder = tmp_path_factory.mktemp("models")
    small = {"width": 32, "encoder.layers": 2, "encoder.attention.heads": 4, "encoder.feedforward.hidden": 32}
    small |= {"source.vocabulary": make_tokenizer().size}
    labels = {"labels": ["no", "yes"]}
    settings: dict[str, AnyModelConfig] = {
        "translate": make_translator_settings(languages=["en", "de"]),
        "continue": make_generator_settings(),
        "fill": codec.preset("bert", small),
        "classify": codec.preset("bert", small | {"task": "classify", "head": {"kind": "classes", **labels}}),
        "tag": codec.preset("bert", small | {"task": "tag", "head": {"kind": "tags", **labels}}),
    }
    for task, model_settings in settings.items():
        weights = get_weights(build(model_settings, seed=1))
        write_model(folder / task, model_settings, make_tokenizers(), weights, "card")
    return {task: str(folder / task) for task in settings}


@pytest.mark.parametrize("task", LOADERS)
def test_a_loader_takes_its_kind_of_model_only(task: str, models: dict[str, str]) -> None:
    pipeline = LOADERS[task](Path(models[task]))
    assert type(pipeline) is TASKS[task] is type(load(models[task])) is type(load(models[task], task=task))  # type: ignore[call-overload]
    for other_task, loader in LOADERS.items():
        right_loader = LOADERS[task].__name__
        if loader is not LOADERS[task]:
            with pytest.raises(RegardError, match=rf"This is a .* model, not a .*\n.*\n.*regard.{right_loader}\('"):
                loader(models[task])
        if other_task != task:
            with pytest.raises(RegardError, match=f"task is '{task}', not '{other_task}'"):
                load(models[task], task=other_task)  # type: ignore[call-overload]


def test_an_unknown_task_or_device_is_reported(models: dict[str, str]) -> None:
    with pytest.raises(RegardError, match=r"no pipeline for the task 'dance'.*\n.*translate, continue, fill"):
        load(models["fill"], task="dance")  # type: ignore[call-overload]
    missing = ["nonsense", "cuda:77", *(["cuda"] if not torch.cuda.is_available() else [])]
    for device in missing:
        for function in (regard.load, regard.load_classifier, Scorer.load):
            with pytest.raises(RegardError, match=f"no device '{device}' on this machine") as caught:
                function(models["classify"], device)
            assert caught.value.fix is not None
    with pytest.raises(RegardError, match="no device"):
        regard.load(models["fill"], torch.device("meta"))


def test_one_text_gives_one_result(models: dict[str, str]) -> None:
    text, gap = TEXTS[0], "Two young ___ are outside."
    translator, generator = regard.load_translator(models["translate"]), regard.load_generator(models["continue"])
    assert translator.translate(text, max_length=5) == translator.translate([text], max_length=5)[0]
    assert translator.translate("").text == ""
    assert translator.translate([]) == []
    assert generator.generate(text, 5, seed=1) == generator.generate([text], 5, seed=1)[0]
    assert regard.load_fill_mask(models["fill"]).fill(gap) == regard.load_fill_mask(models["fill"]).fill([gap])[0]
    classifier, tagger = regard.load_classifier(models["classify"]), regard.load_classifier(models["tag"])
    assert classifier.classify(text) == classifier.classify([text])[0]
    assert classifier.classify(text, gap) == classifier.classify([text], [gap])[0]
    assert tagger.tag(text) == tagger.tag([text])[0]
    scorer = Scorer.load(models["translate"])
    assert scorer.score(text, TEXTS[1]) == scorer.score([text], [TEXTS[1]])[0]
    with pytest.raises(RegardError, match="One side is a single text and the other is a list"):
        classifier.classify(text, [gap])


def test_reprs_name_what_matters(models: dict[str, str]) -> None:
    translator, classifier = regard.load_translator(models["translate"]), regard.load_classifier(models["classify"])
    parameters = sum(parameter.numel() for parameter in translator.model.parameters())
    size = make_tokenizer().size
    assert repr(translator) == (
        f"Translator(encoder_decoder, {parameters:,} parameters, {size} tokens, en-de, device cpu)"
    )
    assert repr(EnsembleTranslator([translator] * 2)).endswith("en-de, ensemble of 2, device cpu)")
    assert "classify with 2 labels, device cpu" in repr(classifier)
    assert repr(translator.tokenizers) == f"TokenizerPair.joint(Tokenizer(BPE, {size} tokens))"
    assert "languages en de" in repr(make_tokenizer("en", "de"))
    translation = translator.translate(TEXTS[0], max_length=4, n_best=2)
    assert repr(translation).startswith(f"Translation(text={translation.text!r}, score=-")
    assert len(translation.alternatives) == 1
    assert len(repr(translation)) < 300
    assert repr(translator.translate_document("Two dogs.", max_length=4)).startswith("TranslatedDocument(text=")
    label = classifier.classify(TEXTS[0])
    assert (
        repr(label) == f"Classification(label={label.label!r}, probability={label.probability:.4g}, is_truncated=False)"
    )
    tagged = regard.load_classifier(models["tag"]).tag("Two dogs")
    assert repr(tagged) == f"TaggedText('Two/{tagged.tags[0].label} dogs/{tagged.tags[1].label}')"
    filled = regard.load_fill_mask(models["fill"]).fill("Two ___.", n_best=1)
    assert repr(filled).startswith("FilledText(text=")
    assert "Candidate(text=" in repr(filled)
    scored = Scorer.load(models["continue"]).score("Two dogs")
    assert repr(scored).startswith("ScoredText(text='Two dogs', total_logprob=-")


def test_attention_is_recorded_with_its_tokens(models: dict[str, str]) -> None:
    translator, text = regard.load_translator(models["translate"]), "Two young men"
    attention = translator.record(text, "Zwei junge")
    source, target = len(attention.source_tokens), len(attention.target_tokens)
    assert "".join(attention.source_tokens[:-1]) == text
    assert "".join(attention.target_tokens[1:]) == "Zwei junge"
    assert attention.names == ["encoder.0.self", "decoder.0.self", "decoder.0.cross"]
    heads = attention_stack(translator.settings.decoder).attention.heads
    assert attention.encoder.shape == (1, heads, source, source)
    assert attention.decoder.shape == (1, heads, target, target)
    assert attention.cross.shape == (1, heads, target, source)
    torch.testing.assert_close(attention.cross.sum(-1), torch.ones(1, heads, target))
    assert attention.decoder.triu(1).count_nonzero() == 0  # no token sees a later one
    assert torch.equal(attention["decoder.0.cross"], attention.cross[0])
    assert repr(attention).startswith(f"RecordedAttention({source} source tokens, {target} target tokens, encoder.0")
    translation = translator.translate(text, max_length=6)
    own = translator.record(text, translation)
    assert "".join(own.target_tokens[1:]) == "".join(translation.token_texts)
    assert translator.record(text).target_tokens == translator.record(text, translator.translate(text)).target_tokens
    with pytest.raises(RegardError, match="The text is empty"):
        translator.record(" ")
    with pytest.raises(RegardError, match="no attention of its own"):
        EnsembleTranslator([translator]).record(text)


def test_attention_of_the_other_families(models: dict[str, str]) -> None:
    decoder = regard.load_generator(models["continue"]).record("Two men")
    assert decoder.source_tokens == ()
    assert decoder.decoder.shape[-2:] == (len(decoder.target_tokens), len(decoder.target_tokens))
    with pytest.raises(RegardError, match="This model has no cross-attention"):
        _ = decoder.cross
    fill_mask, classifier = regard.load_fill_mask(models["fill"]), regard.load_classifier(models["classify"])
    specials, names = make_tokenizer().specials, make_tokenizer().vocabulary
    assert names[specials.mask] in fill_mask.record("Two ___ are").source_tokens
    assert names[specials.mask] not in fill_mask.record("Two men are").source_tokens
    pair = classifier.record("Two men", "A girl")
    assert pair.source_tokens.count(names[specials.sep]) == 2
    assert pair.encoder.shape == (2, 4, len(pair.source_tokens), len(pair.source_tokens))
    assert regard.load_classifier(models["tag"]).record("Two men").target_tokens == ()


def test_a_translation_that_fills_all_learned_positions_is_recorded() -> None:
    """It was cut off there: its last token is not read."""
    settings = make_translator_settings(**{"decoder.position": {"kind": "learned", "length": 6}})
    translator = Translator(make_encoder_decoder(settings), make_tokenizers(), settings)
    translation = translator.translate("Two young men.")
    tokens = (*translation.tokens, *translation.tokens)[:6]
    cut_off = replace(translation, tokens=tokens, logprobs=(0.0,) * 6, ended=False)
    assert len(translator.record("Two young men.", cut_off).target_tokens) == 6  # bos, and all but the last
