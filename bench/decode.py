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

from bench import rivals
from bench.growth import measure_growth
from bench.peers import ROOT
from bench.timing import again_with_tuned_malloc, race, ratio, table
from regard.config.codec import preset
from regard.config.model import EncoderDecoder as Settings
from regard.decode.beam import beam
from regard.decode.greedy import greedy
from regard.exchange.rules import to_theirs
from regard.exchange.translators import marian
from regard.models.build import build
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.swift import CpuDecoder
from regard.store.model_folder import read_model

OURS = "regard"
SENTENCES = ROOT / "../shared/data/multi30k/test_2016_flickr.en.gz"
STEPS, SIZE = 16, 4
POSITIONS = 256  # of Hugging Face's table of sines
AT_ONCE = {"b1": 4, "b64": 64}  # sentences between two looks at the clock
QUICK_STEPS, QUICK_ROWS = 4, 16  # of base with --quick: figures that only show that it runs
SAME = 0.97  # the share of texts that all must write alike

Rows = list[list[int]]
Writer = Callable[[Rows, int], Rows]  # sources, size of the beam -> texts


@dataclass(frozen=True)
class Shape:
    """A model of ours, what it reads, and how much it may write."""

    name: str
    settings: Settings
    model: EncoderDecoder
    sources: Rows
    pad: int
    begin: int
    end: int
    steps: int | None  # None: until END

    def longest(self, sources: Rows) -> int:
        """The same for all sentences of a batch: nobody else has a limit for each."""
        return self.steps or min(2 * max(map(len, sources)) + 50, POSITIONS)


def trained(name: str, folder: Path, count: int) -> Shape:
    """A model that has learned to translate."""
    stored = read_model(folder)
    if not isinstance(stored.settings, Settings) or not isinstance(stored.model, EncoderDecoder):
        raise SystemExit(f"{folder} does not translate.")
    tokenizer, specials = stored.tokenizers.source, stored.tokenizers.target.specials
    sources = [[*ids, tokenizer.specials.eos] for ids in tokenizer.encode_ids(_lines()[:count])]
    specials_ids = (specials.pad, specials.bos, specials.eos)
    return Shape(name, stored.settings, stored.model, _sorted(sources), *specials_ids, steps=None)


def drawn(name: str, count: int, steps: int = STEPS) -> Shape:
    """A model that has learned nothing, and never writes END.

    Its last norm says 20 in the first dimension, whatever came in; there all words have 0, and END -10: a logit of
    -200, in all contestants alike.
    """
    settings = preset(name)
    assert isinstance(settings, Settings)  # noqa: S101
    model = build(settings, seed=0).eval()
    pad, begin, end = 0, 1, 2
    with torch.no_grad():
        norm: Any = model.decoder.layers[-1].feedforward_residual.norm
        norm.weight[0], norm.bias[0] = 0.0, 20.0
        model.target.embedding.weight[:, 0] = 0.0
        model.target.embedding.weight[[pad, begin, end], 0] = -10.0
    draw = random.Random(0)  # noqa: S311
    words = settings.target_tokens.vocabulary
    sources = [[*(draw.randrange(4, words) for _ in line.split()), end] for line in _lines()[:count]]
    return Shape(name, settings, model, _sorted(sources), pad, begin, end, steps=steps)


def ours(shape: Shape) -> Writer:
    """Regard: what `Translator` does between its tokenizers."""
    swift = CpuDecoder(shape.model)

    @torch.inference_mode()
    def write(sources: Rows, size: int) -> Rows:
        if not swift.fits():
            raise SystemExit("Somebody has changed the weights.")
        source, real = _padded(sources, shape.pad)
        longest = [shape.longest(sources)] * len(sources)
        state = shape.model.start(source, real, capacity=longest[0])
        first = torch.full((len(sources), 1), shape.begin)
        if size == 1:
            texts = greedy(swift.step, state, first, end=shape.end, longest=longest)
        else:
            found = beam(swift.step, state, first, size=size, end=shape.end, longest=longest, enough=size)
            texts = [hypotheses[0] for hypotheses in found]
        return [list(text.text) for text in texts]

    return write


