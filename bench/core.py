"""Forward and backward pass against minimal PyTorch code, `torch.nn` and Hugging Face.

    python -m bench.core            # about five minutes
    python -m bench.core --quick    # under one minute: 64 rows for tiny, 2 for lm
    python -m bench.core --control --only tiny --default-malloc

tiny   Transformer-tiny: 4+4 layers, width 128, hidden 256, 4 heads, one embedding of 10,000 tokens shared by source,
       target and output, post-norm, sinusoidal; 256 rows of 16 + 16 tokens, some of them padding; cross-entropy with
       label smoothing 0.1 over the target tokens without padding. Dropout 0.3 on embeddings and sublayers in all
       contestants, none on attention weights or hidden units. Regard uses `regard.nn.dropout`, which is cheap on a CPU,
       the others torch's dropout: `--no-dropout` shows the ratios without this difference.
lm     GPT-2's shape: 6 layers, width 384, hidden 1536, 6 heads, 65 characters, pre-norm, learned positions, GELU by
       tanh; 16 rows of 256 tokens; cross-entropy. No dropout.

float32, one thread, no optimizer, no compilation. All contestants have the same weights, and must give the same loss
and gradients without dropout before timing starts. A ratio is the median over all rounds of their CPU time / ours:
above 1, Regard is faster; "best" compares the fastest steps instead. The last line is JSON.
"""

import argparse
import copy
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bench import minimal_models, reference_models
from bench.timing import format_table, race, ratio, restart_with_tuned_malloc
from bench.torch_nn import torch_decoder, torch_encoder
from regard.config.codec import preset
from regard.exchange.huggingface.architectures import ARCHITECTURES
from regard.exchange.mapping import to_hf
from regard.models.build import build

OURS = "regard"
IGNORED = -100  # the label of padding
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Contestant:
    """A model, a function that calls it, and how it differs from the others."""

    name: str
    model: nn.Module
    logits: Callable[[nn.Module], Tensor]  # (B, T, V) of the batch
    difference: str = ""


@dataclass(frozen=True)
class ModelContest:
    """Contestants over the same batch, ours first."""

    name: str
    contestants: list[Contestant]
    labels: Tensor  # (B, T)
    smoothing: float

    def loss(self, contestant: Contestant) -> Tensor:
        """Compute the loss, with the same code for all contestants."""
        logits = contestant.logits(contestant.model)
        return F.cross_entropy(
            logits.flatten(0, 1), self.labels.flatten(), ignore_index=IGNORED, label_smoothing=self.smoothing
        )

    def step(self, contestant: Contestant) -> None:
        """Run the forward and backward pass that is timed."""
        contestant.model.zero_grad(set_to_none=True)
        self.loss(contestant).backward()

    def check(self) -> None:
        """Check that all have the same loss and gradients without dropout; print them and the parameter counts."""
        reference: tuple[float, float] | None = None
        for contestant in self.contestants:
            contestant.model.eval().zero_grad(set_to_none=True)
            loss = self.loss(contestant)
            loss.backward()
            norm = nn.utils.get_total_norm(_collect_gradients(contestant.model))
            trainable, fixed = _count_parameters(contestant.model)
            fixed_note = f" + {fixed:,} fixed" if fixed else ""
            summary = f"{trainable:,} parameters{fixed_note}, loss {loss.item():.6f}, gradient {norm.item():.6f}"
            print(f"  {contestant.name:<10}{summary}{'. ' * bool(contestant.difference)}{contestant.difference}")
            values = (loss.item(), norm.item())
            reference = values if reference is None else reference
            if any(
                abs(value - expected) > TOLERANCE * max(1.0, abs(expected))
                for value, expected in zip(values, reference, strict=True)
            ):
                raise SystemExit(f"{self.name}: loss or gradients of {contestant.name} differ from those of {OURS}.")


Plan = tuple[tuple[Callable[[int, bool], ModelContest], int, float], ...]  # the contest, its rows, its seconds


def tiny(rows: int, with_hugging_face: bool) -> ModelContest:
    """Create the translation contest, with padding."""
    vocabulary_size, width, heads, hidden, layers, dropout, length = 10_000, 128, 4, 256, 4, 0.3, 16
    generator = torch.Generator().manual_seed(0)
    source, source_valid = _make_rows(rows, length, 10, vocabulary_size, generator)
    target, target_valid = _make_rows(rows, length, 12, vocabulary_size, generator)
    labels = torch.randint(4, vocabulary_size, target.shape, generator=generator).masked_fill(~target_valid, IGNORED)
    print(
        f"\ntiny: {rows} rows, {source_valid.sum()} source and {target_valid.sum()} target tokens without padding, "
        f"{source.numel()} each with padding"
    )

    ours = _perturb_vectors(build(preset("tiny"), seed=0))
    shape = (vocabulary_size, width, heads, hidden, layers, dropout, length)
    minimal = minimal_models.Translator(*shape)
    reference_models.copy_weights(
        ours, minimal, {**reference_models.MINIMAL_NAMES, **reference_models.TRANSLATOR_NAMES}
    )
    torch_model = reference_models.TorchTranslator(*shape)
    reference_models.copy_weights(ours, torch_model, reference_models.TRANSLATOR_NAMES)
    reference_models.copy_stack(ours.get_submodule("encoder"), torch_model.encoder, torch_encoder(final_norm=False))
    reference_models.copy_stack(ours.get_submodule("decoder"), torch_model.decoder, torch_decoder(final_norm=False))

    def call(model: nn.Module) -> Tensor:
        return model(source, target, source_valid)

    contestants = [
        Contestant(OURS, ours, call, "Dropout of regard.nn.dropout"),
        Contestant("lean", minimal, call),
        Contestant("torch_nn", torch_model, call, "Its other dropouts are set to 0"),
    ]
    if with_hugging_face:
        hf_model = reference_models.make_marian(*shape)
        weight_map = ARCHITECTURES["MarianMTModel"].make_weight_map(preset("tiny"), length)
        hf_model.load_state_dict(to_hf(weight_map, ours.state_dict()))

        def logits(model: nn.Module) -> Tensor:
            return model(
                input_ids=source, attention_mask=source_valid, decoder_input_ids=target, use_cache=False
            ).logits

        note = "Fixed: its sinusoidal tables. It adds a bias to the logits that is not trained"
        contestants.append(Contestant("hf", hf_model, logits, note))
    return ModelContest("tiny", contestants, labels, smoothing=0.1)


