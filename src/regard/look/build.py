"""`look_into`: run a model on one text, record the run, and build a document from it.

look = regard.look_into("my-model", "Two dogs play.")
look.save("dogs.html")
"""

import hashlib
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from regard.base.arguments import check_type
from regard.base.blobs import Blob
from regard.base.formatting import pluralize
from regard.base.progress import begin, track
from regard.base.version import __version__
from regard.look.ablation import Ablator, strongest
from regard.look.alignment import make_hypotheses
from regard.look.attention import attention_name, make_groups
from regard.look.attribution import FIRST_STEPS, MAX_OUTPUTS, attribute
from regard.look.document import (
    FORMAT,
    Ablation,
    Attribution,
    Document,
    Group,
    LeakTest,
    Model,
    PredictionJson,
    SearchJson,
    TokenInfo,
)
from regard.look.look import Look
from regard.look.masks import check_leak, make_masks
from regard.look.media import drop_order, make_picture
from regard.look.next_tokens import find_next_tokens
from regard.look.positions import Stack, describe_positions, kind_of
from regard.look.reads import find_reads
from regard.look.record import LookRecord
from regard.look.search import best_dropped, continue_candidate, make_sampling, make_search, mentioned_tokens
from regard.look.tokens import Sequences, describe_sequences, describe_vocabulary
from regard.nn.positions import Sinusoidal2d
from regard.nn.stack import Stack as StackModule
from regard.tasks.load import load
from regard.tasks.pipeline import Pipeline
from regard.tasks.replay import Generated, ModelRun
from regard.tasks.requests import ReplayOptions
from regard.tasks.search import Beam, Sampling

MAX_CELLS = 2048 * 2048  # cells of all maps in a document: one map of 2,048 tokens, or 24 heads of 418 tokens
MAX_FLOPS = 2e11  # of ablation and leak test, about five seconds on one core; skipped if they need more
FORCE = "--ablation (in Python: ablation=True)"
MAX_RECORD_BYTES = 2**29  # queries and keys that need more memory are kept in half precision
MAX_SEARCHES = 8  # number of dropped candidates to continue
MAX_SEARCH_STEPS = 200  # steps of all these searches, but at least one search


def look_into(
    model: Pipeline | str | PathLike[str],
    text: str,
    *,
    search: Beam | Sampling | None = None,
    n_best: int = 1,
    max_new_tokens: int | None = None,
    target_language: str | None = None,
    seed: int | None = 0,
    ablation: bool | None = None,
    name: str | None = None,
) -> Look:
    """Run a model on one text and record the run.

    Args:
        model: A pipeline, or the folder of a model or a run.
        text: A source to translate, a prompt to continue, a text with gaps (`___`) or a text to label; for a model that
            reads images or audio clips, the path of a file.
        search: Search strategy of a generative model: `Beam` or `Sampling`. Default: `Beam()` for a
            translator, transcriber or captioner, sampling at temperature 0.8 and top-p 0.95 for a language model.
        n_best: Number of hypotheses of a beam search whose cross-attention is kept.
        max_new_tokens: Maximum number of generated tokens; by default as for `translate`, 40 for a language model.
        target_language: Language to translate into (multilingual models).
        seed: Random seed of sampling.
        ablation: Ablate every head; by default only if this takes at most a few seconds. True also forces
            attribution and the leak test.
        name: Name of the model in the document; by default the folder name.

    Returns:
        The look: `save` it as one file, `show` it in a browser, or read its `document`.

    Raises:
        RegardError: The text is empty or too long for the model, or an argument is invalid.
    """
    if isinstance(model, str | PathLike):
        name = Path(model).absolute().name if name is None else name
        model = load(model)
    check_type("model", model, Pipeline, "a loaded model or its folder")
    check_type("text", text, str | PathLike, "one text")
    check_type("search", search, Beam | Sampling | None, "regard.Beam() or regard.Sampling()")
    pipeline = model.in_torch
    options = ReplayOptions(search, n_best, max_new_tokens, target_language, seed)
    run = pipeline.replay(text, options)
    begin("recording the model")
    record = LookRecord(half=_record_bytes(pipeline, run) > MAX_RECORD_BYTES)
    run.input.replay(record)
    document = _make_document(pipeline, name or "", text, run, record, ablation)

    def look_again(text: str) -> Look:
        return look_into(
            pipeline,
            text,
            search=search,
            n_best=n_best,
            max_new_tokens=max_new_tokens,
            target_language=target_language,
            seed=seed,
            ablation=ablation,
            name=name,
        )

    return Look(document, run, record, look_again if run.drawn is None else None)


