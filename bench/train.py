"""A whole training update, data and records included, against bare loops, and against other people's tools.

    python -m bench.train            # some twenty minutes; the first time also a vocabulary and shards
    python -m bench.train --quick    # under one minute: smaller batches for tiny, no 6x384, fewer precisions
    python -m bench.train --control --only tiny
    python -m bench.train --only peers nanogpt_small nanogpt_medium

Against bare loops over batches that lie ready:

tiny           Transformer-tiny (4+4 layers, width 128, dropout 0.3, label smoothing 0.1) on Multi30k en-de, one byte
               BPE of 10,000 for both, batches of 4096 tokens; `together2` accumulates two of them in an update.
shakespeare    nanoGPT's shape for CPUs: 4 layers, 4 heads, width 128, 12 rows of 64 characters, no dropout;
               `6x384` is 6 layers, 6 heads, width 384, 16 rows of 256.

regard         `Trainer._update` on what its loader yields: rows from shards, seeds, forward, backward, clipping, guard,
               fused Adam, one line of metrics.jsonl, one event. Nothing is saved or validated meanwhile.
bare           the same model and the same kernels over the very same batches, built beforehand, in the shortest loop.
plain          the same shape of `bench.lean`: torch's dropout, and cross-entropy over the logits of all places.
bfloat16       regard with products in bfloat16 and attention in float32.
around         regard with an engine that computes nothing: loader, seeds, guard, journal and event alone.

float32, one thread. Before any clock runs, regard and bare must have the same losses and gradients for two updates from
the same seeds, and plain the same loss without dropout. A ratio is the median over all rounds of their CPU time / ours;
`float32/bfloat16` is our float32 time / our bfloat16 time, and `around/step` the share of an update that is not the
engine's: about what `step/bare` lacks, free of the noise between two loops. The last line is JSON; `step/bare` is
tiny's.

Against peers, each with its own loop in its own process, in turns (`bench.peers.contest`): real target tokens per
CPU-second, one thread, the same allocator, ours in bfloat16 with what the probe chooses.

peers            *tiny* against JoeyNMT (`python -m bench.peers joeynmt`, or JOEYNMT_PYTHON; float32, all that it has
                 on a CPU) and Hugging Face Seq2SeqTrainer with a Marian of the same shape (the faster of float32 and
                 bfloat16)
nanogpt_small    *shakespeare* against nanoGPT's train.py (NANOGPT is its folder): the faster of float32, all that its
                 script has on a CPU (`.._as_it_is`), and bfloat16 by an autocast put around its model
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

from bench import lean, rivals
from bench.loops import Bare, Ours, idle, plain_pieces, prebuilt, same_kernels
from bench.peers import contest as peers
from bench.shapes import CLIP, OURS, RATE, Shape, ours, read, shakespeare, tiny
from bench.timing import again_with_tuned_malloc, quartiles, race, ratio, table
from regard.config.model import DecoderOnly, EncoderDecoder, Tokens
from regard.config.run import Run
from regard.models.build import build
from regard.train.fit import _resolved

NAMES = ("tiny", "together2", "shakespeare", "shakespeare_6x384", "peers", "nanogpt_small", "nanogpt_medium")
CLOSE = 1e-4
CHECKED = 2  # updates


def contest(shape: Shape, place: Path, names: Collection[str]) -> dict[str, Ours | Bare]:
    """Ours and the loops of these names, checked."""
    run = shape.run()
    known = read(run, shape.corpus)
    run = _resolved(run, known)
    first = ours(shape, run, known, place / OURS)
    updates = prebuilt(first.trainer.loader, shape.updates)
    smoothing = run.train.label_smoothing

    def bare() -> Bare:
        model = build(run.model, seed=run.seed).train()
        return Bare(model, same_kernels(model, smoothing, run.device.logit_rows or 0), updates, RATE, CLIP)

    def plain() -> Bare:
        model = _lean(first.trainer.model, run)
        made = Bare(model, plain_pieces(model, smoothing), updates, RATE, CLIP)
        _check_plain(first, made)
        return made

    def narrow() -> Ours:
        return ours(shape, _resolved(shape.run("bfloat16"), known), known, place / "bfloat16")

    def around() -> Ours:
        made = ours(shape, run, known, place / "around")
        made.trainer.engine = idle(made.trainer)
        return made

    makers: dict[str, Callable[[], Ours | Bare]] = {"plain": plain, "bfloat16": narrow, "around": around}
    same = {name: bare() for name in ("bare", "control") if name in names}
    _check_bare(first, list(same.values()), run.seed)
    tokens = sum(ready.labels.numel() for update in updates for ready in update) / len(updates)
    print(f"\n{shape.name}: {len(updates)} updates of {tokens:,.0f} target tokens on average")
    return {OURS: first, **same, **{name: make() for name, make in makers.items() if name in names}}


def _lean(model_of_ours: nn.Module, run: Run) -> nn.Module:
    """The leanest model of the same shape with the same weights."""
    model, length = run.model, run.data.max_length
    assert isinstance(model, EncoderDecoder | DecoderOnly)  # noqa: S101
    part = model.decoder
    sizes = (model.width, part.attention.heads, part.feedforward.hidden, part.layers)
    made: nn.Module
    if isinstance(model, EncoderDecoder):
        assert isinstance(model.source, Tokens)  # noqa: S101
        made = lean.Translator(model.source.vocabulary, *sizes, part.dropout.sublayer, length)
        rivals.copy_weights(model_of_ours, made, {**rivals.LEAN_NAMES, **rivals.TRANSLATOR_TABLE})
    else:
        made = lean.LanguageModel(model.tokens.vocabulary, *sizes, length)
        rivals.copy_weights(model_of_ours, made, {**rivals.LEAN_NAMES, **rivals.LANGUAGE_MODEL_TABLES})
    return made.train()


def _check_bare(ours: Ours, others: list[Bare], seed: int) -> None:
    """Two updates, with dropout: the second shows that the first was learned alike."""
    for number in range(1, CHECKED + 1):
        ours()
        for bare in others:
            loss, norm = bare(seed)
            _same(f"Update {number}: the loss of bare", loss.item(), ours.last.loss)
            _same(f"Update {number}: the gradient of bare", norm.item(), ours.last.gradient)


@torch.no_grad()
def _check_plain(ours: Ours, plain: Bare) -> None:
    """The loss of one batch, without dropout."""
    ready, mine = plain.updates[0][0], ours.trainer.objective
    plain.model.eval()
    mine.model.eval()
    tokens = ready.labels.numel()
    _same("The loss of plain", plain.loss(ready).item() / tokens, mine(ready.whole).total.item() / tokens)
    plain.model.train()
    mine.model.train()


def _same(what: str, theirs: float, mine: float) -> None:
    if abs(theirs - mine) > CLOSE * max(1.0, abs(mine)):
        raise SystemExit(f"{what} is {theirs:.6f}, and Regard's is {mine:.6f}: they do not compute the same.")


def compete(shape: Shape, place: Path, *, control: bool) -> dict[str, float]:
    """All heats of a shape: its ratios by their keys."""
    heats = [(*heat, "control") if control and "bare" in heat else heat for heat in shape.heats]
    loops = contest(shape, place, [name for heat in heats for name in heat])
    tail = "" if shape.name == "tiny" else f"_{shape.name}"
    found: dict[str, float] = {}
    for heat in heats:
        entered = {name: loops[name] for name in (OURS, *heat)}
        for loop in entered.values():
            loop.rewind()  # the same batch for all in every round
        times = race(entered, seconds=shape.seconds if "bare" in heat else shape.seconds / 2)
        around = times.pop("around", None)
        print(table(times, ours=OURS))
        if around is not None:
            found[f"around/step{tail}"] = ratio(around, times[OURS])
            print(f"around: {quartiles(around)[1]:.2f} CPU ms an update, {found[f'around/step{tail}']:.2%} of it")
        found |= {f"step/{name}{tail}": ratio(times[name], times[OURS]) for name in ("bare", "plain") if name in times}
        if "bfloat16" in times:
            found[f"float32/bfloat16{tail}"] = ratio(times[OURS], times["bfloat16"])
    for name, loop in loops.items():
        if isinstance(loop, Ours) and name != "around":
            print(f"{name}: the loss of update {loop.last.update} was {loop.last.loss:.3f}")
    return {name: round(value, 4 if name.startswith("around") else 3) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller batches and few rounds: under a minute")
    parser.add_argument("--plain-malloc", action="store_true", help="leave the allocator as it is")
    parser.add_argument("--only", choices=NAMES, nargs="+", default=NAMES, help="some of the contests")
    parser.add_argument("--control", action="store_true", help="race a second bare loop: their distance is noise")
    options = parser.parse_args()
    if not options.plain_malloc:
        again_with_tuned_malloc()
    began = time.perf_counter()
    torch.set_num_threads(1)
    malloc = "plain" if options.plain_malloc else "tuned"
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, 1 thread, {malloc} malloc")
    if options.quick:
        shapes = [tiny(7.0, tokens=1024), tiny(4.0, tokens=1024, together=2), shakespeare(4.0)]
    else:
        shapes = [tiny(150.0), tiny(80.0, together=2), shakespeare(40.0), shakespeare(80.0, 6, 6, 384, 256)]
    results: dict[str, float] = {}
    for shape in shapes:
        if shape.name in options.only:
            with tempfile.TemporaryDirectory() as place:
                results |= compete(shape, Path(place), control=options.control)
    for other in peers.contests(options.quick):
        if other.name in options.only:
            results |= peers.compete(other)
    print(f"\n{time.perf_counter() - began:.0f} s. Ratio: median over the rounds of their CPU time / ours.")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
