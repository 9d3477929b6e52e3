"""Compare the Transformer with what came before it, part by part.

    python examples/before/run.py length                       # writes its section of RESULTS.md and length.svg
    python examples/before/run.py scores --data path/to/data   # parts on real text need the folder of the corpora
    python examples/before/run.py length --small --out /tmp    # a few seconds: to try the script
    python examples/before/run.py scores --stored              # print the section of RESULTS.md, train nothing

Every part is a module of this folder with a function `run(options) -> Report`. All parts train with Regard's own
trainer, data order, searches and metrics; only the models differ. `--data` has one folder per corpus, as their
archives do: `multi30k`, `europarl_deen`, `tatoeba_deen`, `tinyshakespeare`, `wikitext2`, `books_en`, `align_gold`.
"""

import argparse
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent.resolve()
sys.path.insert(0, str(HERE.parents[1]))  # started as a script, Python looks for modules in this folder only

from examples.before.options import Options  # noqa: E402
from examples.before.report import Report, format_table, read_section, write_report  # noqa: E402

PARTS = {
    "length": "copies of 2 to 20 symbols, with and without attention",
    "shortcut": "the gradient from a decoder's output to the first token, with and without attention",
    "gradients": "how far back the gradient of a loss reaches",
    "speed": "seconds of a training step and of a decoding step, by length",
    "translation": "BLEU of a GRU with attention and with a fixed vector, in all and by length",
    "long_sentences": "the same on Europarl, whose sentences are longer",
    "scores": "five attention scores of a recurrent translator",
    "data": "quality by the size of the corpus",
    "positions": "position encodings that the lectures reject, and longer texts than in training",
    "perplexity": "n-grams, an LSTM and a Transformer as language models",
    "words": "an LSTM and a Transformer on the words of WikiText-2, beside n-grams",
    "vectors": "word2vec: neighbors and analogies",
    "alignments": "alignment error rates and attention pictures of a GRU and a Transformer (--model NAME=FOLDER)",
    "ablations": "a Transformer without residual connections, and without norms",
    "surface": "the loss around a Transformer with and without residual connections",
}
"""A part of this name is the module of the same name; a new part is a module and a line here."""


def run_part(name: str, options: Options) -> Report:
    """Run one part and write its section."""
    report: Report = import_module(f"examples.before.{name}").run(options)
    write_report(report, name, options.out)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("part", choices=PARTS, metavar="PART", help="; ".join(f"{k}: {v}" for k, v in PARTS.items()))
    parser.add_argument("--data", type=Path, help="Folder of the corpora.")
    parser.add_argument("--out", type=Path, default=HERE, help="Folder of RESULTS.md and the charts.")
    parser.add_argument("--small", action="store_true", help="A few seconds, on generated text: to try the script.")
    parser.add_argument("--seeds", type=int, default=1, help="Random seeds per model, where a part trains several.")
    parser.add_argument("--models", type=Path, help="Folder that keeps the models, where a part trains for long.")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=FOLDER", help="A trained model.")
    parser.add_argument("--stored", action="store_true", help="Print the section of RESULTS.md; train nothing.")
    options = parser.parse_args()
    if options.stored:
        print(read_section(options.part, options.out))
        return
    folders = {name: Path(folder) for name, _, folder in (text.partition("=") for text in options.model)}
    chosen = Options(options.data, options.out, options.small, options.seeds, options.models, folders)
    report = run_part(options.part, chosen)
    print("\n".join([f"# {report.title}", "", report.text, "", *format_table(report.header, report.rows)]))


if __name__ == "__main__":
    main()
