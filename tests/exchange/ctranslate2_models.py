"""Random models of every shape that CTranslate2 is said to hold, and their outputs in both engines."""

from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import torch

from regard.config.codec import MODEL_FILES
from regard.decode.greedy import greedy
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.store.model_folder import StoredModel
from regard.text.tokenizer_pair import TokenizerPair
from tests.tasks.factories import make_tokenizer

WIDTH, HEADS = 16, 4
SOURCES = [[5, 6, 7, 8, 9, 250], [11, 12, 250], [13, 250, 251, 30, 31, 32, 33, 34, 250]]
TARGETS = [[21, 22, 23], [24, 25, 26, 27, 28, 29, 30], [31]]
Settings = dict[str, Any]
PLAIN = {"kind": "plain", "d_ff": 24}
NO_BIAS = {"query": False, "key": False, "value": False, "output": False}


def make_stack(norm_order: str = "pre", **changes: Any) -> Settings:
    return {
        "layers": 2,
        "norm_order": norm_order,
        "final_norm": norm_order == "pre",
        "position": {"kind": "sinusoidal"},
        "attention": {"heads": HEADS},
        "feedforward": PLAIN,
    } | changes


def make_encoder_decoder(encoder: Settings | None = None, decoder: Settings | None = None, **changes: Any) -> Settings:
    encoder = encoder or make_stack()
    decoder = {"cross": encoder["attention"]} | (decoder or encoder)
    tokens = {"kind": "tokens", "vocabulary": make_tokenizer().size}
    return {
        "family": "encoder_decoder",
        "d_model": WIDTH,
        "source": tokens | {"scale": True},
        "target": {"kind": "shared"},
        "encoder": encoder,
        "decoder": decoder,
        "head": {"kind": "lm", "tied": True},
    } | changes


def make_decoder_only(decoder: Settings | None = None, **changes: Any) -> Settings:
    return {
        "family": "decoder_only",
        "d_model": WIDTH,
        "tokens": {"kind": "tokens", "vocabulary": make_tokenizer().size},
        "decoder": decoder or make_stack(),
        "head": {"kind": "lm", "tied": True},
    } | changes


def make_encoder_only(encoder: Settings | None = None, types: int = 0) -> Settings:
    return {
        "family": "encoder_only",
        "task": "embedding",
        "d_model": WIDTH,
        "source": {"kind": "tokens", "vocabulary": make_tokenizer().size, "types": types},
        "encoder": encoder or make_stack(),
        "head": {"kind": "none"},
    }


def _make_stacks() -> dict[str, Settings]:
    """Make the stacks that encoders and decoders may have."""
    rms, rotary = {"kind": "rms", "eps": 1e-5}, {"kind": "rotary", "theta": 500.0}
    swiglu = {"kind": "gated", "d_ff": 24, "activation": "silu"}
    grouped = {"heads": HEADS, "key_value_heads": 2}
    return {
        "pre": make_stack(),
        "post": make_stack("post"),
        "post-final-norm": make_stack("post", final_norm=True),
        "pre-no-final-norm": make_stack(final_norm=False),
        "input-norm": make_stack(input_norm=True),
        "interleaved-sinusoid": make_stack(position={"kind": "sinusoidal", "layout": "interleaved", "base": 500.0}),
        "learned": make_stack(position={"kind": "learned", "length": 32, "offset": 2}),
        "rotary": make_stack(position=rotary),
        "rotary-interleaved": make_stack(position=rotary | {"layout": "interleaved"}),
        "none": make_stack(position={"kind": "none"}),
        "relative": make_stack(position={"kind": "relative", "buckets": 8, "distance": 16}),
        "norm-without-bias": make_stack(norm={"kind": "layer", "bias": False}),
        "scale": make_stack(attention={"heads": HEADS, "score": {"kind": "scaled_dot", "scale": 1.0}}),
        "dot": make_stack(attention={"heads": HEADS, "score": {"kind": "dot"}}),
        "grouped": make_stack(attention=grouped),
        "multi-query": make_stack(attention={"heads": HEADS, "key_value_heads": 1}),
        "key-dim": make_stack(attention={"heads": HEADS, "key_dim": 6}),
        "grouped-key-dim-rotary": make_stack(attention=grouped | {"key_dim": 6}, position=rotary),
        "partial-bias": make_stack(attention={"heads": HEADS, "bias": {"key": False, "output": False}}),
        "llama": make_stack(norm=rms, position=rotary, feedforward=swiglu, attention=grouped | {"bias": NO_BIAS}),
        "geglu-bias": make_stack(feedforward=swiglu | {"activation": "gelu_tanh", "bias": True}),
        "geglu": make_stack(feedforward=swiglu | {"activation": "gelu"}),
        "reglu": make_stack(feedforward=swiglu | {"activation": "relu"}),
        "gelu": make_stack(feedforward=PLAIN | {"activation": "gelu"}),
        "gelu-tanh": make_stack(feedforward=PLAIN | {"activation": "gelu_tanh"}),
        "silu": make_stack(feedforward=PLAIN | {"activation": "silu", "bias": False}),
    }


def _with_query_key_norm(norm: Settings) -> Settings:
    return make_stack(norm=norm, attention={"heads": HEADS, "query_key_norm": norm}, position={"kind": "rotary"})


