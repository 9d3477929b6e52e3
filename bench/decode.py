"""Decoding against Hugging Face, CTranslate2 and Marian in float32: the same weights, the same outputs, one thread.

    python -m bench.decode            # about nine minutes
    python -m bench.decode --quick    # under a minute
    python -m bench.decode --only base/b64/beam4 --seconds 60
    python -m bench.decode --growth   # the cost of a step by sequence length, with and without the key-value cache
    REGARD_MODEL=my-run python -m bench.decode --only tiny

tiny   preset `tiny`. With REGARD_MODEL the weights of that folder: sentences are translated up to eos.
       Without it random weights that never generate eos, 16 steps.
base   preset `base` (63 million parameters, vocabulary of 37,000), random weights that never generate eos, 16 steps.

The sources are Multi30k's test 2016 by the model's own tokenizer, longest first; random models read random tokens of
the same lengths. b1 and b64 are the batch sizes. beam4 is a beam of 4 with length penalty 1 that stops when 4
hypotheses are finished (`stop_after=4`, Hugging Face's `early_stopping=True`, the rule of CTranslate2). Timing covers
token ids to token ids, without tokenization.

hf       `MarianMTModel.generate`
ct2      CTranslate2's `Translator.translate_batch`
marian   `pymarian.Translator.translate` in a separate process (`python -m bench.peers marian`, or PYMARIAN). Its time
         includes what one call costs it and words instead of ids (t17). Random weights only: its decoder starts with
         zeros and its sinusoids have other frequencies, so that random models are made that way for all contestants
         (`bench.marian_model`); a trained model is not.

All contestants must generate the same output before timing starts; differing outputs are counted and printed (their
scores may be closer than rounding). A ratio is the median over all rounds of their CPU time / ours: above 1, Regard is
faster. The last line is JSON.
"""

import argparse
import gzip
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench import reference_models
from bench.cache_growth import measure_cache_growth
from bench.corpora import DATA, require
from bench.marian_model import follow_marian, write_marian_model
from bench.peers import find_marian
from bench.peers.marian_decoder import MarianDecoder
from bench.timing import format_table, race, ratio, restart_with_tuned_malloc
from regard.config.codec import preset
from regard.config.model import EncoderDecoderConfig
from regard.config.parts import attention_stack
from regard.decode.beam import beam
from regard.decode.greedy import greedy
from regard.exchange.huggingface.marian import MARIAN
from regard.exchange.mapping import to_hf
from regard.models.build import build
from regard.models.cpu_decoder import CpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.positions import Sinusoidal
from regard.store.model_folder import read_model

OURS = "regard"
SENTENCES = DATA / "multi30k/test_2016_flickr.en.gz"
STEPS, BEAM_SIZE = 16, 4
POSITIONS = 256  # size of Hugging Face's table of sinusoidal positions
BATCH_SIZES = {"b1": 4, "b64": 64}  # sentences per timed step
QUICK_STEPS, QUICK_ROWS = 4, 16  # of base with --quick: the figures only show that it runs
MIN_IDENTICAL_FRACTION = 0.97  # minimum fraction of outputs that must equal ours

Rows = list[list[int]]
TranslateFn = Callable[[Rows, int], Rows]  # sources, beam size -> outputs


@dataclass(frozen=True)
class DecodingCase:
    """A model of Regard, its sources, and its special tokens."""

    name: str
    settings: EncoderDecoderConfig
    model: EncoderDecoder
    sources: Rows
    pad: int
    bos: int
    eos: int
    steps: int | None  # None: until eos

    def max_new_tokens(self, sources: Rows) -> int:
        """Return one maximum length for the batch: the other tools have no limit per sentence."""
        return self.steps or min(2 * max(map(len, sources)) + 50, POSITIONS)


def load_trained_case(name: str, folder: Path, count: int) -> DecodingCase:
    """Load a trained translation model."""
    stored = read_model(folder)
    if not isinstance(stored.settings, EncoderDecoderConfig) or not isinstance(stored.model, EncoderDecoder):
        raise SystemExit(f"{folder} is not a translation model.")
    tokenizer, specials = stored.tokenizers.source, stored.tokenizers.target.specials
    sources = [[*ids, tokenizer.specials.eos] for ids in tokenizer.encode_ids(_read_lines()[:count])]
    special_ids = (specials.pad, specials.bos, specials.eos)
    return DecodingCase(name, stored.settings, stored.model, _sort_by_length(sources), *special_ids, steps=None)


