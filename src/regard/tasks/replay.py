"""Run a model on one input in a recordable way: first the search, then a replay of its result.

The search records only its candidates, at full speed. Its result is then run once with teacher forcing and a record,
which captures all attention weights, equal to the search's up to rounding. Forced continuations and ablated heads run
the search again, with a prefix or a record.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.base.errors import RegardError
from regard.decode.constraints import ConstrainedStep
from regard.decode.filters import Generators
from regard.decode.protocol import Hypothesis, State
from regard.decode.sample import sample
from regard.decode.trace import SamplingTrace, Trace
from regard.models.build import AnyModel
from regard.models.cpu_decoder import eval_mode
from regard.nn.record import Record
from regard.tasks.search import Beam, Sampling, SearchInput, make_generator
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

MAX_LOGITS = 2**24  # maximum number of logits at a time: 64 MB


@dataclass(frozen=True)
class ReplayInput:
    """One model input, and the output whose probability is inspected."""

    model: AnyModel
    source: Sequence[int] = ()
    """Encoder input tokens."""
    target: Sequence[int] = ()
    """Decoder input tokens."""
    rows: Sequence[int] = ()
    """Rows of the logits that predict the output; [0] for a classifier."""
    labels: Sequence[int] = ()
    """Predicted token or label of each row."""
    suppressed: Sequence[int] = ()
    """Suppressed tokens, which have no probability."""
    media: Tensor | None = None
    """An image (1, channels, height, width) or spectrogram (1, frames, bins), instead of tokens."""
    vectors: int = 0
    """Number of vectors of `media`."""
    is_pooled: bool = False
    """Whether the head predicts one label for the whole input."""

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return next(self.model.parameters()).device

    @property
    def length(self) -> int:
        """Number of tokens or vectors on both sides."""
        return self.source_length + len(self.target)

    @property
    def source_length(self) -> int:
        """Number of encoder tokens or vectors."""
        return len(self.source) if self.media is None else self.vectors

    def replay(self, record: Record | None = None, copies: int = 1) -> Tensor:
        """Run the input once and return the log-probability of each label, (copies, labels).

        Args:
            record: Records the attention, or changes it.
            copies: Number of identical rows in the batch.
        """
        return self.rank(record, copies)[0]

    def rank(self, record: Record | None = None, copies: int = 1, best: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Run the input once and compare each label with the most probable ones.

        Args:
            record: Records the attention, or changes it.
            copies: Number of identical rows in the batch.
            best: Number of most probable labels.

        Returns:
            The log-probability of each label (copies, labels), and the log-probabilities and ids of the most probable
            labels, best first, (copies, labels, best).
        """
        labels = torch.tensor(list(self.labels), device=self.device)  # (n)
        with eval_mode(self.model, bypasses=("forward",)), torch.inference_mode():
            x, start = self._hidden_states(self.target, record, copies), 0
            parts = []
            for logprobs in self._iter_logprobs(x):  # (copies, n, V)
                part = labels[start : start + logprobs.size(1)].expand(copies, -1)[:, :, None]  # (copies, n, 1)
                parts.append((logprobs.gather(2, part)[:, :, 0], *logprobs.topk(min(best, logprobs.size(2)))))
                start += logprobs.size(1)
            if not parts:  # nothing was predicted
                return x.new_zeros(copies, 0), x.new_zeros(copies, 0, best), labels.new_zeros(copies, 0, best)
            ranked, values, ids = (torch.cat(part, dim=1) for part in zip(*parts, strict=True))
            return ranked, values, ids

    def most_probable(self, count: int) -> tuple[Tensor, Tensor]:
        """Run the input once and return the best labels of each row and their log-probabilities, (rows, count)."""
        _, logprobs, labels = self.rank(best=count)
        return labels[0], logprobs[0]

    def distributions(self, target: Sequence[int], rows: Sequence[int]) -> Tensor:
        """Return the log-probabilities (rows, V) for different decoder input tokens."""
        with eval_mode(self.model, bypasses=("forward",)), torch.inference_mode():
            return self._logprobs(self._hidden_states(target, None, 1), rows)[0]

    def label_logits(self, copies: int = 1) -> Tensor:
        """Return the logit of each label, (copies, labels), with gradients if they are enabled."""
        logits = self._logits(self._hidden_states(self.target, None, copies), self.rows)  # (copies, n, V)
        labels = torch.tensor(list(self.labels), device=self.device).expand(copies, -1)[:, :, None]  # (copies, n, 1)
        return logits.gather(2, labels)[:, :, 0]

    def _hidden_states(self, target_ids: Sequence[int], record: Record | None, copies: int) -> Tensor:
        source, target = (
            torch.tensor([list(ids)], device=self.device).expand(copies, -1) for ids in (self.source, target_ids)
        )
        if self.media is not None:
            source = self.media.expand(copies, *self.media.shape[1:])
        return self.model.read_sides(source, target, record=record)

    def _iter_logprobs(self, x: Tensor) -> Iterator[Tensor]:
        """Iterate over the log-probabilities (B, n, V) of a few rows at a time."""
        step = max(1, MAX_LOGITS // (self.model.head(x[:, :1]).size(-1) * len(x)))
        for start in range(0, len(self.rows), step):
            yield self._logprobs(x, self.rows[start : start + step])

    def _logits(self, x: Tensor, rows: Sequence[int]) -> Tensor:
        """Return the logits of some rows, (B, n, V)."""
        if self.is_pooled:
            return self.model.head(x)[:, None].float()
        return self.model.head(x[:, list(rows)]).float()

    def _logprobs(self, x: Tensor, rows: Sequence[int]) -> Tensor:
        """Return the log-probabilities of some rows, (B, n, V)."""
        logits = self._logits(x, rows)
        if self.suppressed:
            logits[:, :, list(self.suppressed)] = float("-inf")
        return logits.log_softmax(dim=-1)


@dataclass(frozen=True)
class Generation:
    """A model input and a search: everything needed to rerun the generation."""

    input: ReplayInput
    """The model input before generation; its `target` is the prompt."""
    tokenizers: TokenizerPair
    prepared: Callable[[], AbstractContextManager[None]]
    """Returns the context for the pipeline's searches."""
    start: Callable[[Generators, Record | None, int], SearchInput]
    """Returns a search input of some identical rows, given random generators, a record and the number of rows."""
    search: Beam | Sampling
    seed: int | None
    n_best: int = 1
    text_before: Sequence[int] = ()
    """Prompt tokens that the generated text continues."""

    def __post_init__(self) -> None:
        if isinstance(self.search, Sampling) and self.search.count != 1:
            hint = "Use Sampling(count=1), or Beam with n_best."
            raise RegardError("Only one text can be sampled at a time.", hint=hint)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the generated text."""
        return self.tokenizers.target

    @property
    def prompt(self) -> Sequence[int]:
        """Decoder input tokens before generation."""
        return self.input.target

    def run(self, record: Record | None = None, forced: Sequence[int] = ()) -> "Generated":
        """Search once.

        Args:
            record: Changes the attention of every step (`regard.look.record.HeadsOff`); None uses the fast path.
            forced: Tokens that the text must start with; their log-probabilities are included.
        """
        generator = make_generator(self.seed, self.input.device)
        with self.prepared(), torch.inference_mode():
            inputs = self.start(generator, record, 1)
            if forced:
                step = ConstrainedStep(inputs.step, absorbing_token=inputs.absorbing_token, forced_prefixes=[forced])
                inputs = replace(inputs, step=step, state=step.start(inputs.state, 1))
            if isinstance(self.search, Sampling):
                sampling = SamplingTrace()
                hypotheses = sample(
                    *inputs.model_arguments,
                    **inputs.shared_arguments,
                    generator=generator,
                    filters=self.search.filters,
                    trace=sampling,
                )
                return Generated(self, hypotheses, None, sampling)
            trace = Trace()
            (best,) = self.search.find(replace(inputs, n_best=self.n_best, trace=trace))
            return Generated(self, best, trace, None)

    def decode(self, hypothesis: Hypothesis) -> str:
        """Return the text of a hypothesis, without the prompt."""
        return self.tokenizer.decode(hypothesis.without_eos, self.text_before)

    def regenerate(self, record: Record, copies: int = 1) -> list[str]:
        """Search again with a record that changes the attention, and return the best text of each row.

        Args:
            record: Changes the attention of every step; it may treat every row differently.
            copies: Number of rows, which share one batch and draw the same random numbers.
        """
        with self.prepared(), torch.inference_mode():
            generators = [make_generator(self.seed, self.input.device) for _ in range(copies)]
            inputs = self.start(generators, record, copies)
            step = inputs.step
            inputs = replace(
                inputs,
                step=lambda tokens, rows: step(tokens, rows.state),
                state=_RecordedRows(inputs.state, record),
                n_best=self.n_best,
            )
            return [self.decode(hypotheses[0]) for hypotheses in self.search.find(inputs)]

    def read_hypothesis(self, hypothesis: Hypothesis) -> ReplayInput:
        """Return the decoder input of a hypothesis: all tokens except the last."""
        return self.read_tokens(hypothesis.tokens)

    def read_tokens(self, tokens: Sequence[int]) -> ReplayInput:
        """Return the input that predicts these tokens after the prompt."""
        first = len(self.prompt) - 1
        return replace(
            self.input,
            target=[*self.prompt, *tokens[:-1]],
            rows=range(first, first + len(tokens)),
            labels=tokens,
        )

    def make_run(self, output_name: str) -> "ModelRun":
        """Search and return the replay of the best text."""
        generated = self.run()
        best = generated.hypotheses[0]
        return ModelRun(self.read_hypothesis(best), self.decode(best), output_name, generated=generated)


@dataclass(frozen=True)
class _RecordedRows:
    """The state of a search whose record follows its rows."""

    state: State
    record: Record

    def reorder(self, index: Tensor) -> None:
        """Move the rows of the model and of the record."""
        self.state.reorder(index)
        self.record.reorder(index)

    def crop(self, lengths: int | Sequence[int]) -> None:
        """Remove the last tokens; the record keeps no tokens."""
        self.state.crop(lengths)


@dataclass(frozen=True)
class Generated:
    """The hypotheses of a search, best first, and its record."""

    generation: Generation
    hypotheses: list[Hypothesis]
    trace: Trace | None
    sampling: SamplingTrace | None


@dataclass(frozen=True)
class RankedLabels:
    """An encoder's predictions at a position: labels or tokens with probabilities, best first."""

    position: int | None
    """Index of the encoder token; None for the label of the whole input."""
    labels: list[str]
    probabilities: list[float]

    @staticmethod
    def sort(position: int | None, probabilities: dict[str, float]) -> "RankedLabels":
        """Sort the labels of a position by probability."""
        ranked = sorted(probabilities.items(), key=lambda item: -item[1])
        return RankedLabels(position, [label for label, _ in ranked], [probability for _, probability in ranked])


@dataclass(frozen=True)
class DrawnInput:
    """The encoder's image or spectrogram as a grid of cells, one per vector."""

    kind: Literal["image", "spectrogram"]
    pixels: NDArray[np.uint8]
    """(height, width, channels)."""
    grid: tuple[int, int]
    """Rows and columns of cells."""
    cell: tuple[int, int]
    """Height and width of a cell in pixels."""
    names: Sequence[str]
    """Labels of the cells."""
    is_ordered: bool
    """Whether the sequence runs along one axis (frames) instead of row by row (patches)."""
    class_tokens: int = 0
    """Number of vectors before the first cell."""
    seconds: float | None = None
    """Duration of a cell of a spectrogram."""
    rate: int = 0
    """Samples per second of an audio clip."""
    samples: NDArray[np.int16] | None = None
    """The audio clip itself."""


@dataclass(frozen=True)
class ModelRun:
    """One input, the model's output, and how to replay it."""

    input: ReplayInput
    output: str
    output_name: str
    """Name of the output whose log-probability is shown."""
    predictions: Sequence[RankedLabels] = ()
    """Encoder predictions, one per row of the input."""
    name_label: Callable[[int], str] | None = None
    """Returns the name of a label or token that an encoder predicts."""
    generated: Generated | None = None
    """Of a model that generates."""
    drawn: DrawnInput | None = None
    """Of a model that reads images or audio clips."""

    @property
    def places(self) -> list[int | None]:
        """Index of each output among the tokens of its side; None for the label of the whole input."""
        return [prediction.position for prediction in self.predictions] or [row + 1 for row in self.input.rows]

    def expect(self, labels: Sequence[int]) -> ReplayInput | None:
        """Return the input that predicts another output: its tokens, or one label per row; None if it cannot."""
        if self.generated is not None:
            return self.generated.generation.read_tokens(labels) if labels else None
        return replace(self.input, labels=labels) if labels and len(labels) == len(self.input.rows) else None


def label_run(inputs: ReplayInput, label: str, probabilities: dict[str, float]) -> ModelRun:
    """Return the run of a model whose head predicts one label for the whole input.

    Args:
        inputs: The model input.
        label: The predicted label.
        probabilities: Probabilities of all labels, in the order of the head.
    """
    labels = list(probabilities)
    inputs = replace(inputs, rows=[0], labels=[labels.index(label)], is_pooled=True)
    ranked = [RankedLabels.sort(None, probabilities)]
    return ModelRun(inputs, label, f"the label '{label}'", ranked, labels.__getitem__)
