"""The document that a page shows: one text, and everything recorded while a model processed it, as JSON.

A live page and a saved one hold the same document. It is complete in itself: a page needs nothing else to draw the
first view. A live page (`"live": true`) may ask the server for more (`regard.look.local` lists the requests).

Conventions
    numbers     JSON has no -inf and no NaN: null stands for -inf. Probabilities are natural: logprob is ln p.
    tables      [layer][head], both counted from 0; a null entry means "does not apply".
    blobs       Large arrays are entries of `blobs`; everything else refers to them by name. `data` is base64 of zlib
                ("deflate" of DecompressionStream), row-major, little-endian. dtype "u8" with curve "sqrt": the value
                is (byte / 255) ** 2, so an error is at most sqrt(value) / 255 + 1 / 510 ** 2. Curve "linear": the
                value is byte * scale for u8 and i8, and the number itself for i32 and f32.
    tokens      `sequences` has "source" (what the encoder read) and "target" (what the decoder read and generated, bos
                first, eos last if it was generated). A decoder's row i reads target[i] and generates target[i + 1].
    rows        A group's row r belongs to token `row_start` + r of sequence `rows`. For cross-attention that is the
                token which the row *generates* (`row_start` 1), for self-attention the one it reads (`row_start` 0).
    safety      Every string comes from a user or from a model. Show it by `textContent` only. `to_json` escapes `<`, so
                the text may stand inside <script type="application/json">.
"""

import base64
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

FORMAT = "regard-look/1"
THUMBNAIL_SIZE = 48  # a thumbnail has at most this many rows and columns
DTYPES = {"u8": "|u1", "i8": "|i1", "i32": "<i4", "f32": "<f4"}

Table = list[list[float | None]]  # [layer][head]
GroupName = Literal["encoder.self", "decoder.self", "decoder.cross"]


class Blob(TypedDict):
    """An array: see "blobs" above."""

    dtype: Literal["u8", "i8", "i32", "f32"]
    curve: Literal["sqrt", "linear"]
    scale: float
    """For curve "linear" of u8 and i8; 1 otherwise."""
    shape: list[int]
    data: str


class Model(TypedDict):
    """What was looked into."""

    family: Literal["encoder_decoder", "decoder_only", "encoder_only"]
    task: Literal["translate", "causal_lm", "masked_lm", "classify", "tag", "transcribe", "caption", "example"]
    name: str
    """Folder name of the model, or "" for a model in memory."""
    width: int
    layers: dict[str, int]
    """Layers of each stack: {"encoder": 6, "decoder": 6}."""
    heads: dict[GroupName, int]
    positions: dict[str, str]
    """Kind of the position encoding of each stack: {"encoder": "rotary"}."""
    parameters: int
    vocabulary: dict[str, int]
    """Number of tokens: {"source": 8000, "target": 8000}."""
    sha256: str
    """sha256 of the names, shapes and values of the weights."""
    regard: str
    """Version of Regard that wrote the document."""


class TokenInfo(TypedDict):
    """A token of the vocabulary."""

    text: str
    """The token by itself, with its space if it has one; a special token's name. U+FFFD for bytes of half a
    character."""
    role: Literal["text", "special"]
    bytes: NotRequired[str]
    """Its bytes in hexadecimal, only if they are not valid UTF-8."""


class Token(TokenInfo):
    """A token at its place in a sequence."""

    id: int
    word: int | None
    """Number of its word in the sequence; None for special tokens."""
    logprob: NotRequired[float | None]
    """ln p that the model gave it, if it was generated."""
    prompt: NotRequired[bool]
    """True for tokens of "target" that were given, not generated (bos, prompt)."""