def make_random_case(name: str, count: int, steps: int = STEPS) -> DecodingCase:
    """Create a model with random weights that never generates eos.

    Its last norm outputs 20 in the first dimension for every input. In this dimension the embedding of every token is 0
    and that of eos -10: a logit of -200, the same for all contestants.

    Plain random weights would generate one token forever, the same for most sources, and equal outputs would prove
    little. So every sublayer adds half as much, which lets a token be seen through all layers. The last norm changes
    the sign of every other dimension: the output projection is the embedding and would find the same token again.
    """
    settings = preset(name)
    assert isinstance(settings, EncoderDecoderConfig)  # noqa: S101
    model = build(settings, seed=0).eval()
    pad, bos, eos = 0, 1, 2
    with torch.no_grad():
        norm: Any = model.decoder.layers[-1].feedforward_residual.norm
        for weight_name, weight in model.named_parameters():
            if weight_name.endswith(("output.weight", "down.weight")):
                weight.mul_(0.5)
        norm.weight[1::2] = -1.0
        norm.weight[0], norm.bias[0] = 0.0, 20.0
        model.target.embedding.weight[:, 0] = 0.0
        model.target.embedding.weight[[pad, eos], 0] = -10.0
    follow_marian(model, bos)
    rng = random.Random(0)  # noqa: S311
    vocabulary_size = settings.target_tokens.vocabulary
    sources = [[*(rng.randrange(4, vocabulary_size) for _ in line.split()), eos] for line in _read_lines()[:count]]
    return DecodingCase(name, settings, model, _sort_by_length(sources), pad, bos, eos, steps=steps)


def make_regard(case: DecodingCase) -> TranslateFn:
    """Create Regard's contestant: what `Translator` does between encoding and decoding text."""
    cpu_decoder = CpuDecoder(case.model)

    @torch.inference_mode()
    def translate(sources: Rows, beam_size: int) -> Rows:
        source, valid = _pad(sources, case.pad)
        max_lengths = [case.max_new_tokens(sources)] * len(sources)
        state = case.model.start(source, valid, capacity=max_lengths[0])
        prompt = torch.full((len(sources), 1), case.bos)
        if beam_size == 1:
            best_hypotheses = greedy(cpu_decoder.step, state, prompt, eos=case.eos, max_lengths=max_lengths)
        else:
            hypotheses_by_sentence = beam(
                cpu_decoder.step,
                state,
                prompt,
                beam_size=beam_size,
                eos=case.eos,
                max_lengths=max_lengths,
                stop_after=beam_size,
            )
            best_hypotheses = [hypotheses[0] for hypotheses in hypotheses_by_sentence]
        return [list(hypothesis.without_eos) for hypothesis in best_hypotheses]

    return translate


def make_hugging_face(case: DecodingCase) -> tuple[TranslateFn, Any]:
    """Create Hugging Face's contestant, `MarianMTModel.generate`; return it and the model."""
    settings = case.settings
    stack = attention_stack(settings.decoder)
    sizes = (stack.attention.heads, stack.feedforward.d_ff, stack.layers)
    hf_model: Any = reference_models.make_marian(
        settings.target_tokens.vocabulary, settings.d_model, *sizes, 0.0, POSITIONS
    )
    names = MARIAN.make_weight_map(settings, POSITIONS)
    hf_model.load_state_dict(to_hf(names, case.model.state_dict()))
    for ours, theirs in ((case.model.encoder, hf_model.model.encoder), (case.model.decoder, hf_model.model.decoder)):
        if isinstance(ours.position, Sinusoidal):  # with our base
            theirs.embed_positions.weight.data.copy_(ours.position.encode(torch.arange(POSITIONS)[None])[0])
    hf_model.eval()
    hf_model.generation_config.pad_token_id = case.pad
    hf_model.generation_config.eos_token_id = case.eos
    hf_model.generation_config.decoder_start_token_id = case.bos

    @torch.inference_mode()
    def translate(sources: Rows, beam_size: int) -> Rows:
        source, valid = _pad(sources, case.pad)
        mask = torch.ones_like(source) if valid is None else valid.long()
        max_new_tokens = case.max_new_tokens(sources)
        options = {"num_beams": beam_size, "length_penalty": 1.0, "early_stopping": True} if beam_size > 1 else {}
        outputs = hf_model.generate(
            source, attention_mask=mask, max_new_tokens=max_new_tokens, do_sample=False, **options
        )
        return [_truncate_at_eos(output[1:], case) for output in outputs.tolist()]

    return translate, hf_model


