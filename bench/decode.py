"""Decoding against Hugging Face `generate` and CTranslate2 float32: the same weights, the same texts, one thread.

    python -m bench.decode            # some nine minutes
    python -m bench.decode --quick    # under a minute
    python -m bench.decode --only base/b64/beam4 --seconds 60
    python -m bench.decode --growth   # what a step costs the longer the text, with the cache and without
    REGARD_MODEL=my-run python -m bench.decode --only tiny

tiny   preset `tiny` with the weights of the folder REGARD_MODEL if that is set: real sentences, written to their END.
       Else random weights that never write END, 16 steps.
base   preset `base` (63 million parameters, 37,000 words), random weights that never write END, 16 steps.

Sentences are Multi30k's test 2016 by the model's own tokenizer, longest first; random models read random words of the
same lengths. b1 and b64 are sentences at a time, beam4 is a beam of 4 whose score is divided by the length, and which
stops when 4 texts are finished (`enough=4`, Hugging Face's `early_stopping=True`, the rule of CTranslate2). The clock
sees ids become ids: no tokenizer runs.

All contestants must write the same before any clock runs; texts that differ are counted and told (their scores may be
nearer to each other than rounding). A ratio is the median over all rounds of their CPU time / ours: above 1, Regard is
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench import reference_models
from bench.cache_growth import measure_cache_growth
from bench.peers import ROOT
from bench.timing import format_table, race, ratio, restart_with_tuned_malloc
from regard.config.codec import preset
from regard.config.model import EncoderDecoder as Settings
from regard.decode.beam import beam
from regard.decode.greedy import greedy
from regard.exchange.encoder_decoder import marian
from regard.exchange.mapping import to_theirs
from regard.models.build import build
from regard.models.cpu_decoder import CpuDecoder
from regard.models.encoder_decoder import EncoderDecoder
from regard.store.model_folder import read_model

OURS = "regard"
SENTENCES = ROOT / "../shared/data/multi30k/test_2016_flickr.en.gz"
STEPS, BEAM_SIZE = 16, 4
POSITIONS = 256  # of Hugging Face's table of sines
BATCH_SIZES = {"b1": 4, "b64": 64}  # sentences between two looks at the clock
QUICK_STEPS, QUICK_ROWS = 4, 16  # of base with --quick: figures that only show that it runs
MIN_IDENTICAL_SHARE = 0.97  # the share of texts that all must write alike

Rows = list[list[int]]
TranslateFn = Callable[[Rows, int], Rows]  # sources, size of the beam -> texts


@dataclass(frozen=True)
class DecodingCase:
    """A model of ours, what it reads, and how much it may write."""

    name: str
    settings: Settings
    model: EncoderDecoder
    sources: Rows
    pad: int
    bos: int
    eos: int
    steps: int | None  # None: until END

    def max_length(self, sources: Rows) -> int:
        """The same for all sentences of a batch: nobody else has a limit for each."""
        return self.steps or min(2 * max(map(len, sources)) + 50, POSITIONS)


def load_trained_case(name: str, folder: Path, count: int) -> DecodingCase:
    """A model that has learned to translate."""
    stored = read_model(folder)
    if not isinstance(stored.settings, Settings) or not isinstance(stored.model, EncoderDecoder):
        raise SystemExit(f"{folder} does not translate.")
    tokenizer, specials = stored.tokenizers.source, stored.tokenizers.target.specials
    sources = [[*ids, tokenizer.specials.eos] for ids in tokenizer.encode_ids(_read_lines()[:count])]
    special_ids = (specials.pad, specials.bos, specials.eos)
    return DecodingCase(name, stored.settings, stored.model, _sort_by_length(sources), *special_ids, steps=None)


def make_random_case(name: str, count: int, steps: int = STEPS) -> DecodingCase:
    """A model that has learned nothing, and never writes END.

    Its last norm says 20 in the first dimension, whatever came in; there all words have 0, and END -10: a logit of
    -200, in all contestants alike.
    """
    settings = preset(name)
    assert isinstance(settings, Settings)  # noqa: S101
    model = build(settings, seed=0).eval()
    pad, bos, eos = 0, 1, 2
    with torch.no_grad():
        norm: Any = model.decoder.layers[-1].feedforward_residual.norm
        norm.weight[0], norm.bias[0] = 0.0, 20.0
        model.target.embedding.weight[:, 0] = 0.0
        model.target.embedding.weight[[pad, bos, eos], 0] = -10.0
    rng = random.Random(0)  # noqa: S311
    vocabulary_size = settings.target_tokens.vocabulary
    sources = [[*(rng.randrange(4, vocabulary_size) for _ in line.split()), eos] for line in _read_lines()[:count]]
    return DecodingCase(name, settings, model, _sort_by_length(sources), pad, bos, eos, steps=steps)


def make_regard(case: DecodingCase) -> TranslateFn:
    """Regard: what `Translator` does between its tokenizers."""
    cpu_decoder = CpuDecoder(case.model)

    @torch.inference_mode()
    def translate(sources: Rows, beam_size: int) -> Rows:
        source, valid = _pad(sources, case.pad)
        max_lengths = [case.max_length(sources)] * len(sources)
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
    """`MarianMTModel.generate`, and the model itself."""
    settings = case.settings
    stack = settings.decoder
    sizes = (stack.attention.heads, stack.feedforward.hidden, stack.layers)
    hf_model: Any = reference_models.make_marian(
        settings.target_tokens.vocabulary, settings.width, *sizes, 0.0, POSITIONS
    )
    names = marian(bias=settings.head.bias, max_positions=POSITIONS)
    hf_model.load_state_dict(to_theirs(names, case.model.state_dict()))
    hf_model.eval()
    hf_model.generation_config.pad_token_id = case.pad
    hf_model.generation_config.eos_token_id = case.eos
    hf_model.generation_config.decoder_start_token_id = case.bos

    @torch.inference_mode()
    def translate(sources: Rows, beam_size: int) -> Rows:
        source, valid = _pad(sources, case.pad)
        mask = torch.ones_like(source) if valid is None else valid.long()
        max_length = case.max_length(sources)
        options = {"num_beams": beam_size, "length_penalty": 1.0, "early_stopping": True} if beam_size > 1 else {}
        texts = hf_model.generate(source, attention_mask=mask, max_new_tokens=max_length, do_sample=False, **options)
        return [_truncate_at_eos(text[1:], case) for text in texts.tolist()]

    return translate, hf_model


def make_ctranslate2(case: DecodingCase, hf_model: Any, folder: Path) -> TranslateFn:
    """CTranslate2 by its own converter, from the model of Hugging Face; words are numbers, written out."""
    import ctranslate2  # type: ignore[import-untyped,unused-ignore]
    from ctranslate2.converters.transformers import BartLoader  # type: ignore[import-untyped,unused-ignore]

    config = hf_model.config
    config.normalize_before = config.normalize_embedding = False
    with torch.no_grad():
        spec = BartLoader().get_model_spec(hf_model)  # Marian's own would start from zeros and drop a word
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
        max_length = case.max_length(sources)
        results = engine.translate_batch(rows, beam_size=beam_size, length_penalty=1.0, max_decoding_length=max_length)
        return [[int(token_string) for token_string in result.hypotheses[0]] for result in results]

    return translate


class DecodingContest:
    """Writers that go through the same sentences, each at its own pace."""

    def __init__(self, case: DecodingCase, translators: dict[str, TranslateFn], batching: str, beam_size: int) -> None:
        self.translators, self.beam_size = translators, beam_size
        self.sentence_count = min(BATCH_SIZES[batching], len(case.sources))
        self.batch_size = 1 if batching == "b1" else self.sentence_count
        sources = case.sources
        if batching == "b1":  # each look at the clock sees short and long sentences
            random.Random(0).shuffle(sources := list(sources))  # noqa: S311
        used_count = len(sources) - len(sources) % self.sentence_count
        self.chunks = [
            sources[start : start + self.sentence_count] for start in range(0, used_count, self.sentence_count)
        ]

    def check(self) -> None:
        """All write the same, or nearly."""
        chunks = self.chunks[:: max(1, len(self.chunks) // 2)][:2]
        texts = {name: [text for chunk in chunks for text in self.translate(name, chunk)] for name in self.translators}
        expected = texts.pop(OURS)
        for name, outputs in texts.items():
            identical_count = sum(
                output == expected_output for output, expected_output in zip(expected, outputs, strict=True)
            )
            print(
                f"  {name:<10}writes {identical_count} of {len(expected)} texts as {OURS} does, {sum(map(len, outputs))} tokens"
            )
            if identical_count < MIN_IDENTICAL_SHARE * len(expected):
                raise SystemExit(f"{name} writes something else than {OURS}.")

    def translate(self, name: str, sources: Rows) -> Rows:
        """What one of them makes of some sentences."""
        texts: Rows = []
        for start in range(0, len(sources), self.batch_size):
            texts += self.translators[name](sources[start : start + self.batch_size], self.beam_size)
        return texts

    def steps(self) -> dict[str, Callable[[], object]]:
        """What the clock sees: the next sentences."""

        def make_step(name: str, chunks: Iterator[Rows]) -> Callable[[], object]:
            return lambda: self.translate(name, next(chunks))

        return {name: make_step(name, cycle(self.chunks)) for name in self.translators}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few rounds of each: under a minute")
    parser.add_argument("--only", default="", help="what the keys of contests begin with: tiny, base/b64, ...")
    parser.add_argument("--seconds", type=float, help="for each contest")
    parser.add_argument("--growth", action="store_true", help="the cost of a step up to 2,048 tokens, and nothing else")
    parser.add_argument("--rivals", default="hf,ct2", help="who takes part")
    parser.add_argument("--plain-malloc", action="store_true", help="leave the allocator as it is")
    options = parser.parse_args()
    if not options.plain_malloc:
        restart_with_tuned_malloc()
    start_time = time.perf_counter()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, float32, 1 thread")
    if options.growth:
        measure_cache_growth(max_length=2048, stride=256 if options.quick else 128)
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
        with tempfile.TemporaryDirectory() as scratch:
            translators = _make_translators(case, options.rivals.split(","), Path(scratch))
            for key in keys:
                seconds = options.seconds or (2.5 if options.quick else 60.0)
                results |= _run_contest(key, case, translators, seconds)
    print(f"\n{time.perf_counter() - start_time:.0f} s. Ratio: median over the rounds of their CPU time / ours.")
    print(json.dumps(results))


def _run_contest(key: str, case: DecodingCase, translators: dict[str, TranslateFn], seconds: float) -> dict[str, float]:
    _, batching, search = key.split("/")
    contest = DecodingContest(case, translators, batching, 1 if search == "greedy" else BEAM_SIZE)
    print(f"\n{key}: {len(case.sources)} sentences, {'until END' if case.steps is None else f'{case.steps} steps'}")
    contest.check()
    times = race(contest.steps(), seconds=seconds, warm_up=1)
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


def _truncate_at_eos(text: list[int], case: DecodingCase) -> list[int]:
    """Without END and what follows it."""
    return text[: text.index(case.eos)] if case.eos in text else text


if __name__ == "__main__":
    main()
