"""The JSON document that a page shows: one text, and everything recorded while a model processed it.

A live page and a saved page contain the same document, which is enough to draw the first view. A live page (`"live":
true`) can request more from the server (`regard.look.look` lists the requests).

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
    the text is safe inside <script type="application/json">.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from regard.base.blobs import Blob

FORMAT = "regard-look/1"
THUMBNAIL_SIZE = 48  # a thumbnail has at most this many rows and columns

Table = list[list[float | None]]  # [layer][head]
GroupName = Literal["encoder.self", "decoder.self", "decoder.cross"]


class Model(TypedDict):
    """The inspected model."""

    family: Literal["encoder_decoder", "decoder_only", "encoder_only"]
    task: str
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
    """The token's text, with its space if it has one, or a special token's name. U+FFFD replaces incomplete
    characters."""
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
    entropy: in nats. distance: |row - column| in tokens; null for cross-attention. previous: weight on the previous
        token; null for cross-attention. first: weight on the first token, the attention sink."""
    sampled_rows: int | None
    """Statistics and thumbnails come from this many rows, evenly spread; None: from all rows."""
    default_head: list[int]
    """[layer, head] that a page opens first: the head whose ablation costs the output most probability; without
    ablation, the most interesting head."""
    thumbnails: str
    """Blob u8 sqrt (layers, heads, at most 48, at most 48): each cell is the maximum of the weights that it covers. ""
    in the second document of a comparison."""
    maps: dict[str, str]
    """Blob u8 sqrt (rows, columns) by "layer.head". A live page requests missing maps: `map`."""
    errors: Table
    """max |A V - fused output|: how exactly the shown weights A reproduce the kernel's output."""


class SearchJson(TypedDict):
    """A recorded beam or greedy search over one text. Entry i of every list is candidate i; 0 is the root."""

    settings: dict[str, Any]
    """{"search": "beam" or "greedy", "beam_size": 5, "length_penalty": "|y|^1", "max_new_tokens": 71, "n_best": 1,
    "stop_after": null, "exact": false}"""
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
    """Why the search ended: eos, max_new_tokens, bound (no open hypothesis could win within a few tokens)
    or stop_after."""
    winner_step: int
    """Step at which the winner was finished. Later steps only show that no better hypothesis exists."""
    last_step: int
    continuations: dict[str, "Continuation"]
    """Forced continuations by candidate, already computed. A live page requests others: `causal_lm`."""


class Continuation(TypedDict):
    """Continuation of a dropped candidate: the same search from there until a hypothesis is finished."""

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
    """None at temperature 0 (no sampling)."""
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


class NextTokens(TypedDict):
    """What the model expected at each generated position, given all tokens before it: the most probable tokens.

    These are the model's own probabilities, before a search or a sampling filter changes them, like `Token.logprob`,
    which says how probable the token was that was generated.
    """

    first: int
    """Place in "target" of the first entry; the others follow, as far as 256 positions."""
    tokens: list[list[int]]
    """At most 8 token ids per position, most probable first; their texts are in `vocabulary`."""
    probabilities: list[list[float]]


class Reads(TypedDict):
    """What the model read for each output: the mean attention weights of the heads that tell it best."""

    group: GroupName
    heads: list[list[int]]
    """[layer, head] of the heads: those that align best; otherwise the group's `default_head`."""
    weights: str
    """Blob (outputs, columns): f32, or u8 sqrt above 65,536 weights. A row belongs to a generated token (`next.first`
    is the place of the first one; at most 256) or to an entry of `predictions`. For the label of a whole input it is
    the row of the vector that the head reads: the first one, the last one, or the mean of all."""


