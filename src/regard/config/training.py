"""Settings of training: length, optimizer, schedule, validation, device and processes.

    [train]
    steps = 8000
    step_tokens = 8192
    schedule = {kind = "inverse_sqrt", lr = 0.005, warmup = 2000}
    optimizer = {kind = "adam", betas = [0.9, 0.98]}

`steps` counts from the start of a run, not from a resume.
"""

from typing import Annotated, Literal

from pydantic import Field

from regard.base import limits
from regard.config.parts import Positive, Rate, SettingsModel, Size
from regard.config.task_spec import Metric

Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Betas = Annotated[tuple[Rate, Rate], Field(strict=False)]


class AdamWConfig(SettingsModel):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019); fused."""

    kind: Literal["adamw"] = "adamw"
    betas: Betas = (0.9, 0.98)
    eps: Positive = 1e-9
    weight_decay: NotNegative = 0.01
    """Applied to matrices only, not to biases, norms and embeddings."""


class AdamConfig(SettingsModel):
    """Adam (Kingma and Ba 2015) as the 2017 paper used it; fused."""

    kind: Literal["adam"] = "adam"
    betas: Betas = (0.9, 0.98)
    eps: Positive = 1e-9


class MuonConfig(SettingsModel):
    """Orthogonalized momentum for the matrices of the layers (Jordan et al. 2024), AdamW for all other parameters."""

    kind: Literal["muon"] = "muon"
    weight_decay: NotNegative = 0.01
    betas: Betas = (0.9, 0.98)
    """Betas of the AdamW part."""


OptimizerConfig = Annotated[AdamWConfig | AdamConfig | MuonConfig, Field(discriminator="kind")]


class InverseSqrtConfig(SettingsModel):
    """Linear warmup to the peak, then decay as 1 / sqrt(step)."""

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    lr: Positive
    """The highest learning rate."""
    warmup: Size
    """Steps until the peak."""


class NoamConfig(SettingsModel):
    """factor x d_model^-0.5 x min(step^-0.5, step x warmup^-1.5): the 2017 paper's formula."""

    kind: Literal["noam"] = "noam"
    factor: Positive = 1.0
    """Factor on the paper's learning rate."""
    warmup: Size = 4000
    """Steps until the highest learning rate."""


class CosineConfig(SettingsModel):
    """Linear warmup to the peak, then cosine decay to `end` x peak at the last step."""

    kind: Literal["cosine"] = "cosine"
    lr: Positive
    """The highest learning rate."""
    warmup: Count = 0
    """Steps until the peak."""
    end: Share = 0.1
    """Final learning rate, as a fraction of the peak."""


class LinearConfig(SettingsModel):
    """Linear warmup to the peak, then linear decay to `end` x peak at the last step."""

    kind: Literal["linear"] = "linear"
    lr: Positive
    """The highest learning rate."""
    warmup: Count = 0
    """Steps until the peak."""
    end: Share = 0.0
    """Final learning rate, as a fraction of the peak."""


class ConstantConfig(SettingsModel):
    """Linear warmup to the peak, then constant."""

    kind: Literal["constant"] = "constant"
    lr: Positive
    """The highest learning rate."""
    warmup: Count = 0
    """Steps until the peak."""


ScheduleConfig = Annotated[
    InverseSqrtConfig | NoamConfig | CosineConfig | LinearConfig | ConstantConfig, Field(discriminator="kind")
]


class SpikesConfig(SettingsModel):
    """A loss or gradient norm is a spike if it is not finite, or far above the mean of the last `window` steps.

    Far means 6 standard deviations. The standard deviation is taken to be at least a twelfth of the mean, so that a
    hard batch is not a spike. A run has diverged after 8 spikes in a row, or if the mean of the last window / 8 losses
    has been 15 % or more above its lowest value for window / 4 steps.
    """

    kind: Literal["recover", "stop"] = "recover"
    """recover: skip a step that spikes; if the run has diverged, go back to a checkpoint from before it and continue
    with a third of the learning rate, at most 4 times. stop: stop at the first spike, or if the run has diverged."""
    window: Annotated[int, Field(ge=8)] = 128
    """Number of steps over which the mean is taken."""


