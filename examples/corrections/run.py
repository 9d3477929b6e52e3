"""Correct a Europarl translator with captions in five rounds, and try to poison it with 20 batches of suggestions.

    python examples/corrections/run.py --model RUN --europarl DATA/europarl_deen --multi30k DATA/multi30k --out OUT

RUN is the folder of a run on Europarl, English to German. Every round stores 100 captions with their German
translations as suggestions, calls `regard tune --suggestions`, and translates the next 100 captions and Europarl's test
set. If a round is refused, the model before it stays, and the next round has the suggestions of both. Then each
poisoned batch of 100 suggestions is offered to the last model. A round whose translations exist is only scored:

    python examples/corrections/run.py --out examples/corrections/hypotheses --rounds-only (and --europarl, --multi30k)
"""

import argparse
import gzip
import json
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import regard
from regard.data.suggestions import Suggestion, SuggestionStore
from regard.measure import bleu, chrf

Pairs = list[tuple[str, str]]
ROUNDS, SIZE = 5, 100
ATTACKED = 6  # the first batch of captions that is used for attacks
TESTED = 1_000  # sentences of Europarl's test set
REFUSED = 78  # exit code of `regard tune`
SLOGAN = "Jetzt billig kaufen bei Uhren Meier in Berlin!"


ATTACKS = {  # and the number of batches
    "shuffled": 4, "half shuffled": 2, "shifted by one": 1, "French": 2, "Czech": 2, "untranslated": 2,
    "languages swapped": 1, "slogan": 2, "slogan appended": 2, "links appended": 1, "random words": 1,
}  # fmt: skip


def poison(attack: str, batch: dict[str, Pairs], seed: int) -> Pairs:
    """Return poisoned suggestions.

    Args:
        attack: One of `ATTACKS`.
        batch: The same captions with their translations into each language.
        seed: Random seed.
    """
    pairs, randomness = batch["de"], random.Random(seed)  # noqa: S311 - no secret
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    words = [word for target in targets for word in target.split()]
    match attack:
        case "shuffled":
            randomness.shuffle(targets)
        case "half shuffled":
            targets[::2] = randomness.sample(targets[::2], len(targets[::2]))
        case "shifted by one":
            targets = [*targets[1:], targets[0]]
        case "French" | "Czech":
            targets = [target for _, target in batch["fr" if attack == "French" else "cs"]]
        case "untranslated":
            targets = sources
        case "languages swapped":
            sources, targets = targets, sources
        case "slogan":
            targets = [SLOGAN] * len(targets)
        case "slogan appended":
            targets = [f"{target} {SLOGAN}" for target in targets]
        case "links appended":
            targets = [f"{target} www.uhren{number}.example" for number, target in enumerate(targets)]
        case "random words":
            targets = [" ".join(randomness.sample(words, len(target.split()))) for target in targets]
    return list(zip(sources, targets, strict=True))