class Ablation(TypedDict):
    """The effect of switching off each head (its output is set to 0)."""

    output: str
    """What the log-probability belongs to: "the translation", "the label 'yes'", ..."""
    baseline: float
    """ln p of the output with all heads."""
    delta: dict[GroupName, Table]
    """ln p of the same output without the head, minus the baseline: negative means that the head helped."""
    texts: dict[str, str]
    """The new output without a head, by "group.layer.head", of a model that generates: of every head, or if that takes
    long of those with the largest effect. A live page requests others, and combinations: `ablate`."""
    outputs: NotRequired[list[int | None]]
    """The place of each output in "target" (text that was generated) or "source" (gaps, tags); None for a label."""
    token_deltas: NotRequired[dict[GroupName, str]]
    """Blob f32 (layers, heads, outputs): `delta` of each output by itself; they sum to it. Missing if there are too
    many."""
    predictions: NotRequired[dict[str, list["PredictionJson"]]]
    """An encoder's new labels without a head, by "group.layer.head": the best three of a single place, the best one of
    each of several places."""


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
    """Word alignment: pairs [source word, target word], from the mean of `link_heads`."""
    link_heads: NotRequired[list[list[int]]]
    """[layer, head] of the heads that align best; pages of earlier versions have `link_layer` instead."""
    link_layer: NotRequired[int]


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
    """No terms: every row may attend to every column."""
    leak: "LeakTest | None"


class LeakTest(TypedDict):
    """Leak test: later tokens were replaced; the outputs at the first tokens must not change."""

    prefix: int
    """Number of first tokens that stayed the same."""
    replaced: int
    """Number of later tokens that were replaced."""
    change: float
    """max |difference| of the log-probabilities at the first tokens: 0 if no future token leaks."""
    later_change: float
    """The same at the replaced tokens; the test is only meaningful if this is above 0."""


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
    """An encoder's predictions at one position: candidates with their probabilities, best first."""

    position: int | None
    """Place in "source" (a gap, a tagged word's first token); None for the label of the whole text."""
    labels: list[str]
    probabilities: list[float]


class Picture(TypedDict):
    """The image or the spectrogram that the encoder read. Its cells are the tokens of "source" from `first` on."""

    kind: Literal["image", "spectrogram"]
    pixels: str
    """Blob u8 linear (height, width, channels), as the model read it. In a spectrogram, a column is a frame, row 0 has
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
    audio: NotRequired[str]
    """Blob u8 linear (samples): the audio clip in 8-bit mu-law codes; a sample is sign(y) (256 ** |y| - 1) / 255 with
    y = (code - 127) / 127. Left out for clips of more than 60,000 samples."""


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


class Session(TypedDict):
    """What a reader can enter in a live page: `regard.look.session` looks into it and replaces the document."""

    number: int
    """Number of the document in the session. Requests name it, so that a page that shows an earlier input gets an
    error instead of the numbers of another input."""
    models: list[str]
    """Names of the models to choose from."""
    model: int
    """Place of this document's model in `models`."""
    against_model: int
    """Place of the model that it is compared with; the same as `model` if there is no comparison."""
    max_characters: int
    blame: bool
    """Whether the page can ask which training samples taught a word of the output."""


class Document(TypedDict):
    """One text as a model processed it. Parts that do not apply are None or empty."""

    format: str
    live: bool
    text: str
    """The user's input."""
    output: str
    """The model's output: translation, continuation (without the prompt), filled text, label, tags."""
    model: Model
    sequences: dict[Literal["source", "target"], list[Token]]
    vocabulary: dict[str, TokenInfo]
    """Tokens by id that `search`, `next` and `sampling` mention; for sampling, only the most probable ones."""
    attention: list[Group]
    search: SearchJson | None
    sampling: SamplingJson | None
    next: NotRequired[NextTokens]
    """Only for models that generate."""
    reads: NotRequired[Reads]
    """Only for models with attention and an output."""
    ablation: Ablation | None
    attribution: Attribution | None
    hypotheses: list[HypothesisJson]
    predictions: list[PredictionJson]
    masks: list[MaskView]
    positions: list[Positions]
    merges: Merges | None
    picture: NotRequired[Picture]
    """Only for models that read images or audio clips."""
    against: NotRequired["Document"]
    """The document that this one is compared with: another text, another model or both. It has no `against`, and only
    the parts that a comparison shows."""
    session: NotRequired[Session]
    """Only in a live page of a model that reads text."""
    notes: list[str]
    """Notes for the reader, e.g. that a saved file does not contain all maps."""
    blobs: dict[str, Blob]


def to_json(document: Mapping[str, Any]) -> str:
    r"""Return a document as JSON that is safe inside HTML: no `<`, so no `</script>` and no `<!--`.

    >>> to_json({"text": "</script>"})
    '{"text":"\\u003c/script>"}'
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Line and paragraph separators are valid JSON, but older JavaScript ends a string literal at them.
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