STACKS = _make_stacks()
RMS, LAYER = {"kind": "rms", "eps": 1e-5}, {"kind": "layer"}
TOKENS = {"kind": "tokens", "vocabulary": make_tokenizer().size}
CASES: dict[str, Settings] = {
    **{f"encoder-decoder-{name}": make_encoder_decoder(stack) for name, stack in STACKS.items()},
    "encoder-decoder-own-target": make_encoder_decoder(target=TOKENS, head={"kind": "lm", "bias": True}),
    "encoder-decoder-unequal-stacks": make_encoder_decoder(
        make_stack(layers=3), make_stack("post", layers=1, position={"kind": "none"}, cross={"heads": HEADS})
    ),
    "encoder-decoder-unequal-heads": make_encoder_decoder(
        make_stack(attention={"heads": 2}), make_stack(cross={"heads": HEADS})
    ),
    "encoder-decoder-query-key-norm": make_encoder_decoder(
        _with_query_key_norm(RMS), _with_query_key_norm(RMS) | {"cross": {"heads": HEADS}}
    ),
    "encoder-decoder-cross-scale": make_encoder_decoder(
        decoder=make_stack(cross={"heads": HEADS, "score": {"kind": "dot"}, "bias": NO_BIAS})
    ),
    "encoder-decoder-query-key-layer-norm": make_encoder_decoder(
        _with_query_key_norm(LAYER), _with_query_key_norm(LAYER) | {"cross": {"heads": HEADS}}
    ),
    **{f"decoder-only-{name}": make_decoder_only(stack) for name, stack in STACKS.items() if name != "relative"},
    "decoder-only-alibi": make_decoder_only(make_stack(position={"kind": "alibi"})),
    "decoder-only-alibi-3-heads": make_decoder_only(
        make_stack(position={"kind": "alibi"}, attention={"heads": 3, "key_dim": 6})
    ),
    "decoder-only-query-key-norm": make_decoder_only(_with_query_key_norm(RMS)),
    "decoder-only-query-key-layer-norm": make_decoder_only(_with_query_key_norm(LAYER)),
    "decoder-only-scaled-bias": make_decoder_only(tokens=TOKENS | {"scale": True}, head={"kind": "lm", "bias": True}),
    **{f"encoder-only-{name}": make_encoder_only(stack) for name, stack in STACKS.items()},
    "encoder-only-query-key-norm": make_encoder_only(_with_query_key_norm(RMS)),
    "encoder-only-types": make_encoder_only(types=2),
}


def make_stored_model(settings: Settings, seed: int = 1, noise: float = 0.15) -> StoredModel:
    """Build a model in which no weight is 0 or 1."""
    parsed = MODEL_FILES.parse(settings)
    model = build(parsed, seed=seed).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=noise)
    return StoredModel(parsed, TokenizerPair.joint(make_tokenizer()), model, Path())


def as_text(rows: list[list[int]]) -> list[list[str]]:
    return [[str(token) for token in row] for row in rows]


class Export:
    """A model and its export, loaded by CTranslate2."""

    def __init__(self, stored: StoredModel, folder: Path) -> None:
        self.model: Any = stored.model
        self.specials = stored.tokenizers.target.specials
        engines = {EncoderDecoder: ctranslate2.Translator, DecoderOnly: ctranslate2.Generator}
        engine_class = engines.get(type(stored.model), ctranslate2.Encoder)
        self.engine: Any = engine_class(str(folder), compute_type="float32", intra_threads=1)

    @torch.no_grad()
    def measure_difference(self) -> float:
        """Return the largest difference of log-probabilities (an encoder: of hidden states)."""
        bos, eos = self.specials.bos, self.specials.eos
        differences = []
        if isinstance(self.model, EncoderDecoder):
            scored = self.engine.score_batch(as_text(SOURCES), as_text(TARGETS))  # one padded batch
            for source, target, result in zip(SOURCES, TARGETS, scored, strict=True):
                logprobs = self.model(torch.tensor([source]), torch.tensor([[bos, *target]])).log_softmax(-1)[0]
                ours = logprobs[torch.arange(len(target) + 1), torch.tensor([*target, eos])]
                differences.append(np.array(result.log_probs) - ours.numpy())
        for source in SOURCES if isinstance(self.model, DecoderOnly) else ():
            theirs = np.array(self.engine.forward_batch(as_text([source]), return_log_probs=True))
            differences.append(theirs - self.model(torch.tensor([source])).log_softmax(-1).numpy())
        for source in SOURCES if isinstance(self.model, EncoderOnly) else ():
            theirs = np.array(self.engine.forward_batch(as_text([source])).last_hidden_state)
            differences.append(theirs - self.model(torch.tensor([source])).numpy())
        return max(float(np.abs(difference).max()) for difference in differences)

    @torch.no_grad()
    def compare_greedy(self, sources: list[list[int]] = SOURCES, length: int = 12) -> list[bool]:
        """Return whether greedy search, which fills a cache, generates the same tokens for each source."""
        if isinstance(self.model, EncoderDecoder):
            options = {"beam_size": 1, "max_decoding_length": length, "return_end_token": True}
            results = self.engine.translate_batch(as_text(sources), **options)
            theirs = [[int(token) for token in result.hypotheses[0]] for result in results]
        else:
            options = {"include_prompt_in_result": False, "return_end_token": True, "sampling_topk": 1}
            results = self.engine.generate_batch(as_text(sources), max_length=length, **options)
            theirs = [result.sequences_ids[0] for result in results]
        return [self._continue(source, length) == output for source, output in zip(sources, theirs, strict=True)]

    def _continue(self, source: list[int], length: int) -> list[int]:
        if isinstance(self.model, EncoderDecoder):
            state = self.model.start(torch.tensor([source]), None, capacity=length)
            prompt = torch.tensor([[self.specials.bos]])
        else:
            state, prompt = self.model.start(len(source) + length), torch.tensor([source])
        (hypothesis,) = greedy(self.model.step, state, prompt, eos=self.specials.eos, max_lengths=[length])
        return list(hypothesis.tokens)