class Group(TypedDict):
    """The attention of one kind: all layers and heads of encoder.self, decoder.self or decoder.cross."""

    name: GroupName
    layers: int
    heads: int
    rows: Literal["source", "target"]
    row_start: int
    row_count: int
    columns: Literal["source", "target"]
    column_count: int
    """Columns belong to the first tokens of the sequence `columns`."""
    statistics: dict[Literal["entropy", "distance", "previous", "first"], Table]
    """Means over rows; the first row of a decoder's self-attention, which can only attend to itself, is left out.
    entropy: in nats. distance: |row - column| in tokens; null for cross-attention. previous: weight on the token
    before; null for cross-attention. first: weight on the first token, the attention sink."""
    sampled_rows: int | None
    """Statistics and thumbnails come from this many rows, evenly spread; None: from all rows."""
    default_head: list[int]
    """[layer, head] of the most interest head, which a page opens first."""
    thumbnails: str
    """Blob u8 sqrt (layers, heads, at most 48, at most 48): each cell is the maximum of the weights that it covers."""
    maps: dict[str, str]
    """Blob u8 sqrt (rows, columns) by "layer.head". A live page asks for missing ones: `map`."""
    errors: Table
    """max |A V - fused output|: how exactly the shown weights A reproduce what the kernel computed."""


class SearchJson(TypedDict):
    """A recorded beam or greedy search over one text. Entry i of every list is candidate i; 0 is the root."""

    settings: dict[str, Any]
    """{"search": "beam" or "greedy", "beam_size": 5, "length_penalty": "|y|^1", "max_new_tokens": 71, "n_best": 1,
    "stop_after": null}"""
    parent: list[int]
    """The candidate that it extends; 0 for the root."""
    step: list[int]
    """Number of tokens of the hypothesis: 0 for the root."""
    token: list[int]
    """Token id, in `vocabulary`; -1 for the root."""
    logprob: list[float | None]
    total: list[float | None]
    """Sum of logprob from the root."""
    score: list[float | None]
    """total / length_penalty(step)."""
    status: list[Literal["open", "finished", "dropped", "beaten"]]
    """open: extended further. finished: eos or maximum length. dropped: not among the best of its step. beaten: open
    when the search ended."""
    winners: list[int]
    """Candidates returned, best first."""
    lineage: list[int]
    """Candidates from the root to the best one."""
    end: str | None
    """Why the search ended: eos, max_new_tokens, bound (no open hypothesis could win any more) or stop_after."""
    winner_step: int
    """Step at which the winner was finished. Later steps only prove that nothing better exists."""
    last_step: int
    continuations: dict[str, "Continuation"]
    """Forced continuations by candidate, already computed. A live page asks for others: `causal_lm`."""


class Continuation(TypedDict):
    """Where a dropped candidate would have led: the same search from there, until a hypothesis was finished."""

    tokens: list[int]
    """All generated tokens, the forced ones first."""
    forced: int
    """Number of forced tokens."""
    logprobs: list[float | None]
    text: str
    score: float


class Race(TypedDict):
    """How a token was drawn: every token waits E, exponential with mean 1, and the largest p / E wins."""

    tokens: list[int]
    """The best contenders, by p / E, the winner first."""
    probabilities: list[float]
    times: list[float]
    contenders: int
    """Number of tokens with p > 0 that took part."""


class SamplingStepJson(TypedDict):
    """One generated token."""

    position: int
    """Its place in the sequence "target"."""
    token: int
    logprob: float | None
    race: Race | None
    """None at temperature 0: nothing is drawn."""
    logits: str | None
    """Blob f32 (vocabulary): log-probabilities before suppression and filters; None for steps that were not chosen."""


class SamplingJson(TypedDict):
    """How a text was sampled. The history of a step is the sequence "target" before its position."""

    filters: dict[str, float | int | None]
    """Settings by name; `filter_order` is the order in which they act."""
    filter_order: list[str]
    seed: int | None
    suppressed: list[int]
    """Tokens that are never generated; they are removed before the filters."""
    steps: list[SamplingStepJson]


class Ablation(TypedDict):
    """Every head switched off by itself (its output set to 0), and what that does."""

    output: str
    """What the log-probability belongs to: "the translation", "the label 'yes'", ..."""
    baseline: float
    """ln p of the output with all heads."""
    delta: dict[GroupName, Table]
    """ln p of the same output without the head, minus the baseline: negative means that the head helped."""
    texts: dict[str, str]
    """The new output without a head, by "group.layer.head", for the heads with the largest effect. A live page asks for
    others: `ablate`."""


