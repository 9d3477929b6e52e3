"""Classify texts with a language model: choose the label with the highest likelihood after a prompt.

    generator = regard.load_generator("my-lm")
    classifier = PromptClassifier(generator, ["bad", "good"], examples=[("A fine film.", "good")])
    classifier.classify("What a bore.").label

The prompt is a template, filled in for every example and, up to the label, for the text. Only {text} and {label} are
replaced.

The score of a label is the log-probability of the label and the rest of the template, so "good" does not win against
"goodness" by ending early. All labels follow the same prompt, so their log-probabilities are directly comparable. The
mean per token is an option that favors labels with many tokens, because later tokens are easy to predict.
"""

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import ClassVar, overload

import torch

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.tasks.causal_lm.continuations import score_continuations
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.encoding import add_bos, as_list, check_length, check_list
from regard.tasks.text_classification import Classification

TEMPLATE = "Text: {text}\nLabel: {label}\n\n"
TEXT, LABEL = "{text}", "{label}"


class PromptClassifier:
    """Classifies texts with a language model and a prompt.

    Args:
        generator: The language model.
        labels: At least two labels, as written in the prompt.
        examples: Texts with labels for the few-shot prompt; their order matters.
        template: Template of an example: {text}, then {label}. If it ends with {label}, a line break is added.
        use_mean: Compare the mean log-probability of a label's tokens instead of the sum.

    Raises:
        RegardError: The template, the labels or the examples are invalid.
    """

    kind: ClassVar[str] = "language model with a prompt"

    def __init__(
        self,
        generator: TextGenerator,
        labels: Sequence[str],
        *,
        examples: Sequence[tuple[str, str]] = (),
        template: str = TEMPLATE,
        use_mean: bool = False,
    ) -> None:
        check_list(labels, "label", "PromptClassifier")
        if len(set(labels)) < max(2, len(labels)) or not all(label.strip() for label in labels):
            raise RegardError(
                "There must be at least two labels, all different and not empty.",
                hint="Use at least two different labels.",
            )
        if unknown := sorted({label for _, label in examples}.difference(labels)):
            hint = f"Use one of: {', '.join(labels)}."
            raise RegardError(f"An example has the unknown label {unknown[0]!r}.", hint=hint)
        if template.count(TEXT) != 1 or template.count(LABEL) != 1 or template.index(TEXT) > template.index(LABEL):
            hint = f"Use {{text}} once and then {{label}} once, e.g. {TEMPLATE!r}."
            raise RegardError(f"The template {template!r} cannot be used.", hint=hint)
        self.labels, self.examples, self.use_mean = tuple(labels), tuple(examples), use_mean
        before, after = template.split(LABEL)
        self._before, self._after = before, after or "\n"
        self._generator = generator

    def __repr__(self) -> str:
        return f"PromptClassifier({', '.join(self.labels)}; {pluralize(len(self.examples), 'example')})"

    def make_prompt(self, text: str) -> str:
        """Return the prompt before a label."""
        shots = "".join(self._before.replace(TEXT, shot) + label + self._after for shot, label in self.examples)
        return shots + self._before.replace(TEXT, text)

    def predict(self, inputs: Sequence[str], *, report: Callable[[int], None] | None = None) -> list[Classification]:
        """Classify each text, for `regard predict`."""
        return self.classify(inputs, report=report)

    @overload
    def classify(  # type: ignore[overload-overlap]
        self, texts: str, batch_tokens: int = 4096, *, report: Callable[[int], None] | None = None
    ) -> Classification: ...
    @overload
    def classify(
        self, texts: Sequence[str], batch_tokens: int = 4096, *, report: Callable[[int], None] | None = None
    ) -> list[Classification]: ...

    def classify(
        self,
        texts: str | Sequence[str],
        batch_tokens: int = 4096,
        *,
        report: Callable[[int], None] | None = None,
    ) -> Classification | list[Classification]:
        """Classify one or several texts. Probabilities are normalized over the labels.

        Args:
            texts: One text or several.
            batch_tokens: Maximum number of tokens in a batch, padding included.
            report: Called after each batch with the number of classified texts.

        Raises:
            RegardError: A prompt is longer than the model's learned positions.
        """
        encoded = [self._encode(number, text) for number, text in enumerate(as_list(texts), 1)]
        logprobs = score_continuations(
            self._generator.model,
            [prompt for prompt, _ in encoded],
            [endings for _, endings in encoded],
            pad_id=self._generator.tokenizers.source.specials.pad,
            batch_tokens=batch_tokens,
            report=report,
        )
        results = []
        for endings in logprobs:
            scores = [sum(ending) / (len(ending) if self.use_mean else 1) for ending in endings]
            shares = torch.tensor(scores, dtype=torch.double).softmax(dim=0).tolist()
            probabilities = dict(zip(self.labels, shares, strict=True))
            label = max(probabilities, key=probabilities.__getitem__)
            results.append(Classification(label, probabilities[label], probabilities, is_truncated=False))
        return results[0] if isinstance(texts, str) else results

    def _encode(self, number: int, text: str) -> tuple[list[int], list[list[int]]]:
        """Return the common prefix of all labels' rows, and the rest of each row.

        Prompt and label are encoded together, so a space before the label is part of its first token.
        """
        settings, tokenizer, prompt = (
            self._generator.settings,
            self._generator.tokenizers.source,
            self.make_prompt(text),
        )
        encoded = tokenizer.encode_ids([prompt + label + self._after for label in self.labels])
        tokens = [add_bos(settings, tokenizer, ids) for ids in encoded]
        columns = zip(*tokens, strict=False)
        prefix_length = sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))
        shared = max(1, min(prefix_length, min(map(len, tokens)) - 1))
        for ids in tokens:
            check_length(f"The prompt of text {number}", ids[:-1], settings.decoder.max_positions, location=text)
        return tokens[0][:shared], [ids[shared:] for ids in tokens]
