"""Results of pipelines and their reprs."""

import pytest

import regard
from regard.base.errors import RegardError
from regard.tasks.translation.ensemble import EnsembleTranslator
from tests.tasks.factories import TEXTS, make_tokenizer


def test_one_text_gives_one_result(models: dict[str, str]) -> None:
    text, gap = TEXTS[0], "Two young ___ are outside."
    translator, generator = regard.load_translator(models["translation"]), regard.load_generator(models["causal_lm"])
    assert translator.translate(text, max_new_tokens=5) == translator.translate([text], max_new_tokens=5)[0]
    assert translator.translate("").text == ""
    assert translator.translate([]) == []
    assert generator.generate(text, 5, seed=1) == generator.generate([text], 5, seed=1)[0]
    assert (
        regard.load_fill_mask(models["masked_lm"]).fill(gap)
        == regard.load_fill_mask(models["masked_lm"]).fill([gap])[0]
    )
    classifier, tagger = (
        regard.load_classifier(models["text_classification"]),
        regard.load_classifier(models["tagging"]),
    )
    assert classifier.classify(text) == classifier.classify([text])[0]
    assert classifier.classify(text, gap) == classifier.classify([text], [gap])[0]
    assert tagger.tag(text) == tagger.tag([text])[0]
    scorer = regard.load(models["translation"]).make_scorer()
    assert scorer.score(text, TEXTS[1]) == scorer.score([text], [TEXTS[1]])[0]
    with pytest.raises(RegardError, match="One side is a single text and the other is a list"):
        classifier.classify(text, [gap])


def test_reprs_name_what_matters(models: dict[str, str]) -> None:
    translator, classifier = (
        regard.load_translator(models["translation"]),
        regard.load_classifier(models["text_classification"]),
    )
    parameters = sum(parameter.numel() for parameter in translator.model.parameters())
    size = make_tokenizer().size
    assert repr(translator) == (
        f"Translator(encoder_decoder, {parameters:,} parameters, {size} tokens, en-de, device cpu)"
    )
    assert repr(EnsembleTranslator([translator] * 2)).endswith("en-de, ensemble of 2, device cpu)")
    assert "text_classification with 2 labels, device cpu" in repr(classifier)
    assert repr(translator.tokenizers) == f"TokenizerPair.joint(Tokenizer(BPE, {size} tokens))"
    assert "languages en de" in repr(make_tokenizer("en", "de"))
    translation = translator.translate(TEXTS[0], max_new_tokens=4, n_best=2)
    assert repr(translation).startswith(f"Translation(text={translation.text!r}, score=-")
    assert len(translation.alternatives) == 1
    assert len(repr(translation)) < 300
    label = classifier.classify(TEXTS[0])
    assert (
        repr(label) == f"Classification(label={label.label!r}, probability={label.probability:.4g}, is_truncated=False)"
    )
    tagged = regard.load_classifier(models["tagging"]).tag("Two dogs")
    assert repr(tagged) == f"TaggedText('Two/{tagged.tags[0].label} dogs/{tagged.tags[1].label}')"
    filled = regard.load_fill_mask(models["masked_lm"]).fill("Two ___.", n_best=1)
    assert repr(filled).startswith("FilledText(text=")
    assert "Candidate(text=" in repr(filled)
    scored = regard.load(models["causal_lm"]).make_scorer().score("Two dogs")
    assert repr(scored).startswith("ScoredText(text='Two dogs', total_logprob=-")
