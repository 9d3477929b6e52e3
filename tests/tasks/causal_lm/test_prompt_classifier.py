"""Labels by likelihood: a language model chooses the label that continues a prompt best."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.base.errors import RegardError
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.causal_lm.prompt_classifier import TEMPLATE, PromptClassifier
from regard.training.run import fit
from tests.commands import run_command
from tests.tasks.factories import TEXTS, make_decoder_only, make_generator_settings, make_tokenizers
from tests.training.runs import make_small_run, write_corpus

LABELS = ("good", "goodness", "bad", "very bad indeed")
SHOTS = [("Two dogs.", "good"), ("A wooden house.", "bad")]


@pytest.fixture(scope="module")
def generator() -> TextGenerator:
    """A language model with random weights, which prefers some tokens clearly."""
    settings = make_generator_settings()
    return TextGenerator(make_decoder_only(settings), make_tokenizers(), settings)


@pytest.mark.parametrize("template", [TEMPLATE, "{text} It was {label}.", "Review:{text}={label}"])
@pytest.mark.parametrize("shots", [[], SHOTS])
def test_probabilities_are_the_likelihoods_of_whole_prompts(
    generator: TextGenerator, template: str, shots: list[tuple[str, str]]
) -> None:
    classifier = PromptClassifier(generator, LABELS, examples=shots, template=template)
    after = template.split("{label}")[1] or "\n"
    scorer = generator.make_scorer()
    for text, result in zip(TEXTS, classifier.classify(TEXTS), strict=True):
        prompts = [classifier.make_prompt(text) + label + after for label in LABELS]
        totals = [sum(scored.logprobs[:-1]) for scored in scorer.score(prompts)]  # without eos
        weights = [math.exp(total - max(totals)) for total in totals]
        expected = [weight / sum(weights) for weight in weights]
        assert list(result.probabilities.values()) == pytest.approx(expected, abs=1e-4)
        assert result.label == LABELS[expected.index(max(expected))]
        assert result.probability == max(result.probabilities.values())


def test_the_prompt_shows_the_examples(generator: TextGenerator) -> None:
    classifier = PromptClassifier(generator, LABELS, examples=SHOTS, template="<{text}> is {label}.\n")
    expected = "<Two dogs.> is good.\n<A wooden house.> is bad.\n<{label} {text}> is "
    assert classifier.make_prompt("{label} {text}") == expected  # a text is never a template
    assert PromptClassifier(generator, LABELS).make_prompt("a") == "Text: a\nLabel: "


def test_the_mean_favours_long_labels(generator: TextGenerator) -> None:
    by_sum, by_mean = (
        [result.label for result in PromptClassifier(generator, LABELS, use_mean=use_mean).classify(TEXTS)]
        for use_mean in (False, True)
    )
    assert by_sum != by_mean
    assert sum(map(len, by_mean)) > sum(map(len, by_sum))


def test_batches_change_nothing(generator: TextGenerator) -> None:
    classifier = PromptClassifier(generator, LABELS, examples=SHOTS)
    together = classifier.classify(TEXTS)
    for text, result in zip(TEXTS, together, strict=True):
        assert classifier.classify(text, batch_tokens=1).probabilities == pytest.approx(result.probabilities, abs=1e-5)


def test_the_model_reads_what_prompts_share_once(generator: TextGenerator) -> None:
    """Examples are read once for all texts, and a text once for all labels."""
    read: list[int] = []
    hook = generator.model.tokens.register_forward_hook(lambda _module, inputs, _output: read.append(inputs[0].numel()))
    classifier = PromptClassifier(generator, LABELS, examples=SHOTS * 8)
    texts = [f"A dog {number}." for number in range(12)]
    try:
        results = classifier.classify(texts)
        shared, rest = read[0], sum(read[1:])
    finally:
        hook.remove()
    tokenizer = generator.tokenizers.source
    prompts = [len(tokenizer.encode_ids([classifier.make_prompt(text)])[0]) for text in texts]
    assert len(results) == len(texts)
    assert shared > 0.8 * min(prompts)  # the examples
    assert rest < sum(length - shared + len(LABELS) * 20 for length in prompts)  # at most 20 tokens for a label


@pytest.mark.parametrize(
    ("labels", "shots", "template", "fault"),
    [
        (["good"], [], TEMPLATE, "at least two"),
        (["good", "good"], [], TEMPLATE, "at least two"),
        (["good", " "], [], TEMPLATE, "at least two"),
        (LABELS, [("a", "fine")], TEMPLATE, "the unknown label 'fine'"),
        (LABELS, [], "{text}", "cannot be used"),
        (LABELS, [], "{label} {text}", "cannot be used"),
        (LABELS, [], "{text} {text} {label}", "cannot be used"),
    ],
)
def test_what_cannot_be_a_prompt_is_refused(
    generator: TextGenerator, labels: list[str], shots: list[tuple[str, str]], template: str, fault: str
) -> None:
    with pytest.raises(RegardError, match=fault):
        PromptClassifier(generator, labels, examples=shots, template=template)


def test_a_prompt_that_is_too_long_is_refused() -> None:
    settings = make_generator_settings(**{"decoder.position": {"kind": "learned", "length": 32}})
    generator = TextGenerator(make_decoder_only(settings), make_tokenizers(), settings)
    with pytest.raises(RegardError, match="The prompt of text 1 has"):
        PromptClassifier(generator, LABELS, examples=SHOTS * 5).classify("a")


def test_a_model_that_knows_the_answer(tmp_path: Path) -> None:
    """A model that has learned to write such prompts gives their labels, from the command line too."""
    entries = [f"Text: good {noun}\nLabel: yes\n\nText: bad {noun}\nLabel: no\n\n" for noun in ("dog", "cat", "tree")]
    files = write_corpus(tmp_path / "corpus")
    Path(files["book.txt"]).write_text("".join(entries) * 40)
    changes: dict[str, Any] = {
        "model.d_model": 32,
        "train.steps": 150,
        "train.save_every": 150,
        "validation.every_steps": 150,
    }
    changes |= {"train.label_smoothing": 0.0, "train.average": 1, "validation.samples": 0, "train.ema": 0.0}
    fit(make_small_run("causal_lm", files, changes), tmp_path / "lm")
    texts = ["good cat", "bad cat", "bad tree", "good dog"]
    (tmp_path / "shots.tsv").write_text("good tree\tyes\nbad dog\tno\n")
    model, shots = str(tmp_path / "lm"), ("--examples", str(tmp_path / "shots.tsv"))
    for options in (("--labels", "yes,no"), shots, (*shots, "--labels", "no,yes")):
        done = run_command("predict", model, *texts, *options)
        assert done.code == 0, done.errors
        assert [line.split("\t")[0] for line in done.output.splitlines()] == ["yes", "no", "no", "yes"]
    done = run_command(
        "predict", model, "good cat", *shots, "--json", "--template", r"Text: {text}\nLabel: {label}\n\n"
    )
    expected = PromptClassifier(
        regard.load_generator(model), ["yes", "no"], examples=[("good tree", "yes"), ("bad dog", "no")]
    ).classify("good cat")
    assert json.loads(done.output)["probabilities"] == pytest.approx(expected.probabilities)


def test_the_command_refuses_what_does_not_fit(tmp_path: Path, generator: TextGenerator) -> None:
    folder = str(tmp_path / "lm")
    weights = get_weights(generator.model)
    write_model(tmp_path / "lm", generator.settings, generator.tokenizers, weights, "# Model\n")
    (tmp_path / "none.tsv").write_text("only text\n")
    (tmp_path / "none.jsonl").write_text('{"source": "only text"}\n')
    for options, fault in (
        (("--template", "{text}{label}"), "need --examples or --labels"),
        (("--labels", "a,b", "--unconstrained"), "A language model with a prompt does not support --unconstrained"),
        (("--labels", "a"), "at least two"),
        (("--examples", str(tmp_path / "none.tsv")), "no column 2"),
        (("--examples", str(tmp_path / "none.jsonl")), "no labels"),
        (("--examples", str(tmp_path / "nowhere.tsv")), "no such file"),
    ):
        done = run_command("predict", folder, "text", *options)
        assert done.code == 1
        assert fault in done.errors, done.errors