def _make_document(
    pipeline: Pipeline, name: str, text: str, run: ModelRun, record: LookRecord, ablation: bool | None
) -> Document:
    blobs: dict[str, Blob] = {}
    notes: list[str] = []
    sequences, generated = describe_sequences(pipeline, run), run.generated
    leak, ablation_part = _experiment(pipeline, run, record, blobs, ablation, notes)
    delta = None if ablation_part is None else ablation_part["delta"]
    groups = make_groups(record, sequences, blobs, MAX_CELLS, delta)
    if run.drawn is not None and not run.drawn.is_ordered:
        drop_order(groups)
    search = _make_search(run)
    sampling = None
    if generated is not None and generated.sampling is not None:
        sampling = make_sampling(generated.generation, generated.sampling, blobs)
    attribution = _attribute(pipeline, run, sequences, blobs, ablation, notes)
    if missing := sum(group["layers"] * group["heads"] - len(group["maps"]) for group in groups):
        notes.append(f"The full maps of {pluralize(missing, 'head')} are not in this file because they are too large.")
    vocabulary: dict[str, TokenInfo] = {}
    hypotheses, next_tokens = [], None
    if generated is not None:
        next_tokens = find_next_tokens(run)
        mentioned = mentioned_tokens(search, generated.sampling).union(*next_tokens["tokens"])
        vocabulary = describe_vocabulary(generated.generation.tokenizer, mentioned)
        # A recurrent decoder may have no cross-attention; attention over audio frames is not a word alignment.
        has_cross = attention_name("decoder.cross", 0) in record.attention and run.drawn is None
        hypotheses = make_hypotheses(generated, record, blobs) if has_cross else []
    stacks = _stacks(pipeline)
    lengths = {"encoder": run.input.source_length, "decoder": len(run.input.target)}
    drawable = [stack for stack in stacks if not isinstance(stacks[stack].position, Sinusoidal2d)]
    document = Document(
        format=FORMAT,
        live=False,
        text=text,
        output=run.output,
        model=_describe_model(pipeline, name, groups, stacks),
        sequences=sequences,
        vocabulary=vocabulary,
        attention=groups,
        search=search,
        sampling=sampling,
        ablation=ablation_part,
        attribution=attribution,
        hypotheses=hypotheses,
        predictions=[
            PredictionJson(position=place.position, labels=place.labels, probabilities=place.probabilities)
            for place in run.predictions
        ],
        masks=make_masks(record, leak),
        positions=[describe_positions(stacks[stack].position, stack, lengths[stack], blobs) for stack in drawable],
        merges=None,
        notes=notes,
        blobs=blobs,
    )
    if next_tokens is not None:
        document["next"] = next_tokens
    reads = find_reads(run, record, groups, hypotheses, blobs)
    if reads is not None:
        document["reads"] = reads
    if run.drawn is not None:
        document["picture"] = make_picture(run.drawn, blobs)
    return document


