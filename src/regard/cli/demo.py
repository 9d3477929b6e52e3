"""`regard demo`: train a small translation model on bundled sentences, and show it learning."""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import quote_path
from regard.cli.console import show_events
from regard.cli.options import option
from regard.cli.text_input import load_as
from regard.cli.train import EXIT_CODES
from regard.training.options import TrainOptions

if TYPE_CHECKING:
    from regard.data.example import SampleOutput
    from regard.training.events import Event, Listener

ASSETS = files("regard") / "assets" / "demo"
SPLITS = ("train", "validation", "test")
LANGUAGES = ("en", "de")
RUN_FILE_FOLDER = "regard-demo"  # the folder named in the bundled run file
QUICK_PAIRS = {"train": 500, "validation": 20, "test": 20}
QUICK_SETTINGS = {  # a small vocabulary and small batches, without tuning for the device
    "tokenizer.vocabulary": 600,
    "train.steps": 20,
    "train.step_tokens": 512,
    "train.schedule.warmup": 5,
    "data.batch_tokens": 512,
    "validation.every_steps": 10,
    "device.threads": 1,
    "device.logit_rows": 256,
    "device.attention": "autocast",
}
MAX_CHARACTERS = 60  # of a sample: an untrained model repeats itself
EXAMPLES = """
regard demo
regard demo --out another-folder
regard demo --quick
"""


def demo(
    out: Annotated[Path, option("New folder for the text and the model.", metavar="FOLDER")] = Path("regard-demo"),
    steps: Annotated[
        int | None, option("Number of optimizer steps; more steps take longer and translate better.", min=1)
    ] = None,
    is_short: Annotated[
        bool,
        option("Train 20 steps on 500 pairs in a few seconds; the model learns little.", "--quick"),
    ] = False,
) -> None:
    """Train an English-German translation model in about three minutes.

    Shows translations of five held-out sentences before, during and after training: the first five of the validation
    data, which is shuffled.
    """
    model = out / "model"
    _check_folder(out, model)
    counts = _write_corpus(out, QUICK_PAIRS if is_short else {})
    duration = "a few seconds" if is_short else "about three minutes on two CPU cores"
    typer.echo(
        f"Training a Transformer to translate from English to German on {counts['train']:,} sentence pairs.\n"
        f"This takes {duration}. Ctrl-C saves and stops.\n\n"
        f"  text      {out / 'train.en'}, {out / 'train.de'}  (Tatoeba, CC BY 2.0 FR: {out / 'README.md'})\n"
        f"  settings  {out / 'run.toml'}\n"
        f"  command   regard train {quote_path(out / 'run.toml')} --out {quote_path(model)}\n"
    )
    from regard.training.api import start  # only when needed

    options = TrainOptions(run=out / "run.toml", out=model, steps=steps, settings=QUICK_SETTINGS if is_short else None)
    with show_events() as listener:
        finished = start(options, [SampleListener(listener, out)])
    if finished.reason == "stop requested":
        typer.echo(f"Continue with: regard train --resume {quote_path(model)}")
    else:
        _print_results(out, model)
    raise typer.Exit(EXIT_CODES[finished.reason])


class SampleListener:
    """Forwards events to another listener and adds translations of the sample sentences as messages."""

    def __init__(self, listener: "Listener", folder: Path) -> None:
        self._listener, self._folder = listener, folder
        self._steps = 0

    def __call__(self, event: "Event") -> None:
        """Handle an event."""
        from regard.training.events import Started, Validated

        if isinstance(event, Started):
            self._listener(event)
            self._steps = event.steps
            self._show("before training, from random weights", _translate_untrained(event.folder, self._folder))
        elif isinstance(event, Validated):
            self._listener(replace(event, samples=()))
            self._show(f"after {event.step:,} of {self._steps:,} steps", event.samples)
        else:
            self._listener(event)

    def _show(self, title: str, samples: "Sequence[SampleOutput]") -> None:
        from regard.training.events import Message

        width = max((len(sample.source) for sample in samples), default=0)
        self._listener(Message(f"{title}:"))
        for sample in samples:
            self._listener(Message(f"    {sample.source:<{width}}  {sample.output[:MAX_CHARACTERS]}"))