def hugging_face(shape: Shape) -> tuple[Writer, Any]:
    """`MarianMTModel.generate`, and the model itself."""
    settings = shape.settings
    stack = settings.decoder
    sizes = (stack.attention.heads, stack.feedforward.hidden, stack.layers)
    theirs: Any = rivals.marian(settings.target_tokens.vocabulary, settings.width, *sizes, 0.0, POSITIONS)
    names = marian(bias=settings.head.bias, max_positions=POSITIONS)
    theirs.load_state_dict(to_theirs(names, shape.model.state_dict()))
    theirs.eval()
    theirs.generation_config.pad_token_id = shape.pad
    theirs.generation_config.eos_token_id = shape.end
    theirs.generation_config.decoder_start_token_id = shape.begin

    @torch.inference_mode()
    def write(sources: Rows, size: int) -> Rows:
        source, real = _padded(sources, shape.pad)
        mask = torch.ones_like(source) if real is None else real.long()
        longest = shape.longest(sources)
        options = {"num_beams": size, "length_penalty": 1.0, "early_stopping": True} if size > 1 else {}
        texts = theirs.generate(source, attention_mask=mask, max_new_tokens=longest, do_sample=False, **options)
        return [_until(text[1:], shape) for text in texts.tolist()]

    return write, theirs


def ctranslate2(shape: Shape, theirs: Any, folder: Path) -> Writer:
    """CTranslate2 by its own converter, from the model of Hugging Face; words are numbers, written out."""
    import ctranslate2  # type: ignore[import-untyped,unused-ignore]
    from ctranslate2.converters.transformers import BartLoader  # type: ignore[import-untyped,unused-ignore]

    config = theirs.config
    config.normalize_before = config.normalize_embedding = False
    with torch.no_grad():
        spec = BartLoader().get_model_spec(theirs)  # Marian's own would start from zeros and drop a word
    words = [str(word) for word in range(config.vocab_size)]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.config.bos_token = spec.config.decoder_start_token = words[shape.begin]
    spec.config.eos_token, spec.config.unk_token = words[shape.end], words[shape.pad]
    spec.validate()
    spec.save(str(folder))
    engine = ctranslate2.Translator(str(folder), compute_type="float32", inter_threads=1, intra_threads=1)

    def write(sources: Rows, size: int) -> Rows:
        rows = [[words[token] for token in source] for source in sources]
        longest = shape.longest(sources)
        found = engine.translate_batch(rows, beam_size=size, length_penalty=1.0, max_decoding_length=longest)
        return [[int(word) for word in one.hypotheses[0]] for one in found]

    return write


