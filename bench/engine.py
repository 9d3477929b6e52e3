"""`Translator` on the CTranslate2 engine against bare CTranslate2: what batching, tokens and results cost.

    python -m bench.engine MODEL                 # a translation model; it is exported to a temporary folder
    python -m bench.engine MODEL --quick         # under a minute
    python -m bench.engine MODEL --types int8    # other types than float32

The texts are Multi30k's test 2016 (1,000 sentences), 32 in a round, beam 5. Contestants:

bare      `ctranslate2.Translator.translate_batch` with tokens as strings, sorted by length, in static batches of the
          size that was fastest in a trial; one maximum length for all. Tokenization is not timed.
ids       `TranslationEngine.find`: token ids to token ids, a maximum length per text, no scores.
text      `Translator.translate(with_scores=False)`: text to text, as `regard translate` calls it.
scored    `Translator.translate`: also the log-probability of every token.

A ratio is the median over all rounds of the CPU time of bare / that of a contestant: 1 is as fast as bare. All run in
one process, in turns, with one thread. The last line is JSON.
"""

import argparse
import gzip
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import torch

from bench.corpora import DATA, require
from bench.timing import format_table, quartiles, race, ratio, restart_with_tuned_malloc
from regard.exchange.export import ExportOptions, export_model
from regard.tasks.load import load
from regard.tasks.search import Beam
from regard.tasks.translation.ctranslate2_translator import CTranslate2Translator

SENTENCES = DATA / "multi30k/test_2016_flickr.en.gz"
SEARCH = Beam(5, stop_after=5)
ROUND_TEXTS = 32
BATCH_SIZES = (8, 16, 32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a translation model")
    parser.add_argument("--types", nargs="+", default=["float32", "int8"], help="types to export")
    parser.add_argument("--seconds", type=float, default=90.0, help="seconds per type")
    parser.add_argument("--quick", action="store_true", help="15 seconds per type")
    options = parser.parse_args()
    require("multi30k")
    restart_with_tuned_malloc()
    torch.set_num_threads(1)
    with gzip.open(SENTENCES, "rt", encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in file]
    results: dict[str, float] = {}
    for type_name in options.types:
        with tempfile.TemporaryDirectory() as scratch:
            export_model(options.model, "ctranslate2", Path(scratch) / "export", ExportOptions(dtype=type_name))
            results |= run(Path(scratch) / "export", texts, 15 if options.quick else options.seconds)
    print(json.dumps(results))


def run(export: Path, texts: list[str], seconds: float) -> dict[str, float]:
    """Race all contestants with one export."""
    import ctranslate2

    translator = load(export, engine="ctranslate2")
    assert isinstance(translator, CTranslate2Translator)  # noqa: S101
    bare = ctranslate2.Translator(str(export), inter_threads=1, intra_threads=1)
    type_name = translator.engine.compute_type
    encoded = translator.encode_sources(texts, None)
    max_lengths = translator.resolve_max_lengths(encoded, None)
    rounds = [range(start, start + ROUND_TEXTS) for start in range(0, len(texts) - ROUND_TEXTS, ROUND_TEXTS)]

    def translate_bare(indices: Sequence[int], batch_size: int) -> list[list[str]]:
        rows = [[str(token) for token in encoded[index]] for index in indices]
        results = bare.translate_batch(
            rows, beam_size=SEARCH.beam_size, max_batch_size=batch_size, max_decoding_length=256
        )
        return [result.hypotheses[0] for result in results]

    contestants: dict[str, Callable[[Sequence[int]], Any]] = {
        "ids": lambda indices: translator.engine.find(
            [encoded[index] for index in indices],
            [max_lengths[index] for index in indices],
            SEARCH,
            with_scores=False,
        ),
        "text": lambda indices: translator.translate([texts[index] for index in indices], SEARCH, with_scores=False),
        "scored": lambda indices: translator.translate([texts[index] for index in indices], SEARCH),
    }

    def repeat(function: Callable[[Sequence[int]], Any]) -> Callable[[], object]:
        parts: Iterator[range] = cycle(rounds)
        return lambda: function(next(parts))

    def make_bare(batch_size: int) -> Callable[[Sequence[int]], Any]:
        return lambda indices: translate_bare(indices, batch_size)

    trial = race({str(size): repeat(make_bare(size)) for size in BATCH_SIZES}, seconds=seconds / 4)
    best_size = int(min(trial, key=lambda size: quartiles(trial[size])[1]))
    contestants["bare"] = make_bare(best_size)
    print(f"\n{type_name}: batches of {best_size} are fastest of {BATCH_SIZES} for bare CTranslate2")
    times = race({name: repeat(function) for name, function in contestants.items()}, seconds=seconds)
    print(format_table(times, ours="bare"))
    per_text = {name: sum(values) / len(values) / ROUND_TEXTS for name, values in times.items()}
    print("  CPU ms per text: " + ", ".join(f"{name} {value:.2f}" for name, value in per_text.items()))
    return {
        f"engine/bare/{type_name}/{name}": round(ratio(times["bare"], values), 3)
        for name, values in times.items()
        if name != "bare"
    }


if __name__ == "__main__":
    main()