class Attribution(TypedDict):
    """How much each input token contributed to the logit of each output, by three methods.

    Columns are the tokens that the model read: first those of "source", then those of "target". The baseline of a token
    is the mean embedding of the vocabulary; special tokens stay as they are and have the value 0.
    """

    outputs: list[int | None]
    """Rows: the place of each output in "target" (text that was generated) or "source" (gaps, tags); None for a
    label."""
    source_columns: int
    target_columns: int
    methods: dict[Literal["occlusion", "gradient_x_input", "integrated_gradients"], str]
    """Blob f32 (outputs, columns). occlusion: change of the logit if the token is there, against its baseline.
    gradient_x_input: gradient times (embedding - baseline). integrated_gradients: the same gradient, averaged on the
    way from the baseline: its sum is the difference of the logits."""
    logits: list[float]
    baseline_logits: list[float]
    """Logits of the outputs if all tokens are replaced by the baseline."""
    completeness: list[float]
    """|sum of integrated gradients - (logit - baseline logit)| / max(1, |logit - baseline logit|), per output."""
    steps: int
    """Points on the way from the baseline; as many as the hardest output needs."""


class HypothesisJson(TypedDict):
    """A returned hypothesis with its cross-attention; the first is the winner, whose tokens are the "target"."""

    candidate: int
    """Its number in `search`; -1 if there was no search."""
    text: str
    score: float
    tokens: list[Token]
    """Generated tokens: row r of the attention belongs to token r."""
    cross: str
    """Blob u8 sqrt (layers, heads, tokens, source tokens)."""
    links: list[list[int]]
    """Word alignment: pairs [source word, target word], from the mean of the heads of `link_layer`."""
    link_layer: int


class MaskTerm(TypedDict):
    """One condition of a mask; all must hold for a row to attend to a column."""

    kind: Literal["causal", "window", "padding", "documents"]
    width: NotRequired[int]
    """window: |row - column| < width."""
    valid: NotRequired[list[bool]]
    """padding: whether each column may be attended to."""
    documents: NotRequired[list[int]]
    """documents: number of each token's text; they must be equal."""


class MaskView(TypedDict):
    """The mask that a group of attentions used."""

    group: GroupName
    rows: int
    columns: int
    terms: list[MaskTerm]
    """No terms: everything may attend to everything."""
    leak: "LeakTest | None"


class LeakTest(TypedDict):
    """The model read the same beginning with another future; `change` shows whether it noticed."""

    prefix: int
    """Number of first tokens that stayed the same."""
    replaced: int
    """Number of later tokens that were replaced."""
    change: float
    """max |difference| of the log-probabilities at the first tokens: 0 if no future leaks."""
    later_change: float
    """The same at the replaced tokens: above 0, or the test shows nothing."""


class Positions(TypedDict):
    """The position encoding of a stack; only the fields of its kind are present."""

    stack: Literal["encoder", "decoder"]
    kind: Literal["none", "sinusoidal", "learned", "rotary", "alibi", "relative"]
    length: int
    """Number of tokens of this text."""
    max_positions: int | None
    width: NotRequired[int]
    """sinusoidal: dimensions of a vector."""
    base: NotRequired[float]
    """sinusoidal, rotary: wavelengths are 2 pi base ** (2 i / width)."""
    interleaved: NotRequired[bool]
    """sinusoidal, rotary: pairs are neighbors (true) or halves (false)."""
    key_dim: NotRequired[int]
    """rotary: dimensions of a head; it has half as many pairs."""
    slopes: NotRequired[list[float]]
    """alibi: the bias is - slope * distance, per head."""
    vectors: NotRequired[str]
    """learned: blob i8 linear (at most 128 positions, at most 128 dimensions)."""
    offsets: NotRequired[list[int]]
    """relative: column - row, for `curves`."""
    curves: NotRequired[str]
    """relative: blob f32 (tables, heads, offsets)."""


class PredictionJson(TypedDict):
    """What an encoder predicted at a place: candidates with their probabilities, best first."""

    position: int | None
    """Place in "source" (a gap, a tagged word's first token); None for the label of the whole text."""
    labels: list[str]
    probabilities: list[float]


class Picture(TypedDict):
    """The image or the spectrogram that the encoder read. Its cells are the tokens of "source" from `first` on."""

    kind: Literal["image", "spectrogram"]
    pixels: str
    """Blob u8 linear (height, width, channels), as the model read it. Of a spectrogram a column is a frame, row 0 has
    the highest frequencies, and 255 is the largest value."""
    grid: list[int]
    """Rows and columns of cells; they follow each other row by row. A spectrogram has one row."""
    cell: list[int]
    """Height and width of a cell in pixels; the last one of a spectrogram may be cut off."""
    first: int
    """Place of the first cell in "source": 1 after a class token."""
    seconds: NotRequired[float]
    """Duration of a cell of a spectrogram."""
    rate: NotRequired[int]
    """Samples per second of the audio clip."""


