"""A whole training step, data loading and logging included, against bare loops and against other tools.

    python -m bench.train            # about twenty minutes; the first run also makes vocabularies and shards
    python -m bench.train --quick    # under one minute: smaller batches for tiny, no 6x384, fewer precisions
    python -m bench.train --control --only tiny
    python -m bench.train --only peers nanogpt_small nanogpt_medium

Against bare loops over prebuilt batches:

tiny           Transformer-tiny (4+4 layers, width 128, dropout 0.3, label smoothing 0.1) on Multi30k en-de, one joint
               byte-level BPE of 10,000, batches of 4096 tokens; `accumulate2` accumulates two batches per step.
shakespeare    nanoGPT's shape for CPUs: 4 layers, 4 heads, width 128, 12 rows of 64 characters, no dropout;
               `6x384` is 6 layers, 6 heads, width 384, 16 rows of 256.

regard         `Trainer._step` on the output of its loader: rows from shards, seeding, forward, backward, clipping,
               spike detection, fused Adam, one line of metrics.jsonl, one event. No checkpoints, no validation.
bare           the same model and the same kernels over the same batches, built beforehand, in the shortest loop.
plain          the same shape in `bench.minimal_models`: torch's dropout, cross-entropy over all positions.
bfloat16       regard with matrix products in bfloat16 and attention in float32.
around         regard with an updater that computes nothing: loader, seeding, spike detection, metrics and event alone.

float32, one thread. Before timing starts, regard and bare must have the same losses and gradients for two steps from
the same seeds, and plain the same loss without dropout. A ratio is the median over all rounds of their CPU time / ours;
`float32/bfloat16` is our float32 time / our bfloat16 time. `around/step` is the fraction of a step outside the
updater: about what `step/bare` lacks, without the noise between two loops. The last line is JSON; `step/bare` is
that of tiny.

Against peers, each with its own loop in its own process, in turns (`bench.peers.contest`): target tokens without
padding per CPU-second, one thread, the same allocator, ours in the precision and with the settings that it chooses for
this CPU (bfloat16 with AMX, else float32).

peers            *tiny* against JoeyNMT (`python -m bench.peers joeynmt`, or JOEYNMT_PYTHON; float32, its only precision
                 on a CPU) and Hugging Face Seq2SeqTrainer with a Marian of the same shape (the faster of float32 and
                 bfloat16), and Marian (`python -m bench.peers marian`, or PYMARIAN; float32, its only precision)
nanogpt_small    *shakespeare* against nanoGPT's train.py (NANOGPT is its folder): the faster of float32, the only
                 precision of its script on a CPU (`.._as_it_is`), and bfloat16 with an autocast around its model
nanogpt_medium   the same for *6x384*
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

import torch
from torch import nn

from bench import minimal_models, reference_models
from bench.corpora import require
from bench.loops import BareLoop, RegardLoop, make_idle_step_runner, make_kernel_loss, make_plain_loss, prebuild_steps
from bench.peers import contest as peers
from bench.timing import format_table, quartiles, race, ratio, restart_with_tuned_malloc
from bench.training_cases import (
    CLIP,
    LEARNING_RATE,
    OURS,
    TrainingCase,
    make_regard_loop,
    make_shakespeare_case,
    make_tiny_case,
    read_corpus,
)
from regard.config.inputs import TokensConfig
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.config.parts import attention_stack
from regard.config.run import RunConfig
from regard.models.build import build
from regard.training.resolve import resolve_run

CONTESTS = ("tiny", "accumulate2", "shakespeare", "shakespeare_6x384", "peers", "nanogpt_small", "nanogpt_medium")
TOLERANCE = 1e-4
CHECKED_STEPS = 2


def make_loops(case: TrainingCase, folder: Path, names: Collection[str]) -> dict[str, RegardLoop | BareLoop]:
    """Create our loop and the loops of these names, and check that they compute the same."""
    run = case.run()
    data = read_corpus(run, case.corpus)
    run = resolve_run(run, data)
    regard_loop = make_regard_loop(case, run, data, folder / OURS)
    steps = prebuild_steps(regard_loop.trainer.loader, case.steps)
    label_smoothing = run.train.label_smoothing

    def make_bare() -> BareLoop:
        model = build(run.model, seed=run.seed).train()
        return BareLoop(
            model, make_kernel_loss(model, label_smoothing, run.device.logit_rows or 0), steps, LEARNING_RATE, CLIP
        )

    def make_plain() -> BareLoop:
        model = _make_minimal_model(regard_loop.trainer.model, run)
        loop = BareLoop(model, make_plain_loss(model, label_smoothing), steps, LEARNING_RATE, CLIP)
        _check_plain(regard_loop, loop)
        return loop

    def make_bfloat16() -> RegardLoop:
        return make_regard_loop(case, resolve_run(case.run("bfloat16"), data), data, folder / "bfloat16")

    def make_around() -> RegardLoop:
        loop = make_regard_loop(case, run, data, folder / "around")
        loop.trainer.step_runner = make_idle_step_runner(loop.trainer)
        return loop

    makers: dict[str, Callable[[], RegardLoop | BareLoop]] = {
        "plain": make_plain,
        "bfloat16": make_bfloat16,
        "around": make_around,
    }
    bare_loops = {name: make_bare() for name in ("bare", "control") if name in names}
    _check_bare(regard_loop, list(bare_loops.values()), run.seed)
    tokens = sum(prepared.labels.numel() for step in steps for prepared in step) / len(steps)
    print(f"\n{case.name}: {len(steps)} steps of {tokens:,.0f} target tokens on average")
    return {OURS: regard_loop, **bare_loops, **{name: make() for name, make in makers.items() if name in names}}


def _make_minimal_model(regard_model: nn.Module, run: RunConfig) -> nn.Module:
    """Create the minimal model of the same shape with the same weights."""
    model, length = run.model, run.data.max_length
    assert isinstance(model, EncoderDecoderConfig | DecoderOnlyConfig)  # noqa: S101
    decoder = attention_stack(model.decoder)
    sizes = (model.d_model, decoder.attention.heads, decoder.feedforward.d_ff, decoder.layers)
    minimal: nn.Module
    if isinstance(model, EncoderDecoderConfig):
        assert isinstance(model.source, TokensConfig)  # noqa: S101
        minimal = minimal_models.Translator(model.source.vocabulary, *sizes, decoder.dropout.sublayer, length)
        reference_models.copy_weights(
            regard_model, minimal, {**reference_models.MINIMAL_NAMES, **reference_models.TRANSLATOR_NAMES}
        )
    else:
        minimal = minimal_models.LanguageModel(model.tokens.vocabulary, *sizes, length)
        reference_models.copy_weights(
            regard_model, minimal, {**reference_models.MINIMAL_NAMES, **reference_models.LANGUAGE_MODEL_NAMES}
        )
    return minimal.train()


def _check_bare(regard_loop: RegardLoop, bare_loops: list[BareLoop], seed: int) -> None:
    """Compare two steps with dropout; the second one shows that the first step of the optimizer was the same."""
    for number in range(1, CHECKED_STEPS + 1):
        regard_loop()
        for bare in bare_loops:
            loss, norm = bare(seed)
            _check_close(f"step {number}, loss of bare", loss.item(), regard_loop.last_event.loss)
            _check_close(f"step {number}, gradient norm of bare", norm.item(), regard_loop.last_event.gradient_norm)


@torch.no_grad()
def _check_plain(regard_loop: RegardLoop, plain: BareLoop) -> None:
    """Compare the loss of one batch without dropout."""
    prepared, objective = plain.steps[0][0], regard_loop.trainer.objective
    plain.model.eval()
    objective.model.eval()
    tokens = prepared.labels.numel()
    _check_close(
        "loss of plain", plain.loss(prepared).item() / tokens, objective(prepared.original).total.item() / tokens
    )
    plain.model.train()
    objective.model.train()


def _check_close(label: str, theirs: float, expected: float) -> None:
    if abs(theirs - expected) > TOLERANCE * max(1.0, abs(expected)):
        raise SystemExit(f"The loops differ: {label} is {theirs:.6f}, Regard's is {expected:.6f}.")


def compete(case: TrainingCase, folder: Path, *, control: bool) -> dict[str, float]:
    """Run all heats of a case and return its ratios by key."""
    heats = [(*heat, "control") if control and "bare" in heat else heat for heat in case.heats]
    loops = make_loops(case, folder, [name for heat in heats for name in heat])
    suffix = "" if case.name == "tiny" else f"_{case.name}"
    ratios: dict[str, float] = {}
    for heat in heats:
        heat_loops = {name: loops[name] for name in (OURS, *heat)}
        for loop in heat_loops.values():
            loop.rewind()  # every round has the same batch for all
        times = race(heat_loops, seconds=case.seconds if "bare" in heat else case.seconds / 2)
        around = times.pop("around", None)
        print(format_table(times, ours=OURS))
        if around is not None:
            ratios[f"around/step{suffix}"] = ratio(around, times[OURS])
            print(f"around: {quartiles(around)[1]:.2f} CPU ms per step, {ratios[f'around/step{suffix}']:.2%} of it")
        ratios |= {
            f"step/{name}{suffix}": ratio(times[name], times[OURS]) for name in ("bare", "plain") if name in times
        }
        if "bfloat16" in times:
            ratios[f"float32/bfloat16{suffix}"] = ratio(times[OURS], times["bfloat16"])
    for name, loop in loops.items():
        if isinstance(loop, RegardLoop) and name != "around":
            print(f"{name}: loss {loop.last_event.loss:.3f} at step {loop.last_event.step}")
    return {name: round(value, 4 if name.startswith("around") else 3) for name, value in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller batches and few rounds: under a minute")
    parser.add_argument("--default-malloc", action="store_true", help="do not tune the allocator")
    parser.add_argument("--only", choices=CONTESTS, nargs="+", default=CONTESTS, help="run only these contests")
    parser.add_argument("--control", action="store_true", help="add a second bare loop: the two differ by noise only")
    options = parser.parse_args()
    require("multi30k", "tinyshakespeare")
    if not options.default_malloc:
        restart_with_tuned_malloc()
    start_time = time.perf_counter()
    torch.set_num_threads(1)
    malloc = "default" if options.default_malloc else "tuned"
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, 1 thread, {malloc} malloc")
    if options.quick:
        cases = [
            make_tiny_case(7.0, tokens=1024),
            make_tiny_case(4.0, tokens=1024, gradient_accumulation=2),
            make_shakespeare_case(4.0),
        ]
    else:
        cases = [
            make_tiny_case(150.0),
            make_tiny_case(80.0, gradient_accumulation=2),
            make_shakespeare_case(40.0),
            make_shakespeare_case(80.0, 6, 6, 384, 256),
        ]
    results: dict[str, float] = {}
    for case in cases:
        if case.name in options.only:
            with tempfile.TemporaryDirectory() as folder:
                results |= compete(case, Path(folder), control=options.control)
    for peer_contest in peers.iter_contests(options.quick):
        if peer_contest.name in options.only:
            results |= peers.compete(peer_contest)
    print(f"\n{time.perf_counter() - start_time:.0f} s. Ratio: median over the rounds of their CPU time / ours.")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
