"""Worked examples of the lectures as look documents, without a model.

attention    "Thinking Machines": 112, 96 -> 14, 12 -> 0.88, 0.12, and without the division by sqrt(64)
mask         the 12 x 12 table of raw scores, with and without the causal mask
lookup       queries, keys and values: eleven orders as a hard look-up, a soft one, and a mean
search       beam search of size 2 over a language model of five words
merges       BPE learning on "low lower newest widest", merge by merge
positions    the sinusoids of ten words in 64 dimensions, and their dot products
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from regard.base.blobs import Blob
from regard.base.version import __version__
from regard.decode.trace import Trace
from regard.lectures.merges import WORD_COUNTS, make_text, segment
from regard.lectures.searches import SOLVED, search_beam
from regard.lectures.worked_numbers import RAW_SCORES
from regard.look.attention import make_groups
from regard.look.document import (
    FORMAT,
    Document,
    GroupName,
    Merges,
    MergeStep,
    Model,
    Positions,
    SearchJson,
    Token,
    TokenInfo,
)
from regard.look.masks import make_masks
from regard.look.positions import describe_positions
from regard.look.record import LookRecord
from regard.look.search import make_search
from regard.nn.attend import eager_attention, resolve_mask
from regard.nn.masks import Mask, causal, no_mask
from regard.nn.positions import Sinusoidal
from regard.nn.record import AttentionRecord
from regard.nn.scores import ScoreFunction

MAX_CELLS = 10**6


def add_heads(
    record: LookRecord, name: str, queries: Sequence[Tensor], key: Tensor, value: Tensor, mask: Mask | None = None
) -> None:
    """Attend with one head per matrix of queries (T, K), all with these keys (S, K) and values (S, V)."""
    query = torch.stack(list(queries))[None]  # (1, H, T, K)
    index, key_index = torch.arange(query.size(2))[None], torch.arange(key.size(0))[None]
    resolved = resolve_mask(mask or no_mask(), index, key_index, is_square=False)
    heads = query.size(1)
    keys, values = key.expand(1, heads, -1, -1), value.expand(1, heads, -1, -1)
    output, _ = eager_attention(query, keys, values, resolved, ScoreFunction(1.0), dropout=0.0)
    record.add_attention(name, AttentionRecord(query, keys, values, resolved, ScoreFunction(1.0), output))


def make_document(
    title: str,
    notes: Sequence[str],
    *,
    source: Sequence[str] = (),
    target: Sequence[str] = (),
    record: LookRecord | None = None,
    search: SearchJson | None = None,
    merges: Merges | None = None,
    positions: Sequence[Positions] = (),
    vocabulary: Mapping[str, TokenInfo] | None = None,
) -> Document:
    """Return a document without a model."""
    blobs: dict[str, Blob] = {}
    record = record or LookRecord()
    sequences = {
        name: [Token(id=number, text=text, role="text", word=number) for number, text in enumerate(texts)]
        for name, texts in (("source", source), ("target", target))
        if texts
    }
    groups = make_groups(record, sequences, blobs, MAX_CELLS)  # type: ignore[arg-type]
    for group in groups:
        group["default_head"] = [0, 0]  # the first head is the example, the others are its variants
        group["row_start"] = 0
    heads: dict[GroupName, int] = {group["name"]: group["heads"] for group in groups}
    return Document(
        format=FORMAT,
        live=False,
        text=title,
        output="",
        model=Model(
            family="encoder_decoder",
            task="example",
            name="lectures",
            width=0,
            layers={},
            heads=heads,
            positions={},
            parameters=0,
            vocabulary={},
            sha256="",
            regard=__version__,
        ),
        sequences=sequences,  # type: ignore[typeddict-item]
        vocabulary=dict(vocabulary or {}),
        attention=groups,
        search=search,
        sampling=None,
        ablation=None,
        attribution=None,
        hypotheses=[],
        predictions=[],
        masks=make_masks(record, None),
        positions=list(positions),
        merges=merges,
        notes=list(notes),
        blobs=blobs,
    )


def show_attention() -> Document:
    """112 and 96, divided by 8 = sqrt(64): 14 and 12; their softmax 0.88 and 0.12."""
    query = torch.ones(1, 64)
    keys = torch.stack((torch.full((64,), 112 / 64), torch.full((64,), 96 / 64)))
    record = LookRecord()
    add_heads(record, "decoder.0.cross", [query / math.sqrt(64), query], keys, torch.eye(2))
    return make_document(
        "Thinking Machines",
        [
            "The query of Thinking with the keys of Thinking and Machines: q.k = 112 and 96.",
            "Head 0: divided by sqrt(64) = 8, the scores are 14 and 12, and the weights 0.88 and 0.12.",
            "Head 1: not divided, the softmax is hard.",
        ],
        source=["Thinking", "Machines"],
        target=["Thinking"],
        record=record,
    )


def show_mask() -> Document:
    """The 12 x 12 table: raw scores as queries of unit keys."""
    record, scores = LookRecord(), torch.tensor(RAW_SCORES)
    add_heads(record, "encoder.0.self", [scores], torch.eye(12), torch.eye(12))
    add_heads(record, "decoder.0.self", [scores], torch.eye(12), torch.eye(12), causal())
    numbers = [str(number) for number in range(12)]
    return make_document(
        "Attention raw scores, masked",
        [
            "Encoder: softmax of the raw scores.",
            "Decoder: the same scores with the causal mask. Every row still sums to 1.",
        ],
        source=numbers,
        target=numbers,
        record=record,
    )


def show_lookup() -> Document:
    """Eleven orders, one key twice, three queries: hard look-up, soft look-up, mean."""
    record, keys = LookRecord(), torch.eye(10)[[*range(10), 9]]
    queries = keys[[4, 6, 9]]
    add_heads(record, "decoder.0.cross", [3.0 * queries, 1000.0 * queries, 0.0 * queries], keys, torch.eye(11))
    return make_document(
        "A query looks for a key and returns its value",
        [
            "Head 0: scores x 3, a soft look-up: most of the value of the right order, a little of all others.",
            "Head 1: scores x 1000, a hard look-up; order_109 is there twice, and both get half. "
            "Head 2: no scores, the mean of all values.",
        ],
        source=[f"order_{number}" for number in (*range(100, 110), 109)],
        target=["order_104", "order_106", "order_109"],
        record=record,
    )


def show_search() -> Document:
    """Beam search of size 2 over five words."""
    trace = Trace()
    search_beam(SOLVED, 2, trace=trace, most=4)
    search = make_search(trace)
    return make_document(
        "Beam search of size 2",
        ["A language model of five words as a table. Greedy search begins with 'he' and misses the best sentence."],
        target=[SOLVED.words[search["token"][number]] for number in search["lineage"]],
        search=search,
        vocabulary={
            str(number): TokenInfo(text=word, role="special" if word.startswith("<") else "text")
            for number, word in enumerate(SOLVED.words)
        },
    )


def show_merges() -> Document:
    """BPE learning with the counts of Sennrich et al. (2016): low 5, lower 2, newest 6, widest 3."""
    start, *merges = segment(make_text(WORD_COUNTS))
    steps = [MergeStep(left=step.left, right=step.right, count=step.count, words=step.words) for step in merges]
    words = ["".join(word) for word in start.words]
    return make_document(
        "low lower newest widest",
        ["The text has low 5 times, lower twice, newest 6 times and widest 3 times. ▁ marks the end of a word."],
        merges=Merges(words=words, counts=start.repeats, start=start.words, steps=steps),
    )


def show_positions() -> Document:
    """The sinusoidal encoding of ten words in 64 dimensions."""
    encoding = Sinusoidal(64, base=10000.0, interleaved=True)
    return make_document(
        "Positions of ten words in 64 dimensions",
        ["Short wavelengths are on the left, long ones on the right. The dot product depends on the distance only."],
        positions=[describe_positions(encoding, "encoder", 10, {})],
    )


PAGES = {
    "attention": show_attention,
    "mask": show_mask,
    "lookup": show_lookup,
    "search": show_search,
    "merges": show_merges,
    "positions": show_positions,
}