class TrainingConfig(SettingsModel):
    """Settings of the optimization."""

    steps: Size
    """Number of optimizer steps of the whole run, counted from its start; with `minutes`: the first estimate."""
    minutes: Positive | None = None
    """Duration of the whole run. The measured speed determines the number of steps; schedule and intervals scale with
    it."""
    max_steps: Size | None = None
    """With `minutes`: maximum number of steps, even if there is time for more."""
    step_tokens: Size = 8192
    """Tokens per step, padding included. A step accumulates the gradients of step_tokens / data.batch_tokens
    batches."""
    schedule: ScheduleConfig
    optimizer: OptimizerConfig = AdamWConfig()
    label_smoothing: Rate = 0.0
    """Probability mass spread uniformly over the vocabulary (Szegedy et al. 2016)."""
    max_grad_norm: NotNegative = 1.0
    """Maximum norm of the gradient over all parameters; 0 disables clipping."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """Data type of matrix products; weights, norms, softmax and loss stay float32."""
    compile: bool = False
    """Compile each layer with torch.compile. This takes about 90 CPU-seconds at the start; on a CPU, steps are then
    about 10 % faster."""
    checkpoint_activations: bool = False
    """Recompute activations in the backward pass instead of storing them: less memory, about a third more compute."""
    ema: Rate = 0.0
    """Decay of an exponential moving average of the weights, used for validation (e.g. 0.999); 0 disables it."""
    average: Size = 1
    """Average the weights of the last checkpoints, this many, at the end; 1 disables averaging."""
    save_every: Size = 500
    """Steps between checkpoints."""
    keep_checkpoints: Size = 2
    """Number of checkpoints to keep; at least `average`."""
    upload: str | None = None
    """URL of a folder to which checkpoints and models are copied, e.g. s3://bucket/run; `regard import` reads it."""
    spikes: SpikesConfig = SpikesConfig()
    film_points: Count = 0
    """Number of steps, spaced logarithmically from 0 to the last, at which outputs and attention of five validation
    examples are kept in `film/` (`regard look RUN` shows them); 0 disables it. `regard train --film` sets 40."""


class ValidationConfig(SettingsModel):
    """Settings of validation during training."""

    every_steps: Size = 500
    """Steps between validations; the last step is always validated."""
    metric: Metric = "loss"
    """Metric that selects `best/` and that early stopping compares. "f1" is entity F1 if the tags mark entities (B-,
    I-, O), and macro F1, the mean over all labels, for other tags and for classes. "retrieval_at_1" is the share of
    validation texts whose nearest text on the other side is their partner."""
    patience: Count = 0
    """Stop after this many validations without improvement; 0 disables early stopping."""
    max_tokens: Size | None = None
    """Score about this many tokens of the validation corpus, always the same random batches; default: all of it.
    `regard train --minutes` sets it when time is short, and the log gives the sampling error."""
    sentences: Count = 200
    """Number of validation sentences to translate (greedy search) for BLEU and chrF; 0 disables it."""
    samples: Count = 2
    """Number of sample outputs to show at each validation."""


class DeviceConfig(SettingsModel):
    """Device-dependent settings. `regard train` tunes those that are not set and saves them in `run.toml`."""

    name: str = "auto"
    """ "cpu", "cuda", "cuda:1", "mps"; "auto" uses an NVIDIA or AMD GPU (cuda) if there is one."""
    threads: Annotated[int, Field(gt=0, le=limits.THREADS)] | None = None
    """Number of CPU threads. It changes the last digits of sums, so a resumed run keeps it."""
    attention: Literal["float32", "autocast"] | None = None
    """Data type of attention under a low `train.precision`: float32 is faster on CPUs for short sentences."""
    logit_rows: Count | None = None
    """Rows of logits to compute at a time, which bounds memory; 0 computes all at once."""
    cpu_fast_path: bool = True
    """Use the faster CPU code (docs/why/cpu.md); false: the reference code, with other dropout masks and batches."""


class ParallelConfig(SettingsModel):
    """How several processes train one model. One process ignores these settings; a resumed run may change them."""

    mode: Literal["auto", "ddp", "fsdp"] = "auto"
    """ "ddp": every rank holds the whole model. "fsdp": weights, gradients and optimizer state are sharded. "auto" is
    "ddp" if the model with its optimizer fits into the memory of a rank, else "fsdp"."""
    replicas: Size = 1
    """With "fsdp": groups of ranks that each hold one copy of the model in shards (HSDP). It must divide the ranks."""
    tensor: Size = 1
    """Ranks that split every layer's matrices (tensor parallelism) and read the same batches. It must divide the
    ranks."""
