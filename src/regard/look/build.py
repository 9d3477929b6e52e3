"""`look_into`: run a model on one text, record it, and build the document of what it did.

look = regard.look_into("my-model", "Two dogs play.")
look.save("dogs.html")
"""

import hashlib
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import torch
from torch import nn

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.base.progress import begin, track
from regard.base.version import __version__
from regard.look.ablation import ablate, count_heads, strongest, switch_off
from regard.look.alignment import make_hypotheses
from regard.look.attention import attention_name, make_groups
from regard.look.attribution import FIRST_STEPS, MAX_OUTPUTS, attribute
from regard.look.document import (
    FORMAT,
    Ablation,
    Attribution,
    Blob,
    Document,
    Group,
    LeakTest,
    Model,
    SearchJson,
    TokenInfo,
    encode_u8,
)
from regard.look.look import Look
from regard.look.masks import check_leak, make_masks
from regard.look.media import MediaPipeline, drop_order, read_media
from regard.look.model_run import ModelRun, RunOptions, run_text
from regard.look.positions import Stack, describe_positions, kind_of
from regard.look.record import LookRecord
from regard.look.search import best_dropped, continue_candidate, make_sampling, make_search, mentioned_tokens
from regard.look.tokens import describe_vocabulary
from regard.nn.positions import Sinusoidal2d
from regard.nn.stack import Stack as StackModule
from regard.pipeline.audio_classifier import AudioClassifier
from regard.pipeline.embedder import Embedder
from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.image_classifier import ImageClassifier
from regard.pipeline.image_generator import ImageGenerator
from regard.pipeline.load import AnyPipeline, load
from regard.pipeline.search import Beam, Sampling
from regard.pipeline.transcriber import Transcriber

MAX_CELLS = 2048 * 2048  # cells of all maps in a document: one map of 2,048 tokens, or 24 heads of 418 tokens
MAX_FLOPS = 2e11  # of ablation and leak test, about five seconds of one core; beyond that they are left out
MAX_RECORD_BYTES = 2**29  # queries and keys that need more are kept in half precision
MAX_SEARCHES = 8  # dropped candidates that are continued, and as many heads whose absence is tried out in a search
MAX_SEARCH_STEPS = 200  # steps of all these searches, but at least one of each kind