def _make_search(run: ModelRun) -> SearchJson | None:
    generated = run.generated
    if generated is None or generated.trace is None:
        return None
    search = make_search(generated.trace)
    count = min(MAX_SEARCHES, max(1, MAX_SEARCH_STEPS // max(1, _count_steps(generated))))  # fewer for long texts
    for number in track(best_dropped(generated.trace, count), "continuing dropped candidates"):
        search["continuations"][str(number)] = continue_candidate(generated.generation, generated.trace, number)
    return search


def _attribute(
    pipeline: Pipeline,
    run: ModelRun,
    sequences: Sequences,
    blobs: dict[str, Blob],
    wanted: bool | None,
    notes: list[str],
) -> Attribution | None:
    """Attribute the outputs to the tokens; skipped if there are no tokens or it would take too long."""
    inputs = run.input
    if not inputs.labels or inputs.media is not None:  # the baseline of a token is a mean of the vocabulary
        return None
    outputs = min(len(inputs.labels), MAX_OUTPUTS)
    flops = 6.0 * pipeline.num_parameters * inputs.length * outputs * 4 * FIRST_STEPS  # most texts need fewer steps
    if flops > MAX_FLOPS and not wanted:
        length = pluralize(inputs.length, "token")
        notes.append(f"Attribution was skipped (slow for {length}); ask for it with {FORCE}.")
        return None
    return attribute(inputs, list(sequences.values()), run.places, blobs)


def _experiment(
    pipeline: Pipeline,
    run: ModelRun,
    record: LookRecord,
    blobs: dict[str, Blob],
    wanted: bool | None,
    notes: list[str],
) -> tuple[LeakTest | None, Ablation | None]:
    """Run the leak test and the ablation, unless they would take too long."""
    inputs, ablator = run.input, Ablator(run, record)
    heads = len(ablator.heads)
    flops = 2.0 * pipeline.num_parameters * inputs.length
    leak = None
    length = pluralize(inputs.length, "token")
    if inputs.target and (wanted or flops <= MAX_FLOPS):
        leak = check_leak(inputs)
    elif inputs.target:
        notes.append(f"The leak test was skipped (slow for {length}); ask for it with {FORCE}.")
    if not inputs.labels or wanted is False:
        return leak, None
    if wanted is None and flops * heads > MAX_FLOPS:
        what = f"{pluralize(heads, 'head')} and {length}"
        notes.append(f"Head ablation was skipped (slow for {what}); ask for it with {FORCE}.")
        return leak, None
    ablation = ablator.measure(blobs)
    if run.generated is not None:
        # Every step reads one token of every hypothesis; the source and the prompt are read once.
        rows = inputs.length + _count_steps(run.generated) * run.generated.generation.search.rows_per_text
        searches = heads if wanted else max(1, int(MAX_FLOPS / (2.0 * pipeline.num_parameters * rows)))
        ablation["texts"] = ablator.generate(run.generated.generation, strongest(ablation["delta"], searches))
    return leak, ablation


def _count_steps(generated: Generated) -> int:
    """Return the number of steps of a search."""
    if generated.trace is None:
        return len(generated.hypotheses[0].tokens)
    return max(candidate.length for candidate in generated.trace.candidates)


def _describe_model(pipeline: Pipeline, name: str, groups: list[Group], stacks: dict[Stack, Any]) -> Model:
    return Model(
        family=pipeline.settings.family,
        task=pipeline.settings.task,
        name=name,
        width=pipeline.settings.d_model,
        layers={stack: len(module.layers) for stack, module in stacks.items()},
        heads={group["name"]: group["heads"] for group in groups},
        positions={stack: kind_of(module.position) for stack, module in stacks.items()},
        parameters=pipeline.num_parameters,
        vocabulary=pipeline.vocabulary_sizes,
        sha256=hash_weights(pipeline.model),
        regard=__version__,
    )


def hash_weights(model: nn.Module) -> str:
    """Return the sha256 of the names, types, shapes and values of all parameters."""
    digest = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        values = parameter.detach().cpu().contiguous()
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}\n".encode())
        digest.update(values.flatten().view(torch.uint8).numpy())  # type: ignore[arg-type]  # a buffer
    return digest.hexdigest()


def _stacks(pipeline: Pipeline) -> dict[Stack, Any]:
    stacks: list[Any] = [module for module in pipeline.model.modules() if isinstance(module, StackModule)]
    return {stack.name: stack for stack in stacks if stack.name in get_args(Stack)}


def _record_bytes(pipeline: Pipeline, run: ModelRun) -> int:
    """Return the approximate memory of all queries and keys in single precision."""
    layers = sum(len(stack.layers) for stack in _stacks(pipeline).values())
    return 2 * 4 * layers * run.input.length * pipeline.settings.d_model
