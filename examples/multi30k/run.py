"""Multi30k English-German, Transformer-tiny (Wu et al. 2021): train several seeds, select on validation, test once.

    python examples/multi30k/run.py --data ../shared/data/multi30k/tok --out multi30k --seeds 1 2 3
    python examples/multi30k/run.py ... --score          # score existing runs, train nothing
    python examples/multi30k/run.py --data ../shared/data/multi30k/tok --out students --teachers multi30k/seed*/best

With `--teachers` (models of the same data) the training set also contains their translations of its sources (data
diversification, Nguyen et al. 2020). `--data ../shared/data/multi30k` trains and scores the raw files.

Each seed is one `regard train` with RECIPE; a stopped run continues when the script starts again. For every run, the
BLEU of the validation set selects the model (`best` or `average`) and the length penalty of a beam of 5; the selected
model then translates the test sets once. The scores are printed and written to RESULTS.json beside the runs.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from regard.data.readers.text_files import read_decompressed
from regard.measure.bleu_chrf import BleuTokenizer, bleu, chrf
from regard.pipeline.load import load
from regard.pipeline.search import Beam
from regard.pipeline.translator import Translator
from regard.train.fit import is_finished

RECIPE: dict[str, Any] = {
    "tokenizer.vocabulary": 10_000,
    "model.encoder.placement": "pre",
    "model.encoder.final_norm": True,
    "model.decoder.placement": "pre",
    "model.decoder.final_norm": True,
    "data.batch_tokens": 2048,
    "train.update_tokens": 4096,
    "train.schedule.kind": "linear",
    "train.schedule.peak": 0.0035,
    "train.schedule.warmup": 500,
    "train.precision": "bfloat16",
    "train.average": 10,
    "train.save_every": 100,
    "validation.every": 500,
    "validation.metric": "bleu",
    "validation.sentences": 1014,
    "validation.patience": 0,
    "device.attention": "float32",
    "device.logit_rows": 256,
}
STUDENT: dict[str, Any] = {  # changes to RECIPE with --teachers
    f"model.{side}.{setting}": value
    for side in ("encoder", "decoder")
    for setting, value in (
        ("position.kind", "rotary"),
        ("dropout.token", 0.1),
        ("dropout.embedding", 0.1),
        ("dropout.sublayer", 0.1),
    )
}
UPDATES = 8000
LANGUAGES = ("en", "de")
TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
LENGTH_PENALTIES = (0.6, 0.8, 1.0, 1.2, 1.4)
BEAM = 5
TEACHER_LENGTH_PENALTY = 1.2


def main() -> None:
    """Train the runs that are not finished, then score all runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the tokenised or of the raw files")
    parser.add_argument("--out", type=Path, default=Path("multi30k"), help="folder of the runs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="one run per random seed")
    parser.add_argument("--updates", type=int, default=UPDATES, help="number of updates")
    parser.add_argument("--threads", type=int, default=1, help="number of CPU threads")
    parser.add_argument("--teachers", type=Path, nargs="+", default=[], help="models to distil from")
    parser.add_argument("--score", action="store_true", help="score existing runs, train nothing")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    recipe = RECIPE | (STUDENT if options.teachers else {}) | {"device.threads": options.threads}
    options.out.mkdir(parents=True, exist_ok=True)
    runs = {seed: options.out / f"seed{seed}" for seed in options.seeds}
    if not options.score:
        pairs = [_find_path(options.data, "train", language) for language in LANGUAGES]
        if options.teachers:
            pairs = write_diversified_corpus(options.data, options.out, options.teachers)
        for seed, run in runs.items():
            train(options.data, pairs, run, recipe, seed, options.updates)
    results = {str(seed): score_run(options.data, run) for seed, run in runs.items()}
    (options.out / "RESULTS.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for test in TESTS:
        print(f"{test}: mean BLEU {statistics.fmean(seed['tests'][test]['bleu'] for seed in results.values()):.2f}")


def write_diversified_corpus(data: Path, out: Path, teachers: list[Path]) -> list[Path]:
    """Write the training set of the students: the pairs twice, and each teacher's translation of every source.

    Returns:
        The paths of the source and the target file.
    """
    sources, references = (_read_lines(data, "train", language) for language in LANGUAGES)
    sides = [sources * 2, references * 2]
    for teacher in teachers:
        # Translating takes minutes: a restarted script reuses the file.
        translation_path = out / f"by-{teacher.parent.name}-{teacher.name}.de"
        if not translation_path.is_file():
            translations = _load_translator(teacher).translate(sources, Beam(BEAM, TEACHER_LENGTH_PENALTY))
            translation_path.write_text(
                "".join(f"{translation.text}\n" for translation in translations), encoding="utf-8"
            )
        sides[0] += sources
        sides[1] += translation_path.read_text(encoding="utf-8").split("\n")[:-1]
    paths = [out / f"train.{language}" for language in LANGUAGES]
    for path, lines in zip(paths, sides, strict=True):
        text = "".join(f"{line}\n" for line in lines)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:  # a resumed run needs unchanged files
            path.write_text(text, encoding="utf-8")
    return paths


def train(data: Path, pairs: list[Path], run: Path, recipe: dict[str, Any], seed: int, updates: int) -> None:
    """Train one seed, resuming a stopped run; do nothing if it is finished."""
    if is_finished(run):
        return
    command = [sys.executable, "-m", "regard", "train"]
    if run.exists():
        command += ["--resume", str(run)]
    else:
        validation = [_find_path(data, "val", language) for language in LANGUAGES]
        for option, (source, target) in (("", pairs), ("validation-", validation)):
            command += [f"--{option}source", str(source), f"--{option}target", str(target)]
        command += ["--languages", *LANGUAGES, "--preset", "tiny", "--updates", str(updates), "--seed", str(seed)]
        command += ["--out", str(run)]
        for name, value in recipe.items():
            command += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    if code := subprocess.run(command, check=False).returncode:  # noqa: S603 - our own command
        sys.exit(code)  # `regard train` has printed why; 75: stopped on request, continues when started again


def score_run(data: Path, run: Path) -> dict[str, Any]:
    """Select the model and the length penalty on the validation set and score the test sets with them."""
    tokenize: BleuTokenizer = "none" if _is_tokenised(data) else "13a"
    sources, references = (_read_lines(data, "val", language) for language in LANGUAGES)
    validation_bleu: dict[tuple[str, float], float] = {}
    for name in ("best", "average"):
        if (run / name).is_dir():
            translator = _load_translator(run / name)
            for length_penalty in LENGTH_PENALTIES:
                outputs = [
                    translation.text for translation in translator.translate(sources, Beam(BEAM, length_penalty))
                ]
                validation_bleu[name, length_penalty] = bleu(outputs, references, tokenize=tokenize).value
    name, length_penalty = max(validation_bleu, key=lambda choice: validation_bleu[choice])
    print(
        f"{run}: {name}, length penalty {length_penalty}, validation BLEU {validation_bleu[name, length_penalty]:.2f}",
        flush=True,
    )
    translator, tests = _load_translator(run / name), {}
    for test in TESTS:
        sources, references = (_read_lines(data, test, language) for language in LANGUAGES)
        outputs = [translation.text for translation in translator.translate(sources, Beam(BEAM, length_penalty))]
        score = bleu(outputs, references, tokenize=tokenize)
        tests[test] = {"bleu": score.value, "chrf": chrf(outputs, references).value, "signature": score.signature}
        print(f"  {test}: BLEU {score.value:.2f}  chrF {tests[test]['chrf']:.2f}", flush=True)
    validation = validation_bleu[name, length_penalty]
    return {"model": name, "length_penalty": length_penalty, "validation": validation, "tests": tests}


def _load_translator(folder: Path) -> Translator:
    translator = load(folder)
    assert isinstance(translator, Translator)  # noqa: S101 - `train` made it
    return translator


def _find_path(data: Path, split: str, language: str) -> Path:
    """Return the path of a file, tokenised or raw, with or without .gz."""
    path = data / f"{split}{'.lc.norm.tok' if _is_tokenised(data) else ''}.{language}"
    return path if path.is_file() else path.with_name(f"{path.name}.gz")


def _is_tokenised(data: Path) -> bool:
    return any(data.glob("train.lc.norm.tok.en*"))


def _read_lines(data: Path, split: str, language: str) -> list[str]:
    return b"".join(read_decompressed(str(_find_path(data, split, language)))).decode().splitlines()


if __name__ == "__main__":
    main()
