"""Labels of texts and tags of words."""

from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardError
from regard.pipeline.classifier import Classifier
from tests.commands import run_command


def test_texts_get_labels_and_probabilities(trained_encoders: dict[str, Path]) -> None:
    classifier = regard.load(trained_encoders["classify"])
    assert isinstance(classifier, Classifier)
    results = classifier.classify(["good dog 7", "bad cat 8", "a good dog"])
    assert [result.label for result in results[:2]] == ["yes", "no"]
    assert sum(results[0].probabilities.values()) == pytest.approx(1.0)
    assert results[0].probability == max(results[0].probabilities.values())
    with pytest.raises(RegardError, match="not 'tag'"):
        classifier.tag(["good dog"])
    with pytest.raises(RegardError, match="1 text and 2 second texts"):
        classifier.classify(["good"], pairs=["dog", "cat"])


def test_a_long_text_is_truncated(trained_encoders: dict[str, Path]) -> None:
    classifier = regard.load(trained_encoders["classify"])
    assert isinstance(classifier, Classifier)
    limit = classifier.settings.encoder.max_positions
    assert limit is not None
    long = "good dog " * limit
    beginning = classifier.tokenizers.source.decode(classifier.tokenizers.source.encode_ids([long])[0][: limit - 2])
    whole, exact, short = classifier.classify([long, beginning, "bad cat"])
    assert (whole.is_truncated, exact.is_truncated, short.is_truncated) == (True, False, False)
    assert whole.probabilities == pytest.approx(exact.probabilities)
    (pair,) = classifier.classify(["bad cat"], [long])
    assert pair.is_truncated
    labeled = run_command("predict", str(trained_encoders["classify"]), long, "bad cat", long)
    assert (labeled.code, len(labeled.output.split("\n"))) == (0, 4)
    assert "2 texts were truncated" in labeled.errors
    assert run_command("predict", str(trained_encoders["classify"]), "bad cat").errors == ""


def test_words_get_tags(trained_encoders: dict[str, Path]) -> None:
    classifier = regard.load(trained_encoders["tag"])
    assert isinstance(classifier, Classifier)
    long, short = classifier.tag(["the  dog sees a cat", "a tree finds"])
    assert long.words == ("the", "dog", "sees", "a", "cat")
    assert [tag.label for tag in long.tags] == ["D", "N", "V", "D", "N"]
    assert [tag.label for tag in short.tags] == ["D", "N", "V"]
    (odd,) = classifier.tag(["the\tdog finds 10\u00a0000 "])
    assert odd.words == ("the", "dog", "finds", "10\u00a0000")  # a no-break space is inside a word, as in training
    assert len(odd.tags) == 4


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_damaged_model_labels_nothing(trained_encoders: dict[str, Path], value: float) -> None:
    classifier = regard.load(trained_encoders["classify"])
    assert isinstance(classifier, Classifier)
    list(classifier.model.head.parameters())[-1].data.fill_(value)
    with pytest.raises(RegardError, match="not numbers"):
        classifier.classify(["good dog"])


def test_a_classifier_and_a_tagger_stay_what_they_are(trained_encoders: dict[str, Path]) -> None:
    assert isinstance(regard.load(trained_encoders["classify"]), Classifier)
    assert isinstance(regard.load(trained_encoders["tag"]), Classifier)
