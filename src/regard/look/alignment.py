"""The cross-attention of each returned hypothesis, and the word alignment that it suggests."""

import torch
from torch import Tensor

from regard.decode.protocol import Hypothesis
from regard.look import document
from regard.look.attention import attention_name
from regard.look.document import Blob, encode_sqrt
from regard.look.generation import Generated, Generation
from regard.look.record import LookRecord
from regard.look.replay import ReplayInput
from regard.look.tokens import describe_tokens
from regard.pipeline.word_alignment import sum_subwords


def make_passage(generation: Generation, hypothesis: Hypothesis) -> ReplayInput:
    """Return a hypothesis as the decoder reads it: everything but its last token."""
    inputs, prompt = generation.input, generation.input.prompt
    return ReplayInput(
        model=inputs.pipeline.model,
        source=inputs.source,
        media=inputs.media,
        vectors=inputs.vectors,
        target=[*prompt, *hypothesis.tokens[:-1]],
        rows=range(len(prompt) - 1, len(prompt) - 1 + len(hypothesis.tokens)),
        labels=hypothesis.tokens,
    )


def make_hypotheses(
    generation: Generation, generated: Generated, record: LookRecord, blobs: dict[str, Blob]
) -> list[document.HypothesisJson]:
    """Return the hypotheses of a translation with their cross-attention, which goes to `blobs`.

    `record` is that of the first one, which was replayed already.
    """
    numbers = generated.trace.winners[0] if generated.trace is not None else [-1] * len(generated.hypotheses)
    return [
        make_hypothesis(generation, hypothesis, number, f"hypothesis.{index}", blobs, record if index == 0 else None)
        for index, (hypothesis, number) in enumerate(zip(generated.hypotheses, numbers, strict=True))
    ]


def make_hypothesis(
    generation: Generation,
    hypothesis: Hypothesis,
    number: int,
    name: str,
    blobs: dict[str, Blob],
    record: LookRecord | None = None,
) -> document.HypothesisJson:
    """Return one hypothesis, replayed unless there is a record of it; its attention goes to `blobs` under this name."""
    if record is None:
        record = LookRecord()
        make_passage(generation, hypothesis).replay(record)
    cross = read_cross(record)  # (layers, heads, T, S)
    blobs[name] = encode_sqrt(cross.float().cpu().numpy())
    tokenizers, last = generation.input.pipeline.tokenizers, cross.size(0) - 1
    tokens = hypothesis.without_eos
    rows = cross[last].float().mean(dim=0)[: len(tokens)]  # (T, S) the rows that generate the tokens
    by_source = sum_subwords(rows.T.cpu(), tokenizers.source.word_ids(generation.input.source))  # (source words, T)
    by_pair = sum_subwords(by_source.T, tokenizers.target.word_ids(tokens))  # (target words, source words)
    links = (
        [[source, target] for target, source in enumerate(by_pair.argmax(dim=1).tolist())] if by_pair.numel() else []
    )
    return document.HypothesisJson(
        candidate=number,
        text=generation.decode(hypothesis),
        score=hypothesis.score,
        tokens=describe_tokens(tokenizers.target, hypothesis.tokens, hypothesis.logprobs),
        cross=name,
        links=links,
        link_layer=last,
    )


def read_cross(record: LookRecord) -> Tensor:
    """Return all cross-attention weights, (layers, heads, T, S)."""
    names = [name for name in record.attention if name.endswith(".cross")]
    assert names[0] == attention_name("decoder.cross", 0)  # noqa: S101 - layers are recorded in their order
    return torch.cat([record.weights(name) for name in names])