class Contest:
    """Writers that go through the same sentences, each at its own pace."""

    def __init__(self, shape: Shape, writers: dict[str, Writer], at_once: str, size: int) -> None:
        self.writers, self.size = writers, size
        self.count = min(AT_ONCE[at_once], len(shape.sources))
        self.rows = 1 if at_once == "b1" else self.count
        sources = shape.sources
        if at_once == "b1":  # each look at the clock sees short and long sentences
            random.Random(0).shuffle(sources := list(sources))  # noqa: S311
        whole = len(sources) - len(sources) % self.count
        self.turns = [sources[begin : begin + self.count] for begin in range(0, whole, self.count)]

    def check(self) -> None:
        """All write the same, or nearly."""
        turns = self.turns[:: max(1, len(self.turns) // 2)][:2]
        texts = {name: [text for turn in turns for text in self.write(name, turn)] for name in self.writers}
        wanted = texts.pop(OURS)
        for name, found in texts.items():
            same = sum(one == other for one, other in zip(wanted, found, strict=True))
            print(f"  {name:<10}writes {same} of {len(wanted)} texts as {OURS} does, {sum(map(len, found))} tokens")
            if same < SAME * len(wanted):
                raise SystemExit(f"{name} writes something else than {OURS}.")

    def write(self, name: str, sources: Rows) -> Rows:
        """What one of them makes of some sentences."""
        texts: Rows = []
        for begin in range(0, len(sources), self.rows):
            texts += self.writers[name](sources[begin : begin + self.rows], self.size)
        return texts

    def steps(self) -> dict[str, Callable[[], object]]:
        """What the clock sees: the next sentences."""

        def step(name: str, turns: Iterator[Rows]) -> Callable[[], object]:
            return lambda: self.write(name, next(turns))

        return {name: step(name, cycle(self.turns)) for name in self.writers}


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
        again_with_tuned_malloc()
    began = time.perf_counter()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, float32, 1 thread")
    if options.growth:
        measure_growth(max_length=2048, stride=256 if options.quick else 128)
        return
    folder = os.environ.get("REGARD_MODEL")
    results: dict[str, float] = {}
    for name in ("tiny", "base"):
        keys = [f"{name}/{at_once}/{search}" for at_once in AT_ONCE for search in ("greedy", f"beam{SIZE}")]
        keys = [key for key in keys if key.startswith(options.only)]
        if not keys:
            continue
        count = 1000
        if options.quick:
            count = 256 if name == "tiny" else QUICK_ROWS
        steps = QUICK_STEPS if options.quick and name == "base" else STEPS
        shape = trained(name, Path(folder), count) if folder and name == "tiny" else drawn(name, count, steps)
        with tempfile.TemporaryDirectory() as scratch:
            writers = _writers(shape, options.rivals.split(","), Path(scratch))
            for key in keys:
                seconds = options.seconds or (2.5 if options.quick else 60.0)
                results |= _run(key, shape, writers, seconds)
    print(f"\n{time.perf_counter() - began:.0f} s. Ratio: median over the rounds of their CPU time / ours.")
    print(json.dumps(results))


def _run(key: str, shape: Shape, writers: dict[str, Writer], seconds: float) -> dict[str, float]:
    _, at_once, search = key.split("/")
    contest = Contest(shape, writers, at_once, 1 if search == "greedy" else SIZE)
    print(f"\n{key}: {len(shape.sources)} sentences, {'until END' if shape.steps is None else f'{shape.steps} steps'}")
    contest.check()
    times = race(contest.steps(), seconds=seconds, warm_up=1)
    print(table(times, ours=OURS))
    rates = {name: 1000 * contest.count * len(spent) / sum(spent) for name, spent in times.items()}
    print("  sentences per CPU-second: " + ", ".join(f"{name} {rate:.1f}" for name, rate in rates.items()))
    return {f"{key}/{name}": round(ratio(spent, times[OURS]), 3) for name, spent in times.items() if name != OURS}


def _writers(shape: Shape, names: Sequence[str], folder: Path) -> dict[str, Writer]:
    writers = {OURS: ours(shape)}
    generate, theirs = hugging_face(shape)
    if "hf" in names:
        writers["hf"] = generate
    if "ct2" in names:
        writers["ct2"] = ctranslate2(shape, theirs, folder)
    return writers


def _lines() -> list[str]:
    with gzip.open(SENTENCES, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def _sorted(sources: Rows) -> Rows:
    return sorted(sources, key=len, reverse=True)


def _padded(sources: Rows, pad: int) -> tuple[Tensor, Tensor | None]:
    source = nn.utils.rnn.pad_sequence([torch.tensor(row) for row in sources], batch_first=True, padding_value=pad)
    lengths = torch.tensor([len(row) for row in sources])
    real = torch.arange(source.size(1)) < lengths[:, None]
    return source, None if bool(real.all()) else real


def _until(text: list[int], shape: Shape) -> list[int]:
    """Without END and what follows it."""
    return text[: text.index(shape.end)] if shape.end in text else text


if __name__ == "__main__":
    main()