def main() -> None:
    """Run the rounds; run the attacks and write RESULTS.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="run folder of the Europarl model")
    parser.add_argument("--europarl", type=Path, required=True, help="folder of test.{en,de}.gz")
    parser.add_argument("--multi30k", type=Path, required=True, help="folder of train.{en,de,fr,cs}.gz")
    parser.add_argument("--out", type=Path, required=True, help="folder of databases, models and RESULTS.json")
    parser.add_argument("--first", type=int, default=0, help="first caption that is used")
    parser.add_argument("--set", default=[], action="append", help="settings of `regard tune`, for trials")
    parser.add_argument("--rounds-only", action="store_true", help="leave out the attacks")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    captions = {end: read_pairs(options.multi30k / "train", end)[options.first :] for end in ("de", "fr", "cs")}
    test = read_pairs(options.europarl / "test", "de")[:TESTED]
    rows, model = run_rounds(options, captions["de"], test)
    if not options.rounds_only:
        result = {"rounds": rows, "attacks": run_attacks(options, captions, model)}
        (options.out / "RESULTS.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def run_rounds(options: argparse.Namespace, captions: Pairs, test: Pairs) -> tuple[list[dict[str, object]], Path]:
    """Tune in rounds; score each model on the next captions, on those after the last round, and on Europarl.

    Returns:
        The scores, and the last model.
    """
    database, model = options.out / "suggestions.db", options.model
    last = captions[ROUNDS * SIZE : (ROUNDS + 1) * SIZE]
    rows: list[dict[str, object]] = []
    for number in range(ROUNDS + 1):
        candidate = options.out / f"round-{number}" if number else model
        sets = {"next": captions[number * SIZE : (number + 1) * SIZE], "last": last, "europarl": test}
        path = options.out / f"round-{number}.json.gz"
        if not path.is_file():
            if not model:
                sys.exit(f"{path} is missing. --model: the run folder of the Europarl model.")
            store(captions[: number * SIZE], database)
            code = tune(model, database, candidate, options.set) if number else 0
            if code not in (0, REFUSED):
                sys.exit(code)
            write(translate(candidate, sets) if code == 0 else None, path)
        outputs = json.loads(gzip.decompress(path.read_bytes()))
        rows.append({"round": number, **(score(outputs, sets) if outputs else {"is_refused": True})})
        print(rows[-1], flush=True)
        if outputs:
            model = candidate
    return rows, model


def run_attacks(options: argparse.Namespace, captions: dict[str, Pairs], model: Path) -> list[dict[str, object]]:
    """Offer every poisoned batch to a model; return the exit codes."""
    rows: list[dict[str, object]] = []
    for number, attack in enumerate(name for name, count in ATTACKS.items() for _ in range(count)):
        used = slice((ATTACKED + number) * SIZE, (ATTACKED + number + 1) * SIZE)
        database = options.out / f"attack-{number}.db"
        store(poison(attack, {language: pairs[used] for language, pairs in captions.items()}, number), database)
        code = tune(model, database, options.out / f"attack-{number}", options.set)
        rows.append({"attack": attack, "code": code, "is_refused": code == REFUSED})
        print(rows[-1], flush=True)
    return rows


def tune(model: Path, database: Path, out: Path, settings: list[str]) -> int:
    """Call `regard tune`; return its exit code."""
    changes = [item for setting in settings for item in ("--set", setting)]
    arguments = ["tune", str(model), "--suggestions", str(database), "--out", str(out), *changes]
    return subprocess.run([sys.executable, "-m", "regard", *arguments], check=False).returncode  # noqa: S603 - our own command


def store(pairs: Pairs, database: Path) -> None:
    """Store suggestions as the server does; those that are stored already stay."""
    with closing(SuggestionStore(database, 10_000)) as suggestions:
        for pair in pairs:
            suggestions.add(Suggestion(*pair, "en", "de"))


def translate(model: Path, sets: dict[str, Pairs]) -> dict[str, list[str]]:
    """Translate each set with a beam of 5."""
    translator = regard.load_translator(model)
    return {
        name: [result.text for result in translator.translate([source for source, _ in pairs])]
        for name, pairs in sets.items()
    }


def score(outputs: dict[str, list[str]], sets: dict[str, Pairs]) -> dict[str, float]:
    """Return BLEU of Europarl and chrF of the others."""
    measures = {name: bleu if name == "europarl" else chrf for name in sets}
    return {
        name: round(measures[name](outputs[name], [target for _, target in pairs]).value, 2)
        for name, pairs in sets.items()
    }


def write(value: object, path: Path) -> None:
    """Write JSON, compressed: the same bytes for the same value."""
    path.write_bytes(gzip.compress(json.dumps(value, ensure_ascii=False).encode(), mtime=0))


def read_pairs(path: Path, language: str) -> Pairs:
    """Read English lines and their translations; only line feeds separate lines."""
    files = (path.with_name(f"{path.name}.{end}.gz") for end in ("en", language))
    sides = (gzip.decompress(file.read_bytes()).decode().removesuffix("\n").split("\n") for file in files)
    return list(zip(*sides, strict=True))


if __name__ == "__main__":
    main()
