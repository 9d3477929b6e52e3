"""The knobs of training: how much, by which rule, how it is watched, and on what.

    [train]
    updates = 8000
    update_tokens = 8192
    schedule = {kind = "inverse_sqrt", peak = 0.005, warmup = 2000}
    optimizer = {kind = "adam", betas = [0.9, 0.98]}

`updates` is always counted from the very beginning of a run, never from a resume.
"""

from typing import Annotated, Literal

from pydantic import Field

from regard.base import limits
from regard.config.parts import Frozen, Positive, Rate, Size

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Betas = Annotated[tuple[Rate, Rate], Field(strict=False)]


class AdamW(Frozen):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019); fused."""

    kind: Literal["adamw"] = "adamw"
    betas: Betas = (0.9, 0.98)
    eps: Positive = 1e-9
    weight_decay: NotNegative = 0.01
    """On matrices only: biases, norms and embeddings do not decay."""


class Adam(Frozen):
    """Adam (Kingma and Ba 2015) as the 2017 paper used it; fused."""

    kind: Literal["adam"] = "adam"
    betas: Betas = (0.9, 0.98)
    eps: Positive = 1e-9


class Adafactor(Frozen):
    """Second moments as rows and columns (Shazeer and Stern 2018): little memory beside the weights."""

    kind: Literal["adafactor"] = "adafactor"
    weight_decay: NotNegative = 0.0


class Muon(Frozen):
    """Orthogonalised momentum for the matrices of the layers (Jordan et al. 2024), AdamW for everything else."""

    kind: Literal["muon"] = "muon"
    momentum: Rate = 0.95
    weight_decay: NotNegative = 0.01
    betas: Betas = (0.9, 0.98)
    """Of the AdamW beside it."""
    eps: Positive = 1e-9


Optimizer = Annotated[AdamW | Adam | Adafactor | Muon, Field(discriminator="kind")]


class InverseSqrt(Frozen):
    """Rise straight to the peak, then fall as 1 / sqrt(update)."""

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    peak: Positive
    """The highest learning rate."""
    warmup: Size
    """Updates until it is reached."""


class Noam(Frozen):
    """factor x width^-0.5 x min(update^-0.5, update x warmup^-1.5): the 2017 paper's formula."""

    kind: Literal["noam"] = "noam"
    factor: Positive = 1.0
    """How many times the paper's rate."""
    warmup: Size = 4000
    """Updates until it is reached."""


class Cosine(Frozen):
    """Rise to the peak, then half a wave down to `end` x peak at the last update."""

    kind: Literal["cosine"] = "cosine"
    peak: Positive
    """The highest learning rate."""
    warmup: Count = 0
    """Updates until it is reached."""
    end: Share = 0.1
    """What is left of the peak in the end."""


class Linear(Frozen):
    """Rise to the peak, then straight down to `end` x peak at the last update."""

    kind: Literal["linear"] = "linear"
    peak: Positive
    """The highest learning rate."""
    warmup: Count = 0
    """Updates until it is reached."""
    end: Share = 0.0
    """What is left of the peak in the end."""


class WarmupStableDecay(Frozen):
    """Rise, stay at the peak, and fall straight to `end` x peak over the last `decay` updates."""

    kind: Literal["warmup_stable_decay"] = "warmup_stable_decay"
    peak: Positive
    """The highest learning rate."""
    warmup: Count = 0
    """Updates until it is reached."""
    decay: Size
    """Updates of the fall."""
    end: Share = 0.0
    """What is left of the peak in the end."""


class Constant(Frozen):
    """Rise to the peak and stay."""

    kind: Literal["constant"] = "constant"
    peak: Positive
    """The highest learning rate."""
    warmup: Count = 0
    """Updates until it is reached."""


Schedule = Annotated[InverseSqrt | Noam | Cosine | Linear | WarmupStableDecay | Constant, Field(discriminator="kind")]


class SpikePolicy(Frozen):
    """When a loss or gradient is a spike: not finite, or far above the mean of the last `window` updates.

    Far is `sigmas` deviations, where a deviation counts as at least a twelfth of the mean: hard batches are no spikes.
    """

    sigmas: Positive = 6.0
    """So many deviations above the mean are far (one counts as a twelfth of the mean at least)."""
    window: Annotated[int, Field(ge=8)] = 128
    """The mean is that of so many updates."""
    max_spikes: Count = 10
    """How many spikes a run survives before it stops and asks for a person."""


