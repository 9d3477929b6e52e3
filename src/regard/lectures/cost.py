"""What attention costs: in parallel or step by step, by score function, and with a growing cache.

One thread, random weights, the median CPU time of several tries.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from regard.config.codec import preset
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.scores import Additive, Concat, General, ScoreFunction

TRIES = 5
LENGTHS = (8, 32, 128)


def measure(compute: Callable[[], object]) -> float:
    """Return the median CPU-milliseconds of several calls, after one that does not count."""
    times = []
    for _ in range(1 + TRIES):
        start = time.process_time()
        compute()
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times[1:])


def build_translator(position: str) -> EncoderDecoder:
    """Build the preset `tiny` with a kind of position encoding."""
    changes = {"source.vocabulary": 1000} | {f"{stack}.position.kind": position for stack in ("encoder", "decoder")}
    model: EncoderDecoder = build(preset("tiny", changes)).eval()
    return model


def compute_in_steps(model: EncoderDecoder, source: Tensor, target: Tensor) -> Tensor:
    """Return the logits of all target tokens, (1, T, vocabulary), one token after the other."""
    state = model.start(source, capacity=target.size(1))
    return torch.cat([model.step(token[:, None], state) for token in target.unbind(1)], dim=1)


@torch.inference_mode()
def show_parallel() -> Iterator[str]:
    """One pass over all target tokens, and one step per token."""
    yield "CPU-milliseconds for all target tokens of one text, preset tiny:\n"
    yield "positions   tokens  one pass  step by step  ratio  largest difference of the logits"
    for position in ("sinusoidal", "none"):
        model = build_translator(position)
        for length in LENGTHS:
            texts = torch.randint(8, 1000, (2, 1, length)).unbind()  # source and target, (1, T) each
            one_pass, steps = partial(model, *texts), partial(compute_in_steps, model, *texts)
            times = measure(one_pass), measure(steps)
            difference = (one_pass() - steps()).abs().max()
            cells = f"{times[0]:8.1f}  {times[1]:12.1f}  {times[1] / times[0]:5.1f}  {difference:.1e}"
            yield f"{position:10}  {length:6}  {cells}"
    yield "\nThe mask hides later tokens, so that one pass gives what the steps give. Positions are added before the"
    yield "pass: they neither help nor hinder it."


def compute_scores(score: ScoreFunction, query: Tensor, key: Tensor) -> Tensor:
    """Return the scores (B, H, T, T) of queries and keys (B, H, T, K)."""
    return score.scores(score.on_query(query), score.on_key(key))


def count_kept(score: ScoreFunction, query: Tensor, key: Tensor) -> int:
    """Return the numbers of the largest tensor that is kept for the gradient."""
    sizes = [0]

    def keep(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        compute_scores(score, query.requires_grad_(), key.requires_grad_())
    return max(sizes)


def show_scores() -> Iterator[str]:
    """The five score functions: time, and the numbers that they keep for the gradient."""
    heads, key_dim = 8, 64
    scores: dict[str, ScoreFunction] = {
        "dot": ScoreFunction(1.0),
        "scaled dot": ScoreFunction(key_dim**-0.5),
        "general": General(heads, key_dim),
        "concat": Concat(heads, key_dim, key_dim),
        "additive": Additive(heads, key_dim, key_dim),
    }
    for score in scores.values():
        for parameter in score.parameters():
            torch.nn.init.normal_(parameter, std=key_dim**-0.5)
    yield f"{heads} heads of {key_dim} numbers, T queries and T keys; CPU-milliseconds of all scores, one thread:\n"
    yield (
        "score       weights  "
        + "  ".join(f"T = {length:3}" for length in LENGTHS)
        + "  largest tensor kept for the gradient, T = 128"
    )
    for name, score in scores.items():
        times = []
        for length in LENGTHS:
            query, key = torch.randn(2, 1, heads, length, key_dim).unbind()
            with torch.no_grad():
                times.append(measure(partial(compute_scores, score, query, key)))
        numbers = count_kept(score, *torch.randn(2, 1, heads, LENGTHS[-1], key_dim).unbind())
        weights = sum(parameter.numel() for parameter in score.parameters())
        yield f"{name:10}  {weights:7,}  " + "  ".join(f"{value:7.2f}" for value in times) + f"  {numbers:,} numbers"
    yield "\nThe first three are one matrix product; the last two apply a tanh to every pair of a query and a key."


@torch.inference_mode()
def show_cache() -> Iterator[str]:
    """Bytes that each token adds to the KV cache."""
    model, most = build_translator("sinusoidal"), 12
    source, target = torch.randint(8, 1000, (1, 10)), torch.randint(8, 1000, (1, most))
    yield f"Bytes of the cache while `tiny` writes {most} tokens for a source of {source.size(1)} (float32):\n"
    yield "tokens  of the source  of the target"
    for count in range(1, most + 1):
        state = model.start(source, capacity=count)  # a cache without unused capacity
        memory = state.kv_cache.bytes
        for token in target[:, :count].unbind(1):
            model.step(token[:, None], state)
        grown = state.kv_cache.bytes - memory
        yield f"{count:6}  {memory:13,}  {grown:13,}  {'#' * count}"
    layers, width = len(model.decoder.layers), model.decoder.layers[0].attention.query.in_features
    yield f"\nEach token adds a key and a value of {width} numbers in each of {layers} layers, 4 bytes each:"
    yield f"2 x {width} x {layers} x 4 = {8 * width * layers:,} bytes. Those of the source are computed once."
