"""Words of WikiText-2: an LSTM and a Transformer of about equal size beside n-grams.

Texts are as in the part `perplexity`: one end-of-line token per line, all 33,278 words of the training part, so that
no word of the test part is unknown and perplexities per word can be compared with published ones.
"""

from examples.before.models import recurrent_language_model, transformer_language_model
from examples.before.options import Options
from examples.before.perplexity import fit_ngrams
from examples.before.report import Chart, Report
from examples.before.training import MUON, Training, train_language_model

from regard.measure.likelihood import perplexity

NAMES = {"<unk>": "[unk]"}  # WikiText's word for rare words; the tokenizer keeps <unk> for itself
LINE_END = "[eos]"
WINDOW = 128  # tokens that a network sees at most
PEAK = 0.02  # LSTM, validation loss after 200 steps: 6.81 at 0.005, 6.29 at 0.015, 6.12 at 0.03


def read_words(options: Options, part: str) -> list[str]:
    """Return the words of a part of WikiText-2, with an end at every line."""
    lines = options.read_lines(f"wikitext2/wiki.{part}.tokens")
    return [NAMES.get(word, word) for line in lines for word in [*line.split(), LINE_END]]


def run(options: Options) -> Report:
    """Train both networks, count n-grams, and compare them on the test part."""
    train, test = (read_words(options, part) for part in ("train", "test"))
    width, steps = (16, 3) if options.small else (128, 2400)
    networks = {
        "LSTM": recurrent_language_model(width, "lstm", layers=2),
        "Transformer": transformer_language_model(width, layers=2),
    }
    training = Training(
        steps, 1024, peak=PEAK, vocabulary=len(set(train)) + 8, tokenizer="word", max_length=WINDOW, save_every=200,
        settings=MUON,
    )  # fmt: skip
    rows, lines = [], {}
    for n, (value, seconds) in fit_ngrams(train, test, (2, 5)).items():
        rows.append([f"{n}-grams", "", f"{value:.1f}", f"{seconds / 60:.1f}"])
        lines[f"{n}-grams"] = [value] * 2
    for name, model in networks.items():
        with options.run_folder(f"words-{name.lower()}") as folder:
            trained = train_language_model(folder, " ".join(train), " ".join(test), model, training)
        value = perplexity(trained.negative_log_likelihood(" ".join(test), WINDOW), len(test))
        rows.append([name, f"{trained.parameters / 1e6:.1f} M", f"{value:.1f}", f"{trained.seconds / 60:.1f}"])
        lines[name] = [value] * 2
    epochs = steps * training.step_tokens / len(train)
    return Report(
        "Words: networks beside n-grams",
        f"Test perplexity per word of WikiText-2, {len(set(train)):,} words, one end-of-line token per line. The "
        f"networks have width {width} and two layers, tied embeddings, Muon, {steps:,} steps of "
        f"{training.step_tokens:,} tokens ({epochs:.1f} epochs), "
        f"and read windows of {WINDOW} tokens, which overlap by half in the test.",
        ["model", "parameters", "perplexity", "CPU-minutes"],
        rows,
        Chart("", "perplexity", [0, 1], lines),
    )