class Stop(SpikePolicy):
    """Save what was learned before the spike, and stop."""

    kind: Literal["stop"] = "stop"


class Skip(SpikePolicy):
    """Leave the update out: weights and optimizer stay as they were, the data goes on."""

    kind: Literal["skip"] = "skip"


class Rewind(SpikePolicy):
    """Go back to the last checkpoint at least `back` updates ago, and leave out the batches since then."""

    kind: Literal["rewind"] = "rewind"
    back: Size = 50


Spikes = Annotated[Stop | Skip | Rewind, Field(discriminator="kind")]


class Training(Frozen):
    """How a model learns."""

    updates: Size
    """How many steps of the optimizer the whole run has, counted from its beginning."""
    update_tokens: Size = 8192
    """Tokens an update learns from, padding included: `data.batch_tokens` times the batches of an update."""
    accumulate: Size | None = None
    """Batches of an update; follows from update_tokens / data.batch_tokens, and the run's own file states it."""
    schedule: Schedule
    optimizer: Optimizer = AdamW()
    label_smoothing: Rate = 0.0
    """The share of what a word must be that is given to all words alike (Szegedy et al. 2016)."""
    r_drop: NotNegative = 0.0
    """Learn from every sample twice at once, with other dropout, and ask both answers to agree this strongly (R-drop,
    Liang et al. 2021; they take 5): for small corpora, at more than twice the work."""
    clip: NotNegative = 1.0
    """The longest gradient (its norm over all parameters); 0 never clips."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """What products are computed in; weights, norms, softmax and loss stay float32."""
    compile: bool = False
    """Let torch.compile fuse the layers: slow to start; faster afterwards on GPUs, not on the CPU that was measured."""
    checkpoint_activations: bool = False
    """Forget activations and compute them again in the backward pass: less memory, a third more work."""
    ema: Rate = 0.0
    """Keep a moving average of the weights with this decay (0.999, say) and validate with it; 0 keeps none."""
    average: Size = 1
    """At the end, average the weights of this many last checkpoints; 1 averages nothing."""
    save_every: Size = 500
    """Updates between checkpoints."""
    keep: Size = 2
    """Checkpoints that stay on disk; never fewer than `average` needs."""
    spikes: Spikes = Skip()


Metric = Literal["loss", "perplexity", "bits_per_byte", "accuracy", "bleu", "chrf"]


class Validation(Frozen):
    """How a run is watched."""

    every: Size = 500
    """Updates between validations; the last update is always validated."""
    metric: Metric = "loss"
    """What `best/` and early stopping go by."""
    patience: Count = 0
    """Stop after this many validations without a better one; 0 never stops."""
    sentences: Count = 200
    """Sentences of the validation corpus that are translated for BLEU and chrF; 0 translates none."""
    beam: Size = 1
    """The beam they are translated with; 1 is greedy."""
    samples: Count = 2
    """Outputs that are shown, so that a person sees it learn."""


class Device(Frozen):
    """What the work runs on. What is left out is found by a short probe and written into the run's own file."""

    name: str = "auto"
    """ "cpu", "cuda", "cuda:1", "mps"; "auto" takes an NVIDIA or AMD GPU (cuda) if there is one."""
    threads: Annotated[int, Field(gt=0, le=limits.THREADS)] | None = None
    """Threads of a CPU. Sums depend on it in their last digits, so a resumed run keeps it."""
    attention: Literal["float32", "autocast"] | None = None
    """Whether attention stays float32 under a lower precision: faster on CPUs where sentences are short."""
    logit_rows: Count | None = None
    """Rows of logits that exist at a time; 0 is all of them."""
    cpu_fast_path: bool = True
    """Use the faster CPU code of docs/cpu.md; false uses the reference code (other dropout masks, other batches)."""
    allocator: Literal["tuned", "plain"] = "tuned"
    """ "tuned" starts the command again with glibc settings that keep large tensors in the heap (Linux)."""
