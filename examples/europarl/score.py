"""Score the translations of the Europarl comparison, and compare Regard's with the others by paired bootstrap.

python examples/europarl/score.py --data path/to/europarl --hypotheses europarl/hypotheses
"""

import argparse
import json
from pathlib import Path

from regard.data.readers.text_files import read_decompressed
from regard.measure.bleu_chrf import bleu, chrf
from regard.measure.bootstrap import paired_bootstrap

COMPARISONS = tuple((ours, theirs) for ours in ("regard", "regard-adam") for theirs in ("hugging-face", "marian"))


def main() -> None:
    """Print two tables and write scores.json beside the translations."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of test.de.gz")
    parser.add_argument("--hypotheses", type=Path, required=True, help="folder of the translations")
    options = parser.parse_args()
    references = b"".join(read_decompressed(str(options.data / "test.de.gz"))).decode().splitlines()
    outputs = {path.stem: path.read_text(encoding="utf-8").splitlines() for path in options.hypotheses.glob("*.de")}
    scores = {
        name: {metric.__name__: metric(lines, references).value for metric in (bleu, chrf)}
        for name, lines in sorted(outputs.items())
    }
    print("| model | BLEU | chrF |\n|---|---|---|")
    for name, values in scores.items():
        print(f"| {name} | {values['bleu']:.2f} | {values['chrf']:.2f} |")
    print("\n| difference | BLEU | 95 % | chrF | 95 % |\n|---|---|---|---|---|")
    for ours, theirs in COMPARISONS:
        if ours in outputs and theirs in outputs:
            cells = []
            for metric in ("bleu", "chrf"):
                result = paired_bootstrap(outputs[theirs], outputs[ours], references, metric)
                cells.append(f"{result.difference:+.2f} | {result.low:+.2f} to {result.high:+.2f}")
            print(f"| {ours} - {theirs} | {' | '.join(cells)} |")
    (options.hypotheses / "scores.json").write_text(json.dumps(scores, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