def make_ctranslate2(case: DecodingCase, hf_model: Any, folder: Path) -> TranslateFn:
    """Create CTranslate2's contestant with its own converter from the Hugging Face model; tokens are ids as strings."""
    import ctranslate2  # type: ignore[import-untyped,unused-ignore]
    from ctranslate2.converters.transformers import BartLoader  # type: ignore[import-untyped,unused-ignore]

    config = hf_model.config
    config.normalize_before = config.normalize_embedding = False
    with torch.no_grad():
        spec = BartLoader().get_model_spec(hf_model)  # MarianLoader would start from zeros and drop a token
    token_strings = [str(token_id) for token_id in range(config.vocab_size)]
    spec.register_source_vocabulary(token_strings)
    spec.register_target_vocabulary(token_strings)
    spec.config.bos_token = spec.config.decoder_start_token = token_strings[case.bos]
    spec.config.eos_token, spec.config.unk_token = token_strings[case.eos], token_strings[case.pad]
    spec.validate()
    spec.save(str(folder))
    engine = ctranslate2.Translator(str(folder), compute_type="float32", inter_threads=1, intra_threads=1)

    def translate(sources: Rows, beam_size: int) -> Rows:
        rows = [[token_strings[token] for token in source] for source in sources]
        max_new_tokens = case.max_new_tokens(sources)
        results = engine.translate_batch(
            rows, beam_size=beam_size, length_penalty=1.0, max_decoding_length=max_new_tokens
        )
        return [[int(token_string) for token_string in result.hypotheses[0]] for result in results]

    return translate


def make_marian(case: DecodingCase, decoder: MarianDecoder) -> TranslateFn:
    """Create Marian's contestant; its words are ids with a letter, and it appends eos to the sources itself."""

    def translate(sources: Rows, beam_size: int) -> Rows:
        lines = [" ".join(f"t{token}" for token in source[:-1]) for source in sources]
        outputs = decoder.translate(lines, beam_size, case.max_new_tokens(sources))
        return [[int(word[1:]) for word in output.split()] for output in outputs]

    return translate


