"""What `regard look` costs for the model of `regard demo`, and whether its headline tells wrong translations.

    regard demo --out regard-demo
    python -m bench.look_demo regard-demo            # about a minute
    python -m bench.look_demo regard-demo --quick    # 20 sentences

The headline of a page shows the probability of the translation and its geometric mean per token. The area under the
ROC curve (AUC) says how well each of them separates translations that equal the reference from all others, on the test
sentences: 1 is perfect, 0.5 is chance. `look_demo.tsv` has the hypotheses of a run in which they were 0.76 and 0.78.
The cost is CPU time after the model is loaded, with one thread, and the size of the saved page. The last line is JSON.
"""

import argparse
import json
import math
import statistics
import time
from pathlib import Path

import torch

import regard
from regard.look.build import look_into
from regard.tasks.translation.translator import Translator

SENTENCE = "My brother likes music and he plays the guitar."


def compute_auc(scores: list[float], labels: list[bool]) -> float:
    """Return the share of (true, false) pairs in which the true one has the higher score; ties count half.

    >>> compute_auc([0.9, 0.8, 0.1], [True, False, False])
    1.0
    """
    good = [score for score, label in zip(scores, labels, strict=True) if label]
    bad = [score for score, label in zip(scores, labels, strict=True) if not label]
    wins = sum((a > b) + 0.5 * (a == b) for a in good for b in bad)
    return wins / (len(good) * len(bad)) if good and bad else math.nan


def measure_certainty(translator: Translator, folder: Path, count: int, hypotheses: Path | None) -> dict[str, float]:
    """Compare the headline's numbers with the references of the test sentences."""
    sources, references = (
        (folder / f"test.{side}").read_text(encoding="utf-8").splitlines()[:count] for side in ("en", "de")
    )
    outputs = translator.translate(sources)
    logprobs = [sum(output.logprobs) for output in outputs]
    means = [sum(output.logprobs) / len(output.logprobs) for output in outputs]
    labels = [output.text == reference for output, reference in zip(outputs, references, strict=True)]
    if hypotheses is not None:
        rows = zip(sources, references, outputs, logprobs, means, strict=True)
        lines = [f"{a}\t{b}\t{c.text}\t{total:.5f}\t{mean:.5f}\n" for a, b, c, total, mean in rows]
        hypotheses.write_text("".join(lines), encoding="utf-8")
    results = {"probability": compute_auc(logprobs, labels), "per token": compute_auc(means, labels)}
    print(f"{len(labels)} sentences, {sum(labels)} translations equal the reference")
    for name, auc in results.items():
        print(f"  AUC of {name:<12} {auc:.3f}")
    return {f"auc {name}": auc for name, auc in results.items()}


def measure_cost(translator: Translator, rounds: int) -> dict[str, float]:
    """Time a look at one sentence, and weigh its page."""
    times, page = [], ""
    for _ in range(rounds):
        start = time.process_time()
        page = look_into(translator, SENTENCE).html()
        times.append(time.process_time() - start)
    seconds, kilobytes = statistics.median(times), len(page.encode()) / 1000
    print(f"look_into and page: {seconds:.2f} CPU-s (first {times[0]:.2f}); page {kilobytes:.0f} KB")
    return {"cpu_seconds": seconds, "first_cpu_seconds": times[0], "page_kilobytes": kilobytes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of `regard demo`")
    parser.add_argument("--quick", action="store_true", help="20 sentences")
    parser.add_argument("--hypotheses", type=Path, help="write source, reference, output, ln p and its mean")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    translator = regard.load(arguments.folder / "model")
    assert isinstance(translator, Translator)  # noqa: S101
    results = measure_cost(translator, 3)
    results |= measure_certainty(translator, arguments.folder, 20 if arguments.quick else 200, arguments.hypotheses)
    print(json.dumps({name: round(value, 3) for name, value in results.items()}))


if __name__ == "__main__":
    main()
