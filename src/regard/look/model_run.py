"""What a model did with a text: one function per task, which runs the pipeline and returns a `ModelRun`."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.base.errors import RegardError
from regard.data.shards.tokenize import find_first_tokens
from regard.look.alignment import make_passage
from regard.look.document import Picture, PredictionJson, Token
from regard.look.generation import Generated, Generation
from regard.look.model_input import read_prompt, read_source
from regard.look.replay import ReplayInput
from regard.look.tokens import describe_tokens
from regard.pipeline.classifier import Classifier
from regard.pipeline.encoding import add_special_tokens, check_length
from regard.pipeline.ensemble import EnsembleTranslator
from regard.pipeline.fill_mask import GAP, FillMask
from regard.pipeline.generator import DEFAULT_SEARCH, TextGenerator
from regard.pipeline.search import Beam, Sampling
from regard.pipeline.translator import Translator

DEFAULT_NEW_TOKENS = 40
N_BEST = 10  # candidates per gap
Sequences = dict[Literal["source", "target"], list[Token]]


@dataclass(frozen=True)
class ModelRun:
    """One text, what the model made of it, and how it can be replayed."""

    passage: ReplayInput
    sequences: Sequences
    output: str
    output_name: str
    """What the log-probability of the passage belongs to."""
    generation: Generation | None = None
    generated: Generated | None = None
    predictions: list[PredictionJson] = field(default_factory=list)
    picture: Picture | None = None
    pixels: NDArray[np.uint8] | None = None
    """Of the picture, (height, width, channels)."""


@dataclass(frozen=True)
class RunOptions:
    """How to generate; the docstring of `look_into` explains each."""

    search: Beam | Sampling | None = None
    n_best: int = 1
    max_new_tokens: int | None = None
    target_language: str | None = None
    seed: int | None = 0


def run_text(pipeline: Translator | TextGenerator | FillMask | Classifier, text: str, options: RunOptions) -> ModelRun:
    """Run a pipeline on one text."""
    match pipeline:
        case EnsembleTranslator():
            message = "An ensemble cannot be looked into: every member has its own attention."
            raise RegardError(message, hint="Look into one member.")
        case Translator():
            return _translate(pipeline, text, options)
        case TextGenerator():
            return _continue(pipeline, text, options)
        case FillMask():
            return _fill(pipeline, text)
    return _classify(pipeline, text) if pipeline.settings.task == "classify" else _tag(pipeline, text)


def _translate(translator: Translator, text: str, options: RunOptions) -> ModelRun:
    sources = translator.encode_sources([text], options.target_language)
    if not sources[0]:
        raise RegardError("The text is empty: the model reads nothing.", hint="Give a text with words.")
    (max_new_tokens,) = translator.resolve_max_lengths(sources, options.max_new_tokens)
    search = options.search or Beam()
    generation = Generation(read_source(translator, sources[0]), search, max_new_tokens, options.seed, options.n_best)
    sequences: Sequences = {"source": describe_tokens(translator.tokenizers.source, sources[0])}
    return generate_text(generation, sequences, "the translation")


def _continue(generator: TextGenerator, text: str, options: RunOptions) -> ModelRun:
    max_new_tokens = options.max_new_tokens or DEFAULT_NEW_TOKENS
    (ids,) = generator.encode_prompts([text], max_new_tokens)
    search = options.search or DEFAULT_SEARCH
    generation = Generation(read_prompt(generator, ids), search, max_new_tokens, options.seed, options.n_best)
    return generate_text(generation, {}, "the continuation")


def generate_text(generation: Generation, sequences: Sequences, output_name: str) -> ModelRun:
    """Run a search, and return its best text."""
    generated = generation.run()
    best, prompt = generated.hypotheses[0], generation.input.prompt
    sequences["target"] = describe_tokens(
        generation.tokenizer, [*prompt, *best.tokens], best.logprobs, prompt=len(prompt)
    )
    return ModelRun(
        passage=make_passage(generation, best),
        sequences=sequences,
        output=generation.decode(best),
        output_name=output_name,
        generation=generation,
        generated=generated,
    )


def _fill(fill_mask: FillMask, text: str) -> ModelRun:
    tokenizer = fill_mask.tokenizers.source
    if GAP not in text:  # nothing to predict, but attention to see
        row = add_special_tokens(tokenizer, tokenizer.encode(text).ids)
        check_length("The text", row, fill_mask.settings.encoder.max_positions, location=text)
        return _read_encoder(fill_mask, row, text, "")
    row, filled = fill_mask.encode_row(1, text), fill_mask.fill(text, n_best=N_BEST)
    gaps = [position for position, token in enumerate(row) if token == tokenizer.specials.mask]
    predictions = [
        PredictionJson(
            position=position,
            labels=[candidate.text for candidate in candidates],
            probabilities=[candidate.probability for candidate in candidates],
        )
        for position, candidates in zip(gaps, filled.gaps, strict=True)
    ]
    return _read_encoder(
        fill_mask,
        row,
        filled.text,
        "the filled gaps" if len(gaps) > 1 else "the filled gap",
        rows=gaps,
        labels=[candidates[0].token for candidates in filled.gaps],
        predictions=predictions,
        suppressed=tokenizer.specials.not_text,
    )


def _classify(classifier: Classifier, text: str) -> ModelRun:
    ((row,), _, _), result = (
        classifier.encode_rows([[classifier.tokenizers.source.encode(text).ids]]),
        classifier.classify(text),
    )
    return _read_encoder(
        classifier,
        row,
        result.label,
        f"the label '{result.label}'",
        rows=[0],
        labels=[classifier.labels.index(result.label)],
        predictions=[rank_labels(None, result.probabilities)],
    )


def _tag(classifier: Classifier, text: str) -> ModelRun:
    tokenizer, tagged = classifier.tokenizers.source, classifier.tag(text)
    joined = " ".join(tagged.words)
    encoding = tokenizer.encode(joined)
    rows = [1 + int(first) for first in find_first_tokens(joined, encoding.offsets)]
    return _read_encoder(
        classifier,
        add_special_tokens(tokenizer, encoding.ids),
        " ".join(f"{word}/{tag.label}" for word, tag in zip(tagged.words, tagged.tags, strict=True)),
        "the tags",
        rows=rows,
        labels=[classifier.labels.index(tag.label) for tag in tagged.tags],
        predictions=[rank_labels(row, tag.probabilities) for row, tag in zip(rows, tagged.tags, strict=True)],
    )


def rank_labels(position: int | None, probabilities: dict[str, float]) -> PredictionJson:
    """Return the labels of a place, the most probable first."""
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])
    return PredictionJson(
        position=position,
        labels=[label for label, _ in ranked],
        probabilities=[probability for _, probability in ranked],
    )


def _read_encoder(
    pipeline: FillMask | Classifier,
    row: list[int],
    output: str,
    output_name: str,
    *,
    rows: list[int] | None = None,
    labels: list[int] | None = None,
    predictions: list[PredictionJson] | None = None,
    suppressed: list[int] | None = None,
) -> ModelRun:
    passage = ReplayInput(pipeline.model, source=row, rows=rows or (), labels=labels or (), suppressed=suppressed or ())
    sequences: Sequences = {"source": describe_tokens(pipeline.tokenizers.source, row)}
    return ModelRun(passage, sequences, output, output_name, predictions=predictions or [])
