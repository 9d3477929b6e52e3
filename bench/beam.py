"""Beam search over a file: the default stopping rule next to the exact one, greedy search and CTranslate2.

    python -m bench.beam MODEL --sources test.en [--references test.de]     # 1,000 sentences
    python -m bench.beam MODEL --sources test.en --quick                    # 100 sentences, one round

MODEL is a translation model; files may end in .gz. All contestants translate the same sentences from text to text with
one thread, in parts of 100 sentences, in turns. The table has sentences per CPU-second, the median over all rounds of
the CPU time relative to greedy search, the share of outputs equal to the exact search's, and BLEU. Hugging Face runs as
well where one of its architectures has the model's layers; `python -m bench.decode` compares it on models that it has.
The last line is JSON: how much faster a beam of 5 is than each contestant.
"""

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from bench.timing import ratio, restart_with_tuned_malloc
from regard.base.errors import RegardError
from regard.exchange.export import export_model
from regard.measure.bleu_chrf import bleu
from regard.tasks.load import load_translator
from regard.tasks.search import Beam

OURS, EXACT, GREEDY = "beam 5", "exact beam 5", "greedy"
PART = 100  # sentences that a contestant translates before the next one has its turn

Translate = Callable[[list[str]], list[str]]


def main() -> None:
    """Print the table, then the ratios as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of a translation model")
    parser.add_argument("--sources", type=Path, required=True, help="sentences to translate, one per line")
    parser.add_argument("--references", type=Path, help="their translations, for BLEU")
    parser.add_argument("--tokenize", default="13a", help="tokenization of BLEU; `none` for tokenized text")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="100 sentences, one round")
    options = parser.parse_args()
    restart_with_tuned_malloc()
    torch.set_num_threads(1)
    count, rounds = (PART, 1) if options.quick else (options.sentences, options.rounds)
    sources = read_lines(options.sources)[:count]
    references = None if options.references is None else read_lines(options.references)[:count]
    with tempfile.TemporaryDirectory() as scratch:
        times, outputs = run(make_contestants(options.model, Path(scratch)), sources, rounds)
    print(f"{'search':<28}{'sentences/s':>12}{'x greedy':>10}{'equal to exact':>16}{'BLEU':>8}")
    for name, seconds in times.items():
        equal = sum(ours == exact for ours, exact in zip(outputs[name], outputs[EXACT], strict=True))
        score = "" if references is None else f"{bleu(outputs[name], references, options.tokenize).value:.2f}"
        print(
            f"{name:<28}{rounds * len(sources) / sum(seconds):>12.1f}{ratio(seconds, times[GREEDY]):>10.2f}"
            f"{f'{equal} of {len(sources)}':>16}{score:>8}"
        )
    print(json.dumps({f"beam/{name}": round(ratio(times[name], times[OURS]), 3) for name in times if name != OURS}))


def make_contestants(model: Path, scratch: Path) -> dict[str, Translate]:
    """Return a function from texts to translations for each contestant."""
    translator = load_translator(model)

    def make_ours(search: Beam, engine: str = "torch") -> Translate:
        pipeline = translator if engine == "torch" else load_translator(scratch / "export", engine="ctranslate2")
        return lambda texts: [result.text for result in pipeline.translate(texts, search, with_scores=False)]

    contestants = {GREEDY: make_ours(Beam(1)), OURS: make_ours(Beam(5)), EXACT: make_ours(Beam(5, exact=True))}
    contestants["beam 5, stop after 5"] = make_ours(Beam(5, stop_after=5))
    try:
        export_model(model, "ctranslate2", scratch / "export")
    except RegardError as error:
        print(f"Without CTranslate2: {error.message}")
    else:
        contestants["CTranslate2, beam 5"] = make_ours(Beam(5), "ctranslate2")
    try:
        export_model(model, "huggingface", scratch / "hub")
    except RegardError as error:
        print(f"Without Hugging Face: {error.message}")
    else:
        contestants["Hugging Face, beam 5"] = make_hugging_face(scratch / "hub")
    return contestants


def make_hugging_face(folder: Path) -> Translate:
    """Return beam search of `transformers`, in batches of 32 sentences of similar length."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()

    def translate(texts: list[str]) -> list[str]:
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        results = [""] * len(texts)
        for start in range(0, len(order), 32):
            indices = order[start : start + 32]
            batch = tokenizer([texts[index] for index in indices], return_tensors="pt", padding=True)
            with torch.inference_mode():
                tokens = model.generate(**batch, num_beams=5, max_new_tokens=128)
            for index, text in zip(indices, tokenizer.batch_decode(tokens, skip_special_tokens=True), strict=True):
                results[index] = text
        return results

    return translate


def run(
    contestants: dict[str, Translate], sources: list[str], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[str]]]:
    """Return the CPU-seconds of every part of every round, and the outputs, by contestant."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    outputs: dict[str, list[str]] = {}
    for translate in contestants.values():
        translate(sources[:10])  # warm up
    for _ in range(rounds):
        outputs = {name: [] for name in contestants}
        for start in range(0, len(sources), PART):
            for name, translate in contestants.items():
                begin = time.process_time()
                outputs[name] += translate(sources[start : start + PART])
                times[name].append(time.process_time() - begin)
    return times, outputs


def read_lines(path: Path) -> list[str]:
    """Read the lines of a text file."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


if __name__ == "__main__":
    main()