def lm(rows: int, with_hugging_face: bool) -> ModelContest:
    """Create the language modeling contest, without padding."""
    vocabulary_size, width, heads, hidden, layers, length = 65, 384, 6, 1536, 6, 256
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(vocabulary_size, (rows, length), generator=generator)
    labels = torch.randint(vocabulary_size, (rows, length), generator=generator)
    print(f"\nlm: {rows} rows of {length} tokens")

    settings = preset(
        "gpt2",
        {
            "d_model": width,
            "tokens.vocabulary": vocabulary_size,
            "decoder.layers": layers,
            "decoder.position.length": length,
            "decoder.attention.heads": heads,
            "decoder.feedforward.d_ff": hidden,
            "decoder.dropout": {},
        },
    )
    ours = _perturb_vectors(build(settings, seed=0))
    shape = (vocabulary_size, width, heads, hidden, layers, length)
    minimal = minimal_models.LanguageModel(*shape)
    reference_models.copy_weights(
        ours, minimal, {**reference_models.MINIMAL_NAMES, **reference_models.LANGUAGE_MODEL_NAMES}
    )
    torch_model = reference_models.TorchLanguageModel(*shape)
    reference_models.copy_weights(ours, torch_model, reference_models.LANGUAGE_MODEL_NAMES)
    reference_models.copy_stack(ours.get_submodule("decoder"), torch_model.encoder, torch_encoder(final_norm=False))

    def call(model: nn.Module) -> Tensor:
        return model(tokens)

    contestants = [
        Contestant(OURS, ours, call),
        Contestant("lean", minimal, call),
        Contestant("torch_nn", torch_model, call),
    ]
    if with_hugging_face:
        hf_model = reference_models.make_gpt2(*shape)
        weight_map = ARCHITECTURES["GPT2LMHeadModel"].make_weight_map(settings, length)
        hf_model.load_state_dict(to_hf(weight_map, ours.state_dict()))
        note = "GELU by torch's kernel"
        contestants.append(Contestant("hf", hf_model, lambda model: model(tokens, use_cache=False).logits, note))
    return ModelContest("lm", contestants, labels, smoothing=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small batches and few rounds: under a minute")
    parser.add_argument("--default-malloc", action="store_true", help="do not tune the allocator")
    parser.add_argument("--only", choices=("tiny", "lm"), help="run only this contest")
    parser.add_argument("--no-dropout", action="store_true", help="tiny without dropout")
    parser.add_argument("--control", action="store_true", help="add a copy of Regard: its distance from 1 is noise")
    options = parser.parse_args()
    if not options.default_malloc:
        restart_with_tuned_malloc()
    start_time = time.perf_counter()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with_hugging_face = importlib.util.find_spec("transformers") is not None
    malloc = "default" if options.default_malloc else "tuned"
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, float32, 1 thread, {malloc} malloc")
    if not with_hugging_face:
        print("Without transformers there is no contestant hf; to install it: pip install 'regard[bench]'")

    quick_plan: Plan = ((tiny, 64, 12.0), (lm, 2, 12.0))
    full_plan: Plan = ((tiny, 256, 130.0), (lm, 16, 180.0))
    results: dict[str, float] = {}
    for make, rows, seconds in quick_plan if options.quick else full_plan:
        if options.only not in (None, make.__name__):
            continue
        contest = make(rows, with_hugging_face)
        if options.control:
            ours = contest.contestants[0]
            contest.contestants.append(replace(ours, name="control", model=copy.deepcopy(ours.model)))
        contest.check()
        for contestant in contest.contestants:
            contestant.model.train(not options.no_dropout)
        steps = {contestant.name: partial(contest.step, contestant) for contestant in contest.contestants}
        times = race(steps, seconds=seconds)
        print(format_table(times, ours=OURS))
        for name, their_times in times.items():
            if name not in (OURS, "control"):
                results[f"{contest.name}/{name}"] = round(ratio(their_times, times[OURS]), 3)
    print(f"\n{time.perf_counter() - start_time:.0f} s. Ratio: median over the rounds of their CPU time / ours.")
    print(json.dumps(results))


def _make_rows(
    rows: int, length: int, min_length: int, vocabulary_size: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return random tokens (B, T), `min_length` to `length` per row, padded on the right, and their valid mask."""
    lengths = torch.randint(min_length, length + 1, (rows, 1), generator=generator)
    valid = torch.arange(length) < lengths
    return torch.randint(4, vocabulary_size, (rows, length), generator=generator).masked_fill(~valid, 0), valid


def _perturb_vectors(model: nn.Module) -> nn.Module:
    """Perturb biases and norms, which start at 0 and 1: otherwise a swapped copy would go unnoticed."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def _collect_gradients(model: nn.Module) -> list[Tensor]:
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def _count_parameters(model: nn.Module) -> tuple[int, int]:
    """Return the number of trainable and of fixed parameters."""
    trainable = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    return trainable, sum(parameter.numel() for parameter in model.parameters()) - trainable


if __name__ == "__main__":
    main()