def _check_folder(out: Path, model: Path) -> None:
    name = quote_path(model)
    if (model / "best").is_dir():
        hint = f'Use it: regard translate {name} "Where is my book?". To train again: regard demo --out ANOTHER-FOLDER.'
        raise RegardError("This folder already has a trained demo.", location=str(out), hint=hint)
    if (model / "run.toml").is_file():
        hint = f"Continue it: regard train --resume {name}. To start over: regard demo --out ANOTHER-FOLDER."
        raise RegardError("This folder has an unfinished demo.", location=str(out), hint=hint)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        message = "The folder is not empty." if out.is_dir() else "--out is a file; the demo needs a folder."
        raise RegardError(message, location=str(out), hint="Choose a new folder: regard demo --out ANOTHER-FOLDER.")


def _write_corpus(folder: Path, max_pairs: Mapping[str, int]) -> dict[str, int]:
    """Write the bundled pairs as two files per split, the run file and the license; return the pairs per split."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        counts = {}
        for split in SPLITS:
            lines = gzip.decompress((ASSETS / f"{split}.tsv.gz").read_bytes()).decode().splitlines()
            count = max_pairs.get(split, len(lines))
            pairs = [line.split("\t") for line in lines[:count]]
            for side, language in enumerate(LANGUAGES):
                text = "".join(f"{pair[side]}\n" for pair in pairs)
                (folder / f"{split}.{language}").write_text(text, encoding="utf-8", newline="\n")
            counts[split] = len(pairs)
        name = json.dumps(str(folder), ensure_ascii=False)[1:-1]  # TOML escapes like JSON
        run_file = (ASSETS / "run.toml").read_text(encoding="utf-8").replace(f"{RUN_FILE_FOLDER}/", f"{name}/")
        (folder / "run.toml").write_text(run_file, encoding="utf-8", newline="\n")
        (folder / "README.md").write_bytes((ASSETS / "README.md").read_bytes())
    except OSError as error:
        raise RegardError(
            f"The folder cannot be written: {error.strerror}.", location=str(folder), hint="Choose another --out."
        ) from error
    return counts


def _translate_untrained(run_folder: Path, folder: Path) -> "list[SampleOutput]":
    """Translate the sample sentences with the initial weights of the run."""
    from regard.config.codec import RUN_FILES
    from regard.config.model import EncoderDecoderConfig
    from regard.data.example import SampleOutput
    from regard.models.build import build
    from regard.store.run_folder import RunFolder
    from regard.tasks.search import Beam
    from regard.tasks.translation.translator import Translator
    from regard.text.tokenizer_pair import TokenizerPair

    run = RUN_FILES.load(run_folder / "run.toml")
    assert isinstance(run.model, EncoderDecoderConfig)  # noqa: S101 - the bundled run file
    translator = Translator(
        build(run.model, seed=run.seed), TokenizerPair.load(RunFolder(run_folder).tokenizer), run.model
    )
    sources = (folder / "validation.en").read_text(encoding="utf-8").splitlines()[: run.validation.samples]
    translations = translator.translate(sources, Beam(1), max_new_tokens=8)
    return [
        SampleOutput(source, translation.text, "") for source, translation in zip(sources, translations, strict=True)
    ]


def _print_results(out: Path, model: Path) -> None:
    from regard.measure.bleu_chrf import bleu, chrf
    from regard.tasks.translation.translator import Translator

    sources, references = (
        (out / f"test.{language}").read_text(encoding="utf-8").splitlines() for language in LANGUAGES
    )
    name = quote_path(model)
    outputs = [translation.text for translation in load_as(model, Translator).translate(sources)]
    typer.echo(
        f"\nOn {len(sources)} test sentences that it never saw: BLEU {bleu(outputs, references).value:.1f}, "
        f"chrF {chrf(outputs, references).value:.1f} (of 100; beam search).\n\n"
        "Next steps:\n"
        f'  regard translate {name} "Hello" "My brother likes music."\n'
        f'  regard look {name} "My brother likes music."   # see inside the model, in a browser\n'
        f"  regard serve {name}                            # a page and an HTTP API on this machine\n"
        f"  regard evaluate {name} --source {quote_path(out / 'test.en')} --reference {quote_path(out / 'test.de')}\n"
        f"  regard train --resume {name} --more 500        # longer training, better translations\n"
        "  regard check yours.en yours.de                  # your own sentence pairs: are they clean?\n"
        "  regard train --source yours.en --target yours.de --out my-model\n"
        "  regard train --text book.txt --out my-book      # a language model instead\n"
        f"  regard look {name}                             # watch how it learned, step by step"
    )
