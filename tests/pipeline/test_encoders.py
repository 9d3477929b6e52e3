"""Encoder-only models on raw text: fill gaps, classify texts, tag words."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import regard
from regard.base.errors import RegardError
from regard.base.progress import Advance
from regard.config import codec
from regard.config.model import EncoderOnlyConfig
from regard.config.run import AnyTokenizerConfig, BpeConfig, ByteBpeConfig, UnigramConfig, WordLevelConfig
from regard.look.tokens import describe_token
from regard.models.build import build
from regard.models.encoder_only import EncoderOnly
from regard.pipeline.classifier import Classifier
from regard.pipeline.fill_mask import Candidate, FilledText, FillMask
from regard.pipeline.translator import Translator
from regard.text.learn import learn
from regard.text.pretokenize import SPACE_MARK
from regard.text.tokenizer_pair import TokenizerPair
from tests.commands import run_command
from tests.text.factories import make_tokenizer


def test_a_gap_is_filled_by_what_stood_there(models: dict[str, Path]) -> None:
    fill_mask = regard.load(models["fill"])
    assert isinstance(fill_mask, FillMask)
    first, second = fill_mask.fill(["red dog ___ blue cat", "old ___ finds new tree"], n_best=3)
    assert first.text == "red dog sees blue cat"
    assert second.text == "old house finds new tree"
    ((best, *others),) = first.gaps
    assert best.text == "sees"
    assert len(others) == 2
    assert best.probability > others[0].probability > others[1].probability


def test_gaps_at_the_edges_and_several_of_them(models: dict[str, Path]) -> None:
    fill_mask = regard.load(models["fill"])
    assert isinstance(fill_mask, FillMask)
    (filled,) = fill_mask.fill(["red dog sees ___ ___"])
    assert len(filled.gaps) == 2
    assert filled.text.startswith("red dog sees")
    (marked,) = fill_mask.fill(["red dog [] blue cat"], gap="[]")
    assert marked.text == "red dog sees blue cat"
    with pytest.raises(RegardError, match="Text 2 has no gap"):
        fill_mask.fill(["red ___", "blue"])


def test_order_and_batches_change_nothing(models: dict[str, Path]) -> None:
    fill_mask = regard.load(models["fill"])
    assert isinstance(fill_mask, FillMask)
    texts = ["red ___ sees", "old house finds new ___", "___ dog", "a long text with one ___ in the middle of it"]
    batched, alone = fill_mask.fill(texts), [fill_mask.fill([text], batch_tokens=1)[0] for text in texts]
    assert [result.text for result in batched] == [result.text for result in alone]


def test_texts_get_labels_and_probabilities(models: dict[str, Path]) -> None:
    classifier = regard.load(models["classify"])
    assert isinstance(classifier, Classifier)
    results = classifier.classify(["good dog 7", "bad cat 8", "a good dog"])
    assert [result.label for result in results[:2]] == ["yes", "no"]
    assert sum(results[0].probabilities.values()) == pytest.approx(1.0)
    assert results[0].probability == max(results[0].probabilities.values())
    with pytest.raises(RegardError, match="not 'tag'"):
        classifier.tag(["good dog"])
    with pytest.raises(RegardError, match="1 text and 2 second texts"):
        classifier.classify(["good"], pairs=["dog", "cat"])


def test_a_long_text_is_truncated(models: dict[str, Path]) -> None:
    classifier = regard.load(models["classify"])
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
    labeled = run_command("predict", str(models["classify"]), long, "bad cat", long)
    assert (labeled.code, len(labeled.output.split("\n"))) == (0, 4)
    assert "2 texts were truncated" in labeled.errors
    assert run_command("predict", str(models["classify"]), "bad cat").errors == ""


def test_words_get_tags(models: dict[str, Path]) -> None:
    classifier = regard.load(models["tag"])
    assert isinstance(classifier, Classifier)
    long, short = classifier.tag(["the  dog sees a cat", "a tree finds"])
    assert long.words == ("the", "dog", "sees", "a", "cat")
    assert [tag.label for tag in long.tags] == ["D", "N", "V", "D", "N"]
    assert [tag.label for tag in short.tags] == ["D", "N", "V"]
    (odd,) = classifier.tag(["the\tdog finds 10\u00a0000 "])
    assert odd.words == ("the", "dog", "finds", "10\u00a0000")  # a no-break space is inside a word, as in training
    assert len(odd.tags) == 4


def test_filled_text_escapes_a_predicted_line_break() -> None:
    """A masked model may predict a line break; printed raw, it broke one output line into two."""
    filled = FilledText("a\nb", ((Candidate("\n", 0.75, 5), Candidate("\x1b", 0.25, 6)),))
    assert filled.to_lines("a ___ b", 2) == ["a⏎b", "  ⏎ 75.0%, \\x1b 25.0%"]


def test_predict_command_prints_n_best_labels_to_a_file(models: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("good dog 7\nbad cat\n")
    files = ("--input", str(tmp_path / "texts"), "--output", str(tmp_path / "labels"))
    done = run_command("predict", str(models["classify"]), *files, "--n-best", "2")
    assert (done.code, done.output, done.errors) == (0, "", "")
    rows = [line.split("\t") for line in (tmp_path / "labels").read_text().splitlines()]
    assert [(label, text) for label, _, text in rows] == [
        ("yes", "good dog 7"), ("no", "good dog 7"), ("no", "bad cat"), ("yes", "bad cat"),
    ]  # fmt: skip
    assert sum(float(probability.rstrip("%")) for _, probability, _ in rows[:2]) == pytest.approx(100, abs=0.11)
    assert "one tag for each word" in run_command("predict", str(models["tag"]), "the dog", "--n-best", "2").errors


@pytest.mark.parametrize(
    ("task", "option", "message"),
    [
        ("classify", ("--gap", "_"), "--gap is not for a classification or tagging model"),
        ("fill", ("--beam", "2"), "--beam is not for a masked language model"),
        ("fill", ("--pair-text", "a"), "--pair is not for a masked language model"),
        ("tag", ("--max-length", "2"), "--max-length is not for a"),
    ],
)
def test_predict_command_refuses_an_option_that_the_model_lacks(
    models: dict[str, Path], task: str, option: tuple[str, str], message: str
) -> None:
    done = run_command("predict", str(models[task]), "the ___ dog", *option)
    assert done.code == 1
    assert message in done.errors


@pytest.mark.parametrize("task", ["fill", "classify", "tag"])
def test_predict_command_advances_to_the_number_of_texts(
    models: dict[str, Path], task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    shown: list[tuple[str, int | None]] = []

    @contextmanager
    def show_progress(stage: str, total: int | None) -> Iterator[Advance]:
        shown.append((stage, total))
        yield counts.append

    monkeypatch.setattr("regard.cli.predict.show_progress", show_progress)
    (tmp_path / "texts").write_text("the ___\na ___ cat\nthe dog ___ a cat\n")
    assert run_command("predict", str(models[task]), "--input", str(tmp_path / "texts")).code == 0
    assert shown == [("predicting", 3)]
    assert sum(counts) == 3


def test_predict_command_runs_each_task(models: dict[str, Path], tmp_path: Path) -> None:
    filled = run_command("predict", str(models["fill"]), "red dog ___ blue cat", "--n-best", "2")
    assert filled.code == 0, filled.errors
    assert filled.output.split("\n")[0] == "red dog sees blue cat"
    assert filled.output.split("\n")[1].startswith("  sees ")
    labeled = run_command("predict", str(models["classify"]), "good dog 7", "--json")
    assert json.loads(labeled.output)["label"] == "yes"
    classifier = regard.load(models["classify"])
    assert isinstance(classifier, Classifier)
    (beside,) = classifier.classify(["good dog 7"], ["bad cat"])
    paired = run_command("predict", str(models["classify"]), "good dog 7", "--pair-text", "bad cat", "--json")
    assert json.loads(paired.output)["probability"] == pytest.approx(beside.probability)
    (tmp_path / "beside.txt").write_text("bad cat\n")
    by_file = run_command(
        "predict", str(models["classify"]), "good dog 7", "--pair", str(tmp_path / "beside.txt"), "--json"
    )
    assert by_file == paired
    assert "takes no second text" in run_command("predict", str(models["tag"]), "the dog", "--pair-text", "a").errors
    tagged = run_command("predict", str(models["tag"]), "the dog sees")
    assert tagged.output == "the/D dog/N sees/V\n"
    wrong = run_command("translate", str(models["tag"]), "the dog")
    assert wrong.code == 1
    assert "regard predict" in wrong.errors
    assert Translator.__name__ not in wrong.errors


@pytest.mark.parametrize(
    "kind",
    [
        ByteBpeConfig(vocabulary=300),
        BpeConfig(vocabulary=200),
        UnigramConfig(vocabulary=60),
        WordLevelConfig(vocabulary=60),
    ],
)
def test_a_text_with_a_gap_is_tokenized_as_the_text_without_it(kind: AnyTokenizerConfig) -> None:
    sentences = ["red dog sees blue cat", "old house finds new tree"]
    trained_tokenizer = learn(sentences * 20, kind)
    settings = codec.preset(
        "encoder-small", {"width": 32, "source.vocabulary": trained_tokenizer.size, "encoder.layers": 1}
    )
    assert isinstance(settings, EncoderOnlyConfig)
    model = build(settings, seed=1)
    assert isinstance(model, EncoderOnly)
    fill_mask = FillMask(model, TokenizerPair.joint(trained_tokenizer), settings)
    row, whole = (
        fill_mask.encode_row(1, "red dog ___ blue cat", "___")[1:-1],
        trained_tokenizer.encode(sentences[0]).ids,
    )
    gap = row.index(trained_tokenizer.specials.mask)
    before, after = row[:gap], row[gap + 1 :]
    assert trained_tokenizer.decode(before).strip() == "red dog"
    assert (before, after) == (whole[: len(before)], whole[-len(after) :])
    assert "  " not in fill_mask.fill(["red dog ___ blue cat"])[0].text
    if kind.kind in ("bpe", "unigram"):  # a space mark stands for a space only
        joined = [trained_tokenizer.vocabulary[token] for token in fill_mask.encode_row(1, "red d___g", "___")]
        gap = joined.index("<mask>")
        assert joined[gap + 1].strip(SPACE_MARK) == "g"
        assert "".join(joined[1:gap]).endswith("d")
        assert joined[gap + 1].startswith("g")


def test_candidate_that_continues_a_word_keeps_its_mark() -> None:
    tokenizer = make_tokenizer(["where", "is", "?", "##ven"])
    assert tokenizer.token_texts(tokenizer.encode("isven").ids) == ("is", "##ven")
    settings = codec.preset("encoder-small", {"width": 32, "source.vocabulary": tokenizer.size, "encoder.layers": 1})
    assert isinstance(settings, EncoderOnlyConfig)
    model = build(settings, seed=1)
    assert isinstance(model, EncoderOnly)
    filled = FillMask(model, TokenizerPair.joint(tokenizer), settings).fill("where is ___?", n_best=tokenizer.size)
    texts = {candidate.text for candidate in filled.gaps[0]}
    assert {"where", "is", "?", "##ven"} <= texts
    assert describe_token(tokenizer, tokenizer.encode("isven").ids[1])["text"] == "##ven"


def test_gaps_are_marked_and_candidates_are_at_most_the_vocabulary(models: dict[str, Path]) -> None:
    fill_mask = regard.load_fill_mask(models["fill"])
    with pytest.raises(RegardError, match="marks a gap is empty"):
        fill_mask.fill(["red dog ___"], gap="")
    (filled,) = fill_mask.fill(["red dog ___"], n_best=100_000)
    assert len(filled.gaps[0]) == fill_mask.tokenizers.source.size


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_damaged_model_labels_nothing(models: dict[str, Path], value: float) -> None:
    classifier = regard.load(models["classify"])
    assert isinstance(classifier, Classifier)
    list(classifier.model.head.parameters())[-1].data.fill_(value)
    with pytest.raises(RegardError, match="not numbers"):
        classifier.classify(["good dog"])