class DecodingContest:
    """Contestants that translate the same sentences."""

    def __init__(self, case: DecodingCase, translators: dict[str, TranslateFn], batching: str, beam_size: int) -> None:
        self.translators, self.beam_size = translators, beam_size
        self.sentence_count = min(BATCH_SIZES[batching], len(case.sources))
        self.batch_size = 1 if batching == "b1" else self.sentence_count
        sources = case.sources
        if batching == "b1":  # every timed step has short and long sentences
            random.Random(0).shuffle(sources := list(sources))  # noqa: S311
        used_count = len(sources) - len(sources) % self.sentence_count
        self.chunks = [
            sources[start : start + self.sentence_count] for start in range(0, used_count, self.sentence_count)
        ]

    def check(self) -> None:
        """Check that all contestants generate the same output, up to a few sentences."""
        chunks = self.chunks[:: max(1, len(self.chunks) // 2)][:2]
        outputs_by_name = {
            name: [output for chunk in chunks for output in self.translate(name, chunk)] for name in self.translators
        }
        expected = outputs_by_name.pop(OURS)
        for name, outputs in outputs_by_name.items():
            identical_count = sum(
                output == expected_output for output, expected_output in zip(expected, outputs, strict=True)
            )
            print(
                f"  {name:<10}{identical_count} of {len(expected)} outputs identical to {OURS}, "
                f"{sum(map(len, outputs))} tokens"
            )
            if identical_count < MIN_IDENTICAL_FRACTION * len(expected):
                raise SystemExit(f"The outputs of {name} differ from those of {OURS}.")

    def translate(self, name: str, sources: Rows) -> Rows:
        """Translate sentences with one contestant."""
        outputs: Rows = []
        for start in range(0, len(sources), self.batch_size):
            outputs += self.translators[name](sources[start : start + self.batch_size], self.beam_size)
        return outputs

    def steps(self) -> dict[str, Callable[[], object]]:
        """Return the functions to time; each call translates the next sentences."""

        def make_step(name: str, chunks: Iterator[Rows]) -> Callable[[], object]:
            return lambda: self.translate(name, next(chunks))

        return {name: make_step(name, cycle(self.chunks)) for name in self.translators}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds: under a minute")
    parser.add_argument("--only", default="", help="run only contests whose key starts with this: tiny, base/b64, ...")
    parser.add_argument("--seconds", type=float, help="seconds per contest")
    parser.add_argument("--growth", action="store_true", help="only measure the cost of a step, up to 2,048 tokens")
    parser.add_argument("--peers", help="contestants besides Regard [default: hf,ct2,marian; with --quick hf,ct2]")
    parser.add_argument("--default-malloc", action="store_true", help="do not tune the allocator")
    options = parser.parse_args()
    if not options.growth:
        require("multi30k")
    if not options.default_malloc:
        restart_with_tuned_malloc()
    start_time = time.perf_counter()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, float32, 1 thread")
    if options.growth:
        measure_cache_growth(max_new_tokens=2048, stride=256 if options.quick else 128)
        return
    folder = os.environ.get("REGARD_MODEL")
    results: dict[str, float] = {}
    for name in ("tiny", "base"):
        keys = [f"{name}/{batching}/{search}" for batching in BATCH_SIZES for search in ("greedy", f"beam{BEAM_SIZE}")]
        keys = [key for key in keys if key.startswith(options.only)]
        if not keys:
            continue
        count = 1000
        if options.quick:
            count = 256 if name == "tiny" else QUICK_ROWS
        steps = QUICK_STEPS if options.quick and name == "base" else STEPS
        case = (
            load_trained_case(name, Path(folder), count)
            if folder and name == "tiny"
            else make_random_case(name, count, steps)
        )
        peers = (options.peers or ("hf,ct2" if options.quick else "hf,ct2,marian")).split(",")
        with tempfile.TemporaryDirectory() as scratch, ExitStack() as processes:
            translators = _make_translators(case, peers, Path(scratch))
            clocks: dict[str, Callable[[], float]] = {}
            decoder = _start_marian(case, Path(scratch)) if "marian" in peers else None
            if decoder is not None:
                processes.callback(decoder.close)
                translators["marian"], clocks["marian"] = make_marian(case, decoder), decoder.read_clock
            for key in keys:
                seconds = options.seconds or (2.5 if options.quick else 60.0)
                results |= _run_contest(key, case, translators, clocks, seconds)
    print(f"\n{time.perf_counter() - start_time:.0f} s. Ratio: median over the rounds of their CPU time / ours.")
    print(json.dumps(results))


def _run_contest(
    key: str,
    case: DecodingCase,
    translators: dict[str, TranslateFn],
    clocks: Mapping[str, Callable[[], float]],
    seconds: float,
) -> dict[str, float]:
    _, batching, search = key.split("/")
    contest = DecodingContest(case, translators, batching, 1 if search == "greedy" else BEAM_SIZE)
    print(f"\n{key}: {len(case.sources)} sentences, {'until eos' if case.steps is None else f'{case.steps} steps'}")
    contest.check()
    times = race(contest.steps(), seconds=seconds, warm_up=1, clocks=clocks)
    print(format_table(times, ours=OURS))
    speeds = {
        name: 1000 * contest.sentence_count * len(cpu_times) / sum(cpu_times) for name, cpu_times in times.items()
    }
    print("  sentences per CPU-second: " + ", ".join(f"{name} {speed:.1f}" for name, speed in speeds.items()))
    return {
        f"{key}/{name}": round(ratio(cpu_times, times[OURS]), 3) for name, cpu_times in times.items() if name != OURS
    }


def _make_translators(case: DecodingCase, names: Sequence[str], folder: Path) -> dict[str, TranslateFn]:
    translators = {OURS: make_regard(case)}
    generate, hf_model = make_hugging_face(case)
    if "hf" in names:
        translators["hf"] = generate
    if "ct2" in names:
        translators["ct2"] = make_ctranslate2(case, hf_model, folder)
    return translators


def _start_marian(case: DecodingCase, folder: Path) -> MarianDecoder | None:
    """Start Marian's decoder with the weights of a case, or print why it is left out."""
    program = find_marian()
    if program is None:
        print("\nmarian is left out: make it with `python -m bench.peers marian`, or set PYMARIAN.")
        return None
    if case.steps is None:
        print("\nmarian is left out: this model was not trained with its start of the decoder and its sinusoids.")
        return None
    write_marian_model(case.settings, case.model, folder, eos=case.eos, unknown=case.pad)
    return MarianDecoder(program, folder)


def _read_lines() -> list[str]:
    with gzip.open(SENTENCES, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def _sort_by_length(sources: Rows) -> Rows:
    return sorted(sources, key=len, reverse=True)


def _pad(sources: Rows, pad: int) -> tuple[Tensor, Tensor | None]:
    source = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in sources], batch_first=True, padding_value=pad)
    lengths = torch.tensor([len(row) for row in sources])
    valid = torch.arange(source.size(1)) < lengths[:, None]
    return source, None if bool(valid.all()) else valid


def _truncate_at_eos(tokens: list[int], case: DecodingCase) -> list[int]:
    """Return the tokens before eos."""
    return tokens[: tokens.index(case.eos)] if case.eos in tokens else tokens


if __name__ == "__main__":
    main()
