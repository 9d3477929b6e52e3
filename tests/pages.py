"""Checks for the `bash`, `toml` and `text` blocks of pages: commands are run on small files, settings are loaded.

A comment before a block, `<!-- not run: reason -->`, keeps its commands from being run; their options are checked even
so. `regard demo` is not run here (tests/cli/test_demo.py does), nor is `regard train`: its options, run file and corpus
are checked, and a copy of a small finished run takes the place of the result (tests/cli/test_first_run.py trains).
`regard serve` starts a server in a thread, and `curl` sends its requests to it. `regard look` serves its page and ends.
"""

import gzip
import random
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from regard.cli.train_options import TrainCommandOptions
from regard.config.codec import MODEL_FILES, RUN_FILES, preset
from regard.config.finetune import AdapterConfig, LoraConfig
from regard.config.tokenizers import CharacterLevelConfig, CodebookConfig
from regard.data.codebook import learn_codebook
from regard.data.example import SampleOutput
from regard.lectures.load import load_lecture
from regard.lora import add_adapters, is_adapter
from regard.models.build import build
from regard.serve.settings import SERVE_FILES, ServeConfig, check_bind
from regard.store.adapter_folder import write_adapter
from regard.store.export_folder import hash_of_weights
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from regard.text.learn import learn
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.distributed.rendezvous import Hosts
from regard.training.event_lines import LineLogger
from regard.training.events import Finished, Saved, Started, StepFinished, Validated
from tests.cli.mistakes import make_folder
from tests.commands import parse_command_line, run_command
from tests.documents.samples.office import make_docx
from tests.serve.factories import run_in_thread
from tests.training.runs import write_wav

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?:^<!-- not run: ([^\n]+) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SEPARATORS = {";", "|", "||", "&&", ">", "do", "done"}
BASE_RUN: dict[str, Any] = {
    "model": {"preset": "tiny"},
    "data": {"train": [{"kind": "lines", "source": "a"}]},
    "train": {"steps": 10, "schedule": {"kind": "constant", "lr": 0.001}},
}
COPIES = {  # the names that pages use, and the files of `make_folder`
    "my-model": "finished-run",
    "another-model": "translator",
    "my-lm": "language-model",
    "my-book": "language-model",
    "my-encoder": "masked-model",
    "my-classifier": "classifier",
    "my-pair-model": "classifier",
    "my-tagger": "classifier",
    "regard-demo/model": "translator",
    "regard-demo/test.en": "tiny.en",
    "regard-demo/test.de": "tiny.de",
    "news.en": "tiny.en",
    "test.en": "tiny.en",
    "test.de": "tiny.de",
    "ours.de": "tiny.de",
    "theirs.de": "tiny.de",
    "val.en": "short.en",
    "val.de": "short.de",
    "held-out.en": "short.en",
    "held-out.de": "short.de",
    "yours.en": "train.en",
    "yours.de": "train.de",
    "law.en": "train.en",
    "law.de": "train.de",
    "all.en": "train.en",
    "all.de": "train.de",
    "captions.en": "train.en",
    "captions.de": "train.de",
    "captions-test.en": "tiny.en",
    "captions-test.de": "tiny.de",
    "prompts.txt": "train.en",
    "answers.txt": "train.de",
    "qa.tsv": "pairs.tsv",
    "law-model": "finished-run",
    "novel.txt": "tiny.en",
    "book.txt": "train.en",
    "train.txt": "train.en",
    "validation.txt": "tiny.en",
    "shakespeare": "language-model",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    reason: str  # why its commands are not run; empty if they are
    language: str
    code: str


def read_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page."""
    return [Block(*match) for match in BLOCK.findall(page.read_text(encoding="utf-8"))]


def make_fixtures(folder: Path) -> None:
    """Write the files and models that the commands of pages name."""
    make_folder(folder)
    for side in ("en", "de"):
        lines = (folder / f"train.{side}").read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / f"tiny.{side}").write_text("".join(lines[:2]), encoding="utf-8")
        (folder / f"train.{side}.gz").write_bytes(gzip.compress((folder / f"train.{side}").read_bytes()))
    (folder / "news.en.gz").write_bytes(gzip.compress((folder / "tiny.en").read_bytes()))
    (folder / "regard-demo").mkdir()
    for name, original in COPIES.items():
        copy = shutil.copytree if (folder / original).is_dir() else shutil.copyfile
        copy(folder / original, folder / name)
    write_reviews(folder)
    write_photos(folder / "photos")
    changes = {"d_model": 16, "encoder.layers": 1, "source.size": [8, 8], "head.labels": ["left", "right"]}
    settings = preset("vit", changes)
    weights = get_weights(build(settings, seed=1))
    write_model(folder / "my-vit", settings, None, weights, "# A model for pages\n")
    write_image_gpt(folder / "my-image-gpt")
    write_captioner(folder)
    write_tones(folder)
    write_digits(folder)
    (folder / "examples").symlink_to(ROOT / "examples")
    write_adapters(folder / "my-model" / "best", folder / "runs", ("law", "news"))
    (folder / "terms.tsv").write_text("dogs\tHunde\tHunden\nRegard\n")
    (folder / "letter.docx").write_bytes(make_docx(random.Random(1)))
    (folder / "chat.jinja").write_text("{% for message in messages %}{{ message.content }}{% endfor %}")
    (folder / "run.toml").write_text(RUN_FILES.dumps(RUN_FILES.parse(BASE_RUN)))
    shutil.copyfile(folder / "run.toml", folder / "regard-demo" / "run.toml")


def write_reviews(folder: Path) -> None:
    """Write labeled texts for docs/guides/classify.md, with the labels of the copied classifier."""
    lines = [f"Film {number} is {('dull', 'fine')[number % 2]}.\t{('no', 'yes')[number % 2]}\n" for number in range(40)]
    for name, count in (("reviews.tsv", 40), ("test-reviews.tsv", 4), ("shots.tsv", 4)):
        (folder / name).write_text("".join(lines[:count]))


def write_image_gpt(folder: Path) -> None:
    """Write an untrained model that generates images of the labels of `write_photos`."""
    tokenizer = learn_codebook(np.repeat([[0], [99], [200]], 3, axis=1), ("left", "right"), CodebookConfig())
    changes = {"d_model": 16, "decoder.layers": 1, "raster.size": [4, 4], "tokens.vocabulary": tokenizer.size}
    settings = preset("image-gpt", changes)
    weights = get_weights(build(settings, seed=1))
    write_model(folder, settings, TokenizerPair.joint(tokenizer), weights, "# A model for pages\n")


def write_captioner(folder: Path) -> None:
    """Write a table of captions of `write_photos`, and an untrained model that captions such images."""
    names = [f"photos/left/{number}.png" for number in (0, 2)] + [f"photos/right/{number}.png" for number in (1, 3)]
    lines = [f"{name}\tbright on the {Path(name).parent.name}" for name in names]
    (folder / "photos.tsv").write_text("\n".join(["file\tcaption", *lines]) + "\n")
    tokenizers = TokenizerPair.joint(learn(["bright on the left right"], CharacterLevelConfig()))
    changes = {"d_model": 16, "encoder.layers": 1, "decoder.layers": 1, "source.size": [8, 8]}
    settings = preset("image-to-text", changes | {"target.vocabulary": tokenizers.target.size})
    weights = get_weights(build(settings, seed=1))
    write_model(folder / "my-captions", settings, tokenizers, weights, "# A model for pages\n")


def write_adapters(parent: Path, folder: Path, names: Sequence[str]) -> None:
    """Write untrained LoRA adapters of a model, each in a folder of its own."""
    lora = LoraConfig(rank=2)
    settings = AdapterConfig(parent=parent.name, parent_sha256=hash_of_weights(parent), lora=lora)
    model = read_model(parent).model
    add_adapters(model, lora, seed=1)
    tensors = {name: tensor for name, tensor in get_weights(model).items() if is_adapter(name)}
    for name in names:
        write_adapter(folder / name / "adapter", settings, tensors, {})


def write_photos(folder: Path) -> None:
    """Write the images of docs/guides/images.md."""
    for side in ("left", "right"):
        (folder / side).mkdir(parents=True)
        for number in range(2):
            Image.new("L", (8, 8), 60 * number).save(folder / side / f"{2 * number + (side == 'right')}.png")


def write_tones(folder: Path) -> None:
    """Write the audio clips of docs/guides/audio.md, their table, and a model for each of its tasks."""
    names = [f"tones/{('low', 'high')[number % 2]}/{number}.wav" for number in range(4)]
    for number, name in enumerate(names):
        write_wav(folder / name, bytes([number, 0]) * 800)
    lines = [f"{name}\t{Path(name).parent.name}" for name in names]
    (folder / "tones.tsv").write_text("\n".join(["file\ttext", *lines]) + "\n")
    tokenizers = TokenizerPair.joint(learn(["low high"], CharacterLevelConfig()))
    small: dict[str, Any] = {"d_model": 16, "encoder.layers": 1, "source.rate": 8000}
    models: dict[str, tuple[str, dict[str, Any], TokenizerPair | None]] = {
        "my-tones": ("audio-encoder", {"head.labels": ["high", "low"]}, None),
        "my-speech": ("speech-to-text", {"decoder.layers": 1, "target.vocabulary": tokenizers.target.size}, tokenizers),
    }
    for name, (preset_name, changes, model_tokenizers) in models.items():
        settings = preset(preset_name, small | changes)
        weights = get_weights(build(settings, seed=1))
        write_model(folder / name, settings, model_tokenizers, weights, "# A model for pages\n")


def write_digits(folder: Path) -> None:
    """Write the tables and models of examples/fsdd: the audio clips and models of `write_tones` under other names."""
    (folder / "tables").mkdir()
    for header, prefix in (("label", ""), ("text", "words-")):
        table = (folder / "tones.tsv").read_text().replace("tones/", "../tones/").replace("text", header, 1)
        for name in ("official-train", "official-test", *([] if prefix else ["theo-train", "theo-test"])):
            (folder / "tables" / f"{prefix}{name}.tsv").write_text(table)
    for name, model in (("digits", "my-tones"), ("theo", "my-tones"), ("words", "my-speech")):
        shutil.copytree(folder / model, folder / name)
    (folder / "recordings").mkdir()
    shutil.copyfile(folder / "tones" / "low" / "0.wav", folder / "recordings" / "7_theo_0.wav")


class PageServer:
    """The server that the last `regard serve` of a page started, on a free port of this machine."""

    def __init__(self) -> None:
        self.url = ""
        self._running = ExitStack()

    def start(self, settings: ServeConfig) -> None:
        """Replaces `run_server`: start a server in a thread and return; a server that is still running ends first."""
        check_bind(settings.host, has_keys=settings.keys_file is not None)
        self.stop()
        changes = {"host": "127.0.0.1", "engine": "torch"}
        self.url = self._running.enter_context(run_in_thread(settings.model_copy(update=changes))).url

    def stop(self) -> None:
        """Stop the server."""
        self._running.close()

    def send(self, arguments: Sequence[str]) -> None:
        """Run `curl`; an error status is a failure."""
        assert self.url, f"no server runs before curl {shlex.join(arguments)}"
        if (program := shutil.which("curl")) is None:
            return
        arguments = [argument.replace("http://127.0.0.1:8000", self.url) for argument in arguments]
        command = [program, "--silent", "--show-error", "--fail-with-body", "--max-time", "60", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own pages
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"


def check_commands(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch, server: PageServer) -> None:
    """Check every command of a block, and run those of `regard` and `curl` unless the block says why not."""
    monkeypatch.chdir(folder)
    for arguments in iter_commands(block.code):
        match arguments:
            case ["regard", *rest]:
                parse_command_line(shlex.join(arguments))
                if not block.reason and rest != ["demo"] and rest[0] != "blame":  # untrained models make no errors
                    _run(rest, monkeypatch, server)
            case ["curl", *rest] if not block.reason:
                server.send(rest)
            case ["python", *rest]:
                _check_script(rest)
            case ["pip", "install", *rest]:
                _check_packages(rest)


def iter_commands(code: str) -> Iterator[list[str]]:
    """Return the commands of a block, each as a list of arguments; pipes and lists of commands are taken apart."""
    prompt = any(line.startswith("$ ") for line in code.splitlines())
    for line in code.replace("\\\n", " ").splitlines():
        if prompt and not line.startswith("$ "):
            continue  # output
        lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=";|&>")
        lexer.whitespace_split = True
        arguments: list[str] = []
        for token in [*lexer, ";"]:
            if token in SEPARATORS:
                if arguments:
                    yield arguments
                arguments = []
            else:
                arguments.append(token)


def _run(arguments: Sequence[str], monkeypatch: pytest.MonkeyPatch, server: PageServer) -> None:
    with monkeypatch.context() as patch, Path("tiny.en").open(encoding="utf-8") as standard_input:
        patch.setattr("regard.cli.train.start", _pretend_to_train)
        patch.setattr("regard.cli.train._print_plan", _pretend_to_train)
        patch.setattr("regard.cli.train._launch", _pretend_to_launch)
        patch.setattr("regard.exchange.parity.TEXTS", 4)
        patch.setattr("regard.serve.server.run_server", server.start)
        patch.setattr("regard.look.build.MAX_SEARCHES", 1)
        patch.setattr("regard.lectures.site.load_lectures", lambda: [load_lecture(3)])  # test_site.py loads all
        patch.setattr("regard.tasks.translation.quality.MIN_PAIRS", 20)  # as many as held-out.en has
        patch.setattr("regard.look.local.LocalServer.open_browser", lambda _: True)
        patch.setattr("regard.look.local.LocalServer.wait", lambda _: None)
        patch.setattr("sys.stdin", standard_input)
        is_run = arguments[0] in ("train", "tune") and "--out" in arguments
        fixture = Path(arguments[arguments.index("--out") + 1]) if is_run else Path("none")
        aside = fixture.with_name(f"{fixture.name}.aside")
        if fixture.exists():
            fixture.rename(aside)  # a run needs a new folder
        done = run_command(*arguments)
        if aside.exists():
            shutil.rmtree(fixture, ignore_errors=True)
            aside.rename(fixture)
    assert done.code == 0, f"regard {shlex.join(arguments)}\n{done.output}{done.errors}"


def _pretend_to_train(options: TrainCommandOptions, *_: object, **__: object) -> Finished:
    """Check the options, the run file and the corpus of a run, and copy a finished one to its folder."""
    if options.resume is None:
        run = options.read_run()
        sources = options.sources if run is None else ()
        assert all(Path(path).exists() for source in sources for path in source.paths), sources
    folder = options.resume or options.out
    if options.out is not None and options.resume is None:
        shutil.copytree("finished-run", options.out)
        model = "language-model" if options.text else COPIES.get(options.out.name, "finished-run")
        if model != "finished-run":
            shutil.rmtree(options.out / "best")
            shutil.copytree(model, options.out / "best")
    return Finished(1, "finished", folder or Path("finished-run"))


def _pretend_to_launch(options: TrainCommandOptions) -> int:
    """Check the options of a run with several ranks, and copy a finished one to its folder."""
    if options.hosts is not None and options.rendezvous is not None:
        Hosts.parse(options.hosts, options.rendezvous)
    _pretend_to_train(options)
    return 0


def _check_script(arguments: Sequence[str]) -> None:
    """Check that a script or module exists and contains the options that it is called with."""
    module = arguments[1] if arguments[0] == "-m" else ""
    if module in ("pytest", "venv", "build", "http.server"):
        return
    path = ROOT / arguments[0]
    if module:
        spec = find_spec(module)
        assert spec is not None, module
        path = Path(spec.submodule_search_locations[0] if spec.submodule_search_locations else str(spec.origin))
    sources = [path] if path.is_file() else list(path.glob("*.py"))
    text = "".join(source.read_text(encoding="utf-8") for source in sources)
    for option in (argument for argument in arguments[1:] if argument.startswith("--")):
        assert f'"{option}"' in text, (path.name, option)


def _check_packages(arguments: Sequence[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for names in re.findall(r"\[([\w,]+)\]", " ".join(arguments)):
        assert set(names.split(",")) <= set(extras), names


def check_settings(code: str) -> None:
    """Load a block as a model file, a file of the server, a run file, or as a part of a run file."""
    table = tomllib.loads(code)
    if "family" in table:
        MODEL_FILES.parse(table)
    elif "models" in table:
        SERVE_FILES.parse(table)
    else:
        RUN_FILES.parse({**BASE_RUN, **{name: {**BASE_RUN.get(name, {}), **part} for name, part in table.items()}})


def check_log(code: str) -> None:
    """Check that lines of a log have the form that a run prints, whatever their numbers."""
    printed: list[str] = []
    logger = LineLogger(printed.append, seconds=0)
    logger(Started(Path("my-model"), 0, 2, 9, 9, 9, "cpu", "chrf"))
    logger(
        StepFinished(
            step=1,
            epoch=0,
            loss=1.0,
            negative_log_likelihood=1.0,
            tokens=9,
            input_tokens=9,
            learning_rate=0.1,
            gradient_norm=1.0,
            seconds=1.0,
        )
    )
    scores = {"loss": 1.0, "perplexity": 2.0, "accuracy": 0.5, "bits_per_byte": 1.0, "bleu": 1.0, "chrf": 1.0}
    logger(Validated(1, scores, True, (SampleOutput("a", "b", "c"),), seconds=8.0))
    logger(Saved(1, Path("my-model/checkpoints/step-00000001")))
    forms = {_find_form(line) for line in printed}
    for line in code.splitlines():
        if re.match(r"\d\d:\d\d:\d\d  ", line):
            assert _find_form(line) in forms, (line, sorted(forms))


def _find_form(line: str) -> str:
    """Return a line without its time, numbers, durations and texts."""
    line = re.sub(r"^[\d:]+ +", "", line)
    if match := re.match(r"(source|output|reference): ", line):
        return match[1]
    line = re.sub(r"(\d+ (d|h|min|s) ?)+(?=left|\))", "TIME ", line)
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.,/e-]*", "N", line))