def look_into(
    model: AnyPipeline | str | PathLike[str],
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
    """Run a model on one text and record what it did.

    Args:
        model: A pipeline, or the folder of a model or a run.
        text: A source to translate, a prompt to continue, a text with gaps (`___`) or a text to label; for a model that
            reads images or audio clips the path of a file.
        search: How a model that generates does so: `Beam` or `Sampling` (of one text). Default: `Beam()` for a
            translator, transcriber or captioner, sampling at temperature 0.8 and top-p 0.95 for a language model.
        n_best: Number of hypotheses of a beam search whose cross-attention is kept.
        max_new_tokens: Maximum number of generated tokens; by default as for `translate`, 40 for a language model.
        target_language: Language to translate into (multilingual models).
        seed: Random seed of sampling.
        ablation: Switch every head off once; by default if this takes at most a few seconds.
        name: Name of the model in the document; by default that of its folder.

    Returns:
        The look: `save` it as one file, `show` it in a browser, or read its `document`.

    Raises:
        RegardError: The text is empty or too long for the model, or an argument is invalid.
    """
    if isinstance(model, str | PathLike):
        pipeline: AnyPipeline = load(model)
        name = Path(model).absolute().name if name is None else name
    else:
        pipeline = model.in_torch
    if isinstance(pipeline, ImageGenerator):
        raise RegardError(
            "The page shows tokens of text, and this model's tokens are pixels.", hint="See docs/images.md."
        )
    if isinstance(pipeline, Embedder):
        raise RegardError("A model without a head predicts nothing to look into.", hint="Use an encoder with a head.")
    options = RunOptions(search, n_best, max_new_tokens, target_language, seed)
    if isinstance(pipeline, MediaPipeline):
        reading = read_media(pipeline, text, options)
    else:
        reading = run_text(pipeline, text, options)
    begin("recording the model")
    record = LookRecord(half=_record_bytes(pipeline, reading) > MAX_RECORD_BYTES)
    reading.passage.replay(record)
    return Look(_make_document(pipeline, name or "", text, reading, record, ablation), reading, record)


def _make_document(
    pipeline: AnyPipeline, name: str, text: str, reading: ModelRun, record: LookRecord, ablation: bool | None
) -> Document:
    blobs: dict[str, Blob] = {}
    notes: list[str] = []
    generation, generated = reading.generation, reading.generated
    groups = make_groups(record, reading.sequences, blobs, MAX_CELLS)
    if reading.picture is not None and reading.picture["kind"] == "image":
        drop_order(groups)
    search = _make_search(reading)
    sampling = None
    if generation is not None and generated is not None and generated.sampling is not None:
        sampling = make_sampling(generation, generated.sampling, blobs)
    attribution = _attribute(pipeline, reading, blobs, notes)
    leak, ablation_part = _experiment(pipeline, reading, record, groups, ablation, notes)
    if missing := sum(group["layers"] * group["heads"] - len(group["maps"]) for group in groups):
        notes.append(
            f"The complete maps of {pluralize(missing, 'head')} are not in this file: they would be too large."
        )
    vocabulary: dict[str, TokenInfo] = {}
    hypotheses = []
    if generation is not None and generated is not None:
        vocabulary = describe_vocabulary(generation.tokenizer, mentioned_tokens(search, generated.sampling))
        # A recurrent decoder may have no cross-attention; that over frames of an audio clip is no alignment of words.
        has_cross = attention_name("decoder.cross", 0) in record.attention and reading.picture is None
        hypotheses = make_hypotheses(generation, generated, record, blobs) if has_cross else []
    stacks = _stacks(pipeline)
    lengths = {"encoder": reading.passage.source_length, "decoder": len(reading.passage.target)}
    drawable = [stack for stack in stacks if not isinstance(stacks[stack].position, Sinusoidal2d)]
    document = Document(
        format=FORMAT,
        live=False,
        text=text,
        output=reading.output,
        model=_describe_model(pipeline, name, groups, stacks),
        sequences=reading.sequences,
        vocabulary=vocabulary,
        attention=groups,
        search=search,
        sampling=sampling,
        ablation=ablation_part,
        attribution=attribution,
        hypotheses=hypotheses,
        predictions=reading.predictions,
        masks=make_masks(record, leak),
        positions=[describe_positions(stacks[stack].position, stack, lengths[stack], blobs) for stack in drawable],
        merges=None,
        notes=notes,
        blobs=blobs,
    )
    if reading.picture is not None and reading.pixels is not None:
        document["picture"] = reading.picture
        blobs[reading.picture["pixels"]] = encode_u8(reading.pixels)
    return document


def _make_search(reading: ModelRun) -> SearchJson | None:
    generation, generated = reading.generation, reading.generated
    if generation is None or generated is None or generated.trace is None:
        return None
    search = make_search(generated.trace)
    for number in track(best_dropped(generated.trace, _search_count(reading)), "continuing dropped candidates"):
        search["continuations"][str(number)] = continue_candidate(generation, generated.trace, number)
    return search


def _attribute(
    pipeline: AnyPipeline, reading: ModelRun, blobs: dict[str, Blob], notes: list[str]
) -> Attribution | None:
    """Attribute the outputs to the tokens, unless there are none or it would take too long."""
    passage = reading.passage
    if not passage.labels or passage.media is not None:  # the baseline of a token is a mean of the vocabulary
        return None
    outputs = min(len(passage.labels), MAX_OUTPUTS)
    flops = 6.0 * pipeline.num_parameters * passage.length * outputs * 4 * FIRST_STEPS  # most texts need fewer steps
    if flops > MAX_FLOPS:
        notes.append("The attribution of this text takes long: it is left out.")
        return None
    sequences = [reading.sequences[name] for name in ("source", "target") if name in reading.sequences]
    places: list[int | None] = [row + 1 for row in passage.rows] if passage.target else list(passage.rows)
    if pipeline.settings.task == "classify":
        places = [None]
    return attribute(passage, sequences, places, blobs)


def _experiment(
    pipeline: AnyPipeline,
    reading: ModelRun,
    record: LookRecord,
    groups: list[Group],
    wanted_ablation: bool | None,
    notes: list[str],
) -> tuple[LeakTest | None, Ablation | None]:
    """Run the leak test and the ablation, unless they would take too long."""
    passage = reading.passage
    heads = sum(group["layers"] * group["heads"] for group in groups)
    flops = 2.0 * pipeline.num_parameters * passage.length
    leak = None
    if passage.target and flops <= MAX_FLOPS:
        leak = check_leak(passage)
    elif passage.target:
        notes.append("The leak test is left out: another pass over this text would take long.")
    if not passage.labels or wanted_ablation is False:
        return leak, None
    if wanted_ablation is None and flops * heads > MAX_FLOPS:
        notes.append(
            f"Switching off each of {pluralize(heads, 'head')} would take long: ask for it with ablation=True."
        )
        return leak, None
    baseline, delta = ablate(passage, record)
    texts = {}
    if reading.generation is not None:
        for head in track(strongest(delta, _search_count(reading)), "searching without a head"):
            generated = reading.generation.run(switch_off([head], count_heads(record)))
            texts[".".join(map(str, head))] = reading.generation.decode(generated.hypotheses[0])
    return leak, Ablation(output=reading.output_name, baseline=baseline, delta=delta, texts=texts)


def _search_count(reading: ModelRun) -> int:
    """Return how many further searches the document may contain: fewer for long texts."""
    generated = reading.generated
    steps = len(generated.hypotheses[0].tokens) if generated is not None else 0
    if generated is not None and generated.trace is not None:
        steps = max(candidate.length for candidate in generated.trace.candidates)
    return min(MAX_SEARCHES, max(1, MAX_SEARCH_STEPS // max(1, steps)))


def _describe_model(pipeline: AnyPipeline, name: str, groups: list[Group], stacks: dict[Stack, Any]) -> Model:
    vocabulary = {}
    if not isinstance(pipeline, ImageClassifier | AudioClassifier):  # they have no tokenizer
        vocabulary = {"source": pipeline.tokenizers.source.size, "target": pipeline.tokenizers.target.size}
    if isinstance(pipeline, Transcriber | ImageCaptioner):
        del vocabulary["source"]
    return Model(
        family=pipeline.settings.family,
        task=pipeline.settings.task,  # type: ignore[typeddict-item]  # the tasks that have a pipeline
        name=name,
        width=pipeline.settings.d_model,
        layers={stack: len(module.layers) for stack, module in stacks.items()},
        heads={group["name"]: group["heads"] for group in groups},
        positions={stack: kind_of(module.position) for stack, module in stacks.items()},
        parameters=pipeline.num_parameters,
        vocabulary=vocabulary,
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


def _stacks(pipeline: AnyPipeline) -> dict[Stack, Any]:
    stacks: list[Any] = [module for module in pipeline.model.modules() if isinstance(module, StackModule)]
    return {stack.name: stack for stack in stacks if stack.name in get_args(Stack)}


def _record_bytes(pipeline: AnyPipeline, reading: ModelRun) -> int:
    """Return the memory of all queries and keys in single precision, roughly."""
    layers = sum(len(stack.layers) for stack in _stacks(pipeline).values())
    return 2 * 4 * layers * reading.passage.length * pipeline.settings.d_model
