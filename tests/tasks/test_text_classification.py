"""Labels of texts and tags of words."""

import json
from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardError
from regard.config import codec
from regard.config.model import EncoderOnlyConfig
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.text_classification import Classifier
from tests.commands import run_command
from tests.tasks.factories import TEXTS, make_tokenizers, perturb


def test_texts_get_labels_and_probabilities(trained_encoders: dict[str, Path]) -> None:
    classifier = regard.load(trained_encoders["text_classification"])
    assert isinstance(classifier, Classifier)
    results = classifier.classify(["good dog 7", "bad cat 8", "a good dog"])
    assert [result.label for result in results[:2]] == ["yes", "no"]
    assert sum(results[0].probabilities.values()) == pytest.approx(1.0)
    assert results[0].probability == max(results[0].probabilities.values())
    with pytest.raises(RegardError, match="not 'tagging'"):
        classifier.tag(["good dog"])
    with pytest.raises(RegardError, match="1 text and 2 second texts"):
        classifier.classify(["good"], pairs=["dog", "cat"])


def test_a_long_text_is_truncated(trained_encoders: dict[str, Path]) -> None:
    classifier = regard.load(trained_encoders["text_classification"])
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
    labeled = run_command("predict", str(trained_encoders["text_classification"]), long, "bad cat", long)
    assert (labeled.code, len(labeled.output.split("\n"))) == (0, 4)
    assert "2 texts were truncated" in labeled.errors
    assert run_command("predict", str(trained_encoders["text_classification"]), "bad cat").errors == ""


def test_words_get_tags(trained_encoders: dict[str, Path]) -> None:
    classifier = regard.load(trained_encoders["tagging"])
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
    classifier = regard.load(trained_encoders["text_classification"])
    assert isinstance(classifier, Classifier)
    list(classifier.model.head.parameters())[-1].data.fill_(value)
    with pytest.raises(RegardError, match="not numbers"):
        classifier.classify(["good dog"])


def test_a_classifier_and_a_tagger_stay_what_they_are(trained_encoders: dict[str, Path]) -> None:
    assert isinstance(regard.load(trained_encoders["text_classification"]), Classifier)
    assert isinstance(regard.load(trained_encoders["tagging"]), Classifier)


LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def write_tagger(folder: Path, labels: list[str]) -> Path:
    """Write a tagger with random weights, which tags at random."""
    tokenizers = make_tokenizers()
    changes = {
        "task": "tagging",
        "head": {"kind": "tags", "labels": labels},
        "source.vocabulary": tokenizers.source.size,
    }
    settings = codec.preset("encoder-tiny", {"d_model": 16, "encoder.layers": 1, **changes})
    assert isinstance(settings, EncoderOnlyConfig)
    model = perturb(build(settings, seed=1), 1)
    write_model(folder, settings, tokenizers, get_weights(model), "# Tagger\n")
    return folder


def breaks_scheme(tags: tuple[str, ...]) -> bool:
    return any(tag[:1] == "I" and before[1:] != tag[1:] for before, tag in zip(("O", *tags), tags, strict=False))


def test_tags_fit_the_scheme(tmp_path: Path) -> None:
    classifier = regard.load_classifier(write_tagger(tmp_path / "tagger", LABELS))
    free, constrained = (classifier.tag(TEXTS, constrained=value) for value in (False, True))
    assert any(breaks_scheme(tagged.labels) for tagged in free)
    assert not any(breaks_scheme(tagged.labels) for tagged in constrained)
    for tagged in classifier.tag(TEXTS, constrained=False):
        assert all(tag.probability == max(tag.probabilities.values()) for tag in tagged.tags)
    for tagged in classifier.tag(TEXTS):
        assert all(tag.probability == tag.probabilities[tag.label] for tag in tagged.tags)
    assert classifier.tag("").tags == ()


def test_the_commands_have_an_off_switch(tmp_path: Path) -> None:
    folder = write_tagger(tmp_path / "tagger", LABELS)
    classifier = regard.load_classifier(folder)
    by_option = {(): classifier.tag(TEXTS), ("--unconstrained",): classifier.tag(TEXTS, constrained=False)}
    for options, tagged_texts in by_option.items():
        done = run_command("predict", str(folder), *TEXTS, *options)
        expected = [
            " ".join(f"{word}/{tag.label}" for word, tag in zip(tagged.words, tagged.tags, strict=True))
            for tagged in tagged_texts
        ]
        assert done.output.splitlines() == expected
    free = by_option["--unconstrained",]
    sentences = [
        "".join(f"{word}\t{tag.label}\n" for word, tag in zip(tagged.words, tagged.tags, strict=True))
        for tagged in free
    ]
    (tmp_path / "test.conll").write_text("\n".join(sentences))
    f1 = {}
    for options in by_option:
        done = run_command("evaluate", str(folder), "--data", str(tmp_path / "test.conll"), "--json", *options)
        assert done.code == 0, done.errors
        f1[options] = json.loads(done.output)["scores"]["entity_f1"]["value"]
    assert f1["--unconstrained",] == 100  # the test data are its own tags
    assert f1[()] < 100


def test_other_taggers_have_none(tmp_path: Path) -> None:
    folder = write_tagger(tmp_path / "tagger", ["NOUN", "VERB"])
    classifier = regard.load_classifier(folder)
    assert classifier.tag(TEXTS) == classifier.tag(TEXTS, constrained=False)
    done = run_command("predict", str(folder), TEXTS[0], "--unconstrained")
    assert done.code == 1
    assert "not in the scheme BIO" in done.errors


@pytest.mark.parametrize("options", [("--hypotheses", "x.txt", "--data", "x.txt", "--unconstrained")])
def test_a_file_has_no_constraints(options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.txt").write_text("a\n")
    assert "--fit-temperature and --fit-quality need a model" in run_command("evaluate", *options).errors
