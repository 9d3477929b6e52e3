"""Run the commands of docs/lectures/coverage.md, each at a small size in a folder of its own.

    python scripts/check_lectures.py --run                # all commands
    python scripts/check_lectures.py --sample 40          # 40 rows, drawn by a fixed seed, and the numbers they state

The page says how its models are made; this script trains each for two steps with one layer, on a few lines. What a
command learns at this size means nothing: the script checks that it ends with exit code 0 and prints what the row says.
"""

import gzip
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
import traceback
import wave
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]  # the programs of examples, and the other scripts

from check_lectures import PAGE, Item, read_items, read_models, read_reasons  # noqa: E402

SEED = 41
OUTPUTS = ("--out", "--save")
# Numbers of a row that its command need not print: years, names and places in the lectures, parts of formulas,
# and the sizes of square tables.
NOT_MEASURED = re.compile(
    r"\b\d\^\d+|\b(\d+) x \1\b|\b(19|20)\d\d\b"
    r"|\b(Algorithm|Lecture|Poll|poll|Steps|layer|columns) \d+( and \d+)?"
)
STATED = re.compile(r"(?<![\w.^_(/:-])\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?(?![\w^])")
PRINTED = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    output: str
    seconds: float
    """CPU time of the command and its children."""


def write_inputs(folder: Path) -> None:
    """Write the files that the page calls yours."""
    pairs = gzip.decompress((ROOT / "src/regard/assets/demo/validation.tsv.gz").read_bytes()).decode().splitlines()
    sides = [[pair.split("\t")[side] for pair in pairs] for side in (0, 1)]
    capitals = ["Paris is the capital of France .", "Rome is the capital of Italy .", "The dog sees a dog ."]
    blank = 6 * "\t_"  # columns of CoNLL-U
    texts = {
        "train.en": sides[0], "train.de": sides[1], "test.en": sides[0][:3], "test.de": sides[1][:3],
        "prompts.txt": sides[0], "answers.txt": sides[1], "qa.tsv": pairs[:80],
        "book.txt": [*sides[0], *(12 * capitals)], "corpus.txt": sides[0][:30],
        "reviews.tsv": [f"Film {n} is {('dull', 'fine')[n % 2]}.\t{('no', 'yes')[n % 2]}" for n in range(60)],
        "shots.tsv": ["A dull film.\tno", "A fine story.\tyes"],
        "words.conllu": [
            line
            for n in range(100)
            for line in (f"1\tDogs{n}\tdog\tNOUN{blank}", f"2\tbark\tbark\tVERB{blank}", "")
        ],
        "chat.jinja": ["{% for message in messages %}{{ message.content }}{% endfor %}"],
        "photos.tsv": [f"photos/{('boot', 'bag')[n % 2]}/{n}.png\ta {('boot', 'bag')[n % 2]}" for n in range(60)],
        "recordings.tsv": [f"recordings/{('one', 'two')[n % 2]}/{n}.wav\t{('one', 'two')[n % 2]}" for n in range(60)],
    }  # fmt: skip
    for name, lines in texts.items():
        header = {"photos.tsv": ["file\tcaption"], "recordings.tsv": ["file\ttext"]}.get(name, [])
        (folder / name).write_text("\n".join([*header, *lines]) + "\n", encoding="utf-8")
    from PIL import Image

    for line in texts["photos.tsv"]:
        path = folder / line.split("\t")[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 4 * int(path.stem)).save(path)
    shutil.copyfile(folder / "photos" / "bag" / "1.png", folder / "photo.png")
    for line in texts["recordings.tsv"]:
        path = folder / line.split("\t")[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        with wave.open(str(path), "wb") as clip:
            clip.setparams((1, 2, 8000, 0, "NONE", ""))
            clip.writeframes(random.Random(path.stem).randbytes(3200))  # noqa: S311 - noise, not secrets
    shutil.copyfile(folder / "recordings" / "one" / "0.wav", folder / "seven.wav")
    spoken = folder / "RECORDINGS"  # as the Free Spoken Digit Dataset names them: digit, speaker, number
    spoken.mkdir()
    for number in range(80):
        source = folder / "recordings" / ("one", "two")[number % 2] / f"{number % 60}.wav"
        digit, speaker = number % 2, ("ann", "bob")[number // 2 % 2]
        shutil.copyfile(source, spoken / f"{digit}_{speaker}_{number // 4}.wav")
    for part in ("train", "test"):  # SCAN
        commands = [f"IN: jump {n} OUT: {n * 'I_JUMP '}".strip() for n in range(1, 80)]
        (folder / "DATA").mkdir(exist_ok=True)
        (folder / "DATA" / f"tasks_{part}_simple.txt").write_text("\n".join(commands) + "\n")


def shrink(command: str) -> list[str]:
    """Return the arguments of a command, with those that make it small, and keep it from waiting for a user."""
    arguments = shlex.split(command)
    match arguments:
        case ["regard", "train" | "tune" as verb, *_]:
            small = ["--steps", "2", "--force", "--set=train.step_tokens=512", "--set=data.batch_tokens=512"]
            if not any(name in command for name in ("data.max_length", "photos", "recordings")):
                small.append("--set=data.max_length=128")
            if verb == "train":
                is_pair = "--source" in arguments or "photos.tsv" in arguments or "recordings.tsv" in arguments
                is_encoder = any(name in command for name in ("encoder", "bert", "reviews", "word2vec", "vit"))
                is_encoder |= any(part in ("photos", "recordings") for part in arguments) and "gpt" not in command
                stacks = ("encoder", "decoder") if is_pair else ("encoder",) if is_encoder else ("decoder",)
                small += [f"--set=model.{stack}.layers=1" for stack in stacks if "word2vec" not in command]
            return [*arguments, *small]
        case ["regard", "demo"]:
            return [*arguments, "--quick"]
        case ["regard", "look", *_] if "--save" not in arguments:
            return [*arguments, "--save", "page.html"]
        case ["python", script, _, *_] if script.endswith("before/run.py") and "--stored" not in arguments:
            return [*arguments, "--small", "--out", "."]
        case ["python", script, *_] if script.endswith("sequences/run.py"):
            return [*arguments, "--minutes", "0.05"]
        case ["python", script, "prepare", *_] if script.endswith("codec/run.py"):
            return [*arguments[:-1], "codes", "--codes", "8"]
        case ["python", script, *_] if script.endswith("neural_ngram.py"):
            return [*arguments, "--steps", "20"]
        case _:
            return arguments


def run_forked(arguments: Sequence[str], folder: Path) -> Outcome:
    """Run a command in a child of this process, which has imported torch already."""
    with tempfile.TemporaryFile() as output:
        sys.stdout.flush()
        if (child := os.fork()) == 0:
            os.chdir(folder)
            for stream in (1, 2):
                os.dup2(output.fileno(), stream)
            code = _run_here(arguments)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status, usage = os.wait4(child, 0)
        output.seek(0)
        text = output.read().decode(errors="replace")
    return Outcome(os.waitstatus_to_exitcode(status), text, usage.ru_utime + usage.ru_stime)


def _run_here(arguments: Sequence[str]) -> int:
    """Run `regard ...` or `python ...` in this process; return the exit code."""
    program, *rest = arguments
    os.environ |= {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    try:
        if program == "regard":
            from regard.cli.app import run

            sys.argv = [program, *rest]
            return run()
        command = [sys.executable, *(str(ROOT / part) if (ROOT / part).is_file() else part for part in rest)]
        if "pytest" in rest:
            command += ["-q", "-p", "no:cacheprovider"]
        os.execv(sys.executable, command)  # noqa: S606 - a command of our page
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # the child must not return into the parent's code
        traceback.print_exc()
        return 70


def run_in_folder(command: str, inputs: Path) -> Outcome:
    """Run a command in a new folder with the files of another, except those that the command itself writes."""
    arguments = shrink(command)
    written = {arguments[place + 1] for place, part in enumerate(arguments[:-1]) if part in OUTPUTS}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for path in inputs.iterdir():
            if path.name not in written:
                (folder / path.name).symlink_to(path)
        outcome = run_forked(arguments, folder)
        for name in written & set(read_models(PAGE.read_text(encoding="utf-8"))):
            if outcome.code == 0 and not (inputs / name).exists():
                shutil.copytree(folder / name, inputs / name)
        pages = "".join(path.read_text(encoding="utf-8") for path in folder.glob("pages/lecture-*.html"))
        return replace(outcome, output=outcome.output + pages)


def find_numbers(item: Item) -> list[str]:
    """Return the numbers that a row states about what its command prints."""
    return STATED.findall(NOT_MEASURED.sub("", item.text))


def find_missing_numbers(item: Item, output: str) -> list[str]:
    """Return the numbers that a row states and its command does not print; printed ones may have more digits."""
    printed = [float(number) for number in PRINTED.findall(output.replace(",", ""))]
    missing = []
    for number in find_numbers(item):
        value, digits = float(number.replace(",", "")), len(number.partition(".")[2])
        if not any(value in (found, round(found, digits)) for found in printed):
            missing.append(number)
    return missing


def run_rows(items: Iterable[Item]) -> Iterator[tuple[Item, Outcome | None, str]]:
    """Run the command of each row once; yield rows, outcomes (None: not run) and what is wrong, or why not run."""
    page = PAGE.read_text(encoding="utf-8")
    reasons, by_command = read_reasons(page), defaultdict[str, list[Item]](list)
    for item in items:
        by_command[item.command].append(item)
    with tempfile.TemporaryDirectory() as temporary:
        inputs = Path(temporary)
        write_inputs(inputs)
        for name in ("examples", "docs"):
            (inputs / name).symlink_to(ROOT / name)
        for name, command in read_models(page).items():
            if (made := run_in_folder(command, inputs)).code:
                raise SystemExit(f"`{command}` does not make {name}:\n{made.output}")
        made = run_forked(["regard", *shlex.split("tokenizer learn corpus.txt --kind bpe --vocabulary 60")], inputs)
        for command, rows in by_command.items():
            outcome = None if command in reasons else run_in_folder(command, inputs)
            for item in rows:
                if outcome is None:
                    yield item, None, reasons[command]
                elif outcome.code or "Traceback" in outcome.output:
                    yield item, outcome, f"exit code {outcome.code}: {outcome.output[-600:].strip()}"
                elif missing := find_missing_numbers(item, outcome.output):
                    yield item, outcome, f"the output has no {', '.join(missing)}"
                else:
                    yield item, outcome, ""


def draw_rows(items: Sequence[Item], count: int) -> list[Item]:
    """Draw rows with a command by the fixed seed."""
    drawn = random.Random(SEED).sample([item for item in items if item.command], count)  # noqa: S311 - a sample
    return sorted(drawn, key=lambda item: int(item.number))


def report(sample: int | None, numbers: Sequence[str] = ()) -> bool:
    """Run all rows, or a sample of them, and print what fails; return whether anything does.

    Args:
        sample: How many rows to draw by a fixed seed.
        numbers: Rows to run; all by default.
    """
    import torch

    import regard.cli.app  # noqa: F401 - imported once for all children

    torch.set_num_threads(1)
    items = [item for item in read_items(PAGE.read_text(encoding="utf-8")) if item.command]
    chosen = [item for item in items if not numbers or item.number in numbers]
    if sample is not None:
        chosen = draw_rows(items, sample)
    good, seconds, not_run = 0, dict[str, float](), list[tuple[Item, str]]()
    for item, outcome, fault in run_rows(chosen):
        if outcome is None:
            not_run.append((item, fault))
            continue
        seconds[item.command] = outcome.seconds
        good += not fault
        if fault:
            sys.stdout.write(f"item {item.number} ({item.text}): `{item.command}`: {fault}\n")
            sys.stdout.flush()
    for item, reason in not_run:
        sys.stdout.write(f"item {item.number} is not run: `{item.command}`: {reason}\n")
    stating = sum(bool(find_numbers(item)) for item in chosen)
    sys.stdout.write(
        f"{good} of {len(chosen) - len(not_run)} rows are true ({stating} state numbers), {len(not_run)} not run; "
        f"{len(seconds)} commands, {sum(seconds.values()):.0f} CPU-seconds\n"
    )
    slowest = sorted(seconds.items(), key=lambda entry: -entry[1])[:5]
    sys.stdout.write("".join(f"{value:6.1f} s  {command}\n" for command, value in slowest))
    return good < len(chosen) - len(not_run)
