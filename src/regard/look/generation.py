"""Generate a text and record how: every candidate of a search, or every race of sampling.

Forced continuations and switched-off heads run the same search again, with a prefix or with a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from regard.base.errors import RegardError
from regard.decode.constraints import constrain
from regard.decode.protocol import Hypothesis
from regard.decode.sample import sample
from regard.decode.trace import SamplingTrace, Trace
from regard.look.model_input import ModelInput
from regard.nn.record import Record
from regard.pipeline.search import Beam, Sampling, make_generator
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Generated:
    """The hypotheses of a search, best first, and its record."""

    hypotheses: list[Hypothesis]
    trace: Trace | None
    sampling: SamplingTrace | None


@dataclass(frozen=True)
class Generation:
    """What a model reads, and the search: everything needed to generate again."""

    input: ModelInput
    search: Beam | Sampling
    max_new_tokens: int
    """Maximum number of generated tokens."""
    seed: int | None
    n_best: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.search, Sampling) and self.search.count != 1:
            hint = "Use Sampling(count=1), or Beam with n_best."
            raise RegardError("One text can be sampled at a time.", hint=hint)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the generated text."""
        return self.input.pipeline.tokenizers.target

    def run(self, record: Record | None = None, forced: Sequence[int] = ()) -> Generated:
        """Search once.

        Args:
            record: Changes the attention of every step (`regard.look.record.HeadsOff`); None: the fast path.
            forced: Tokens that the text must start with; their log-probabilities count.
        """
        pipeline = self.input.pipeline
        generator = make_generator(self.seed, pipeline.device)
        with pipeline.prepared(), torch.inference_mode():
            inputs = self.input.start(self.max_new_tokens, generator, record)
            if forced:
                step, state = constrain(
                    inputs.step, inputs.state, 1, absorbing_token=inputs.absorbing_token, forced_prefixes=[forced]
                )
                inputs = replace(inputs, step=step, state=state)
            if isinstance(self.search, Sampling):
                sampling = SamplingTrace()
                hypotheses = sample(
                    *inputs.model_arguments,
                    **inputs.shared_arguments,
                    generator=generator,
                    filters=self.search.filters,
                    trace=sampling,
                )
                return Generated(hypotheses, None, sampling)
            trace = Trace()
            (best,) = self.search.find(replace(inputs, n_best=self.n_best, trace=trace))
            return Generated(best, trace, None)

    def decode(self, hypothesis: Hypothesis) -> str:
        """Return the text of a hypothesis, without the prompt."""
        return self.tokenizer.decode(hypothesis.without_eos, self.input.text_before)
