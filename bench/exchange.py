"""Whether an export to CTranslate2 translates as PyTorch does: identical outputs in float32, BLEU in int8.

    python -m bench.exchange MODEL                   # Multi30k's test 2016, English to German
    python -m bench.exchange MODEL --sentences 20    # identical outputs of fewer sentences, BLEU of as many

Both engines search by the same rule (`stop_after`). A tie is a pair of different outputs that PyTorch scores within
1e-4 of each other; ties are listed. BLEU is that of the whole test set. The last line is JSON.
"""

import argparse
import gzip
import json
import tempfile
from pathlib import Path

import torch

from bench.corpora import DATA, require
from regard.exchange.export import ExportOptions, export_model
from regard.measure.bleu_chrf import bleu
from regard.tasks.load import load
from regard.tasks.search import Beam
from regard.tasks.translation.translator import Translator

SEARCHES = {"greedy": Beam(1), "beam": Beam(5, stop_after=5)}
TIE = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a translation model from English to German")
    parser.add_argument("--sentences", type=int, help="number of sentences (default: 200, and all for BLEU)")
    options = parser.parse_args()
    require("multi30k")
    torch.set_num_threads(1)
    sources, references = read_lines("test_2016_flickr.en.gz"), read_lines("test_2016_flickr.de.gz")
    results: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        exports = {}
        for dtype in ("float32", "int8"):
            export_model(options.model, "ctranslate2", Path(scratch) / dtype, ExportOptions(dtype=dtype))
            exports[dtype] = load(Path(scratch) / dtype, task="translation", engine="ctranslate2")
        reference = load(options.model, task="translation")
        for name, search in SEARCHES.items():
            compared = sources[: options.sentences or 200]
            results[f"exchange/{name}_same"] = compare(name, reference, exports["float32"], compared, search)
        scores = {}
        for dtype, translator in exports.items():
            texts = translator.translate(sources[: options.sentences], SEARCHES["beam"], with_scores=False)
            scores[dtype] = bleu([result.text for result in texts], references[: options.sentences]).value
            print(f"BLEU {dtype}: {scores[dtype]:.2f}")
        results["exchange/int8_bleu_change"] = round(scores["int8"] - scores["float32"], 2)
    print(json.dumps(results))


def compare(name: str, reference: Translator, export: Translator, sources: list[str], search: Beam) -> float:
    """Return the share of identical outputs, ties among them, and print every different pair."""
    ours, theirs = reference.translate(sources, search), export.translate(sources, search)
    same = ties = 0
    for number, (our_result, their_result) in enumerate(zip(ours, theirs, strict=True)):
        if our_result.tokens == their_result.tokens:
            same += 1
            continue
        gap = our_result.score - their_result.score
        ties += abs(gap) < TIE
        print(f"  {name}, sentence {number}: scores differ by {gap:.1e}{' (a tie)' if abs(gap) < TIE else ''}")
    print(f"{name}: {same} of {len(sources)} outputs are identical, {ties} of the others tie")
    return (same + ties) / len(sources)


def read_lines(name: str) -> list[str]:
    """Read a file of the test set."""
    with gzip.open(DATA / "multi30k" / name, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


if __name__ == "__main__":
    main()