class MergeStep(TypedDict):
    """One merge of BPE learning."""

    left: str
    right: str
    count: int
    """How often the pair occurred in the text before the merge."""
    words: list[list[str]]
    """The symbols of each word after the merge."""


class Merges(TypedDict):
    """BPE learning on a small text, merge by merge."""

    words: list[str]
    counts: list[int]
    """How often each word occurs."""
    start: list[list[str]]
    """The symbols of each word before the first merge: its characters and the mark of its end."""
    steps: list[MergeStep]


class Document(TypedDict):
    """One text as a model processed it. Parts that do not apply are None or empty."""

    format: str
    live: bool
    text: str
    """What the user gave."""
    output: str
    """What the model made of it: translation, continuation (without the prompt), filled text, label, tags."""
    model: Model
    sequences: dict[Literal["source", "target"], list[Token]]
    vocabulary: dict[str, TokenInfo]
    """Tokens by id that `search` and `sampling` mention; of sampling the most probable ones only."""
    attention: list[Group]
    search: SearchJson | None
    sampling: SamplingJson | None
    ablation: Ablation | None
    attribution: Attribution | None
    hypotheses: list[HypothesisJson]
    predictions: list[PredictionJson]
    masks: list[MaskView]
    positions: list[Positions]
    merges: Merges | None
    picture: NotRequired[Picture]
    """Only of models that read images or audio clips."""
    notes: list[str]
    """What a reader should know, e.g. that maps were left out of a saved file."""
    blobs: dict[str, Blob]


def encode_sqrt(values: NDArray[np.floating[Any]]) -> Blob:
    """Encode weights from 0 to 1 with 8 bits; the square root keeps small weights distinct."""
    codes = np.rint(np.sqrt(np.clip(values, 0.0, 1.0)) * 255).astype(np.uint8)
    return _encode(codes, "u8", "sqrt")


def encode_i8(values: NDArray[np.floating[Any]]) -> Blob:
    """Encode signed numbers with 8 bits, scaled by the largest."""
    scale = float(np.abs(values).max(initial=0.0)) / 127 or 1.0
    return _encode(np.rint(values / scale).astype(np.int8), "i8", "linear", scale)


def encode_u8(values: NDArray[np.uint8]) -> Blob:
    """Encode bytes as they are."""
    return _encode(values, "u8", "linear")


def encode_f32(values: NDArray[np.floating[Any]]) -> Blob:
    """Encode numbers exactly."""
    return _encode(values.astype("<f4"), "f32", "linear")


def decode_blob(blob: Blob) -> NDArray[np.float32]:
    """Return the numbers of a blob, as a page decodes them."""
    content = zlib.decompress(base64.b64decode(blob["data"]))
    codes = np.frombuffer(content, dtype=DTYPES[blob["dtype"]]).reshape(blob["shape"])
    if blob["curve"] == "sqrt":
        return ((codes / 255.0) ** 2).astype(np.float32)
    return codes.astype(np.float32) * np.float32(blob["scale"])


def finite(number: float) -> float | None:
    """Return a number for JSON: None for -inf, rounded to 7 digits."""
    return float(f"{number:.7g}") if math.isfinite(number) else None


def to_json(document: Mapping[str, Any]) -> str:
    r"""Return a document as JSON that is safe inside HTML: no `<`, so no `</script>` and no `<!--`.

    >>> to_json({"text": "</script>"})
    '{"text":"\\u003c/script>"}'
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Line and paragraph separators are valid JSON, but older JavaScript ends a string literal at them.
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _encode(
    codes: NDArray[Any],
    dtype: Literal["u8", "i8", "i32", "f32"],
    curve: Literal["sqrt", "linear"],
    scale: float = 1.0,
) -> Blob:
    data = base64.b64encode(zlib.compress(np.ascontiguousarray(codes).tobytes(), 6)).decode()
    return Blob(dtype=dtype, curve=curve, scale=scale, shape=list(codes.shape), data=data)
