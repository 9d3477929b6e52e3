"""Perplexity of n-grams, an LSTM and a Transformer: words of WikiText-2, characters of Shakespeare in bits per byte."""

import tempfile
import time
from collections.abc import Sequence
from math import log
from pathlib import Path

import numpy as np
import torch
from examples.before.models import recurrent_language_model, transformer_language_model
from examples.before.ngram_search import NgramStep, TokensSoFar
from examples.before.ngrams import NgramModel
from examples.before.options import Options
from examples.before.report import Chart, Report
from examples.before.training import MUON, Training, train_language_model

from regard.decode.filters import Filters
from regard.decode.sample import sample
from regard.measure.likelihood import bits_per_byte, perplexity

WORD_ORDERS = (1, 2, 3, 5)
CHARACTER_ORDERS = tuple(range(1, 11))
WINDOW = 128  # characters that a network sees at most


def encode(texts: Sequence[Sequence[str]]) -> tuple[list[np.ndarray], list[str]]:
    """Return texts as ids, and the vocabulary: all tokens of the first text."""
    vocabulary = list(dict.fromkeys(texts[0]))
    number = {token: index for index, token in enumerate(vocabulary)}
    return [np.array([number[token] for token in text]) for text in texts], vocabulary


def measure_words(options: Options) -> list[list[str]]:
    """Return perplexities of n-grams of words on WikiText-2, with one <eos> per line."""
    train, test = (
        [word for line in options.read_lines(f"wikitext2/wiki.{part}.tokens") for word in [*line.split(), "<eos>"]]
        for part in ("train", "test")
    )
    results = fit_ngrams(train, test, WORD_ORDERS)
    return [[f"{n}-grams", f"{value:.1f}", f"{seconds:.1f}"] for n, (value, seconds) in results.items()]


def fit_ngrams(train: Sequence[str], test: Sequence[str], orders: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Return the perplexity per word of n-grams on a test text and their CPU-seconds, by n."""
    (train_ids, test_ids), vocabulary = encode([train, test])
    results = {}
    for n in orders:
        start = time.process_time()
        logprobs = NgramModel.fit(train_ids, n, len(vocabulary)).logprobs(test_ids)
        results[n] = perplexity(-float(logprobs.sum()), len(test)), time.process_time() - start
    return results


def measure_characters(train: str, test: str) -> tuple[list[float], NgramModel, list[str]]:
    """Return bits per byte of n-grams of characters, the model of 5-grams and its vocabulary."""
    (train_ids, test_ids), vocabulary = encode([train, test])
    models = [NgramModel.fit(train_ids, n, len(vocabulary)) for n in CHARACTER_ORDERS]
    size = len(test.encode())
    values = [bits_per_byte(-float(model.logprobs(test_ids).sum()), size) for model in models]
    return values, models[4], vocabulary


def train_networks(train: str, test: str, options: Options) -> dict[str, tuple[float, int, float]]:
    """Return bits per byte, parameters and CPU-seconds of an LSTM and a Transformer of about the same size."""
    width, steps = (16, 20) if options.small else (256, 1500)
    networks = {
        "LSTM": recurrent_language_model(width, "lstm", layers=1),
        "Transformer": transformer_language_model(width // 2 if not options.small else width, layers=3),
    }
    results = {}
    for name, model in networks.items():
        training = Training(
            steps, 2048, peak=0.005, vocabulary=None, tokenizer="character", max_length=WINDOW, settings=MUON
        )
        with tempfile.TemporaryDirectory() as folder:
            trained = train_language_model(Path(folder), train, test, model, training)
        nats = trained.negative_log_likelihood(test, WINDOW)
        results[name] = bits_per_byte(nats, len(test.encode())), trained.parameters, trained.seconds
    return results


def write_text(model: NgramModel, vocabulary: list[str], start: str, length: int) -> str:
    """Sample a text by the search that language models use."""
    prompt = torch.tensor([[vocabulary.index(character) for character in start if character in vocabulary] or [0]])
    generator = torch.Generator().manual_seed(1)
    hypotheses = sample(
        NgramStep(model), TokensSoFar(1), prompt, eos=len(vocabulary), max_lengths=[length], generator=generator,
        filters=Filters(),
    )  # fmt: skip
    return start + "".join(vocabulary[token] for token in hypotheses[0].tokens)


def run(options: Options) -> Report:
    """Compare the models by perplexity."""
    text = options.read_text("tinyshakespeare/input.txt")
    cut = len(text) * 9 // 10
    train, test = text[:cut], "".join(character for character in text[cut:] if character in text[:cut])
    characters, model, vocabulary = measure_characters(train, test)
    networks = train_networks(train, test, options)
    rows = [[f"words, {name}", value, "", seconds] for name, value, seconds in measure_words(options)]
    rows += [
        [f"characters, {n}-grams", "", f"{value:.3f}", ""]
        for n, value in zip(CHARACTER_ORDERS, characters, strict=True)
    ]
    rows += [
        [f"characters, {name} ({parameters:,} parameters)", "", f"{value:.3f}", f"{seconds:.0f}"]
        for name, (value, parameters, seconds) in networks.items()
    ]
    lines = {"n-grams": characters} | {name: [value] * len(characters) for name, (value, *_) in networks.items()}
    uniform = log(len(vocabulary)) / log(2)
    best = min(characters)
    behind = [name for name, (value, *_) in networks.items() if value > best]
    sampled = " ".join(write_text(model, vocabulary, "KING", 160).split())
    return Report(
        "Perplexity: what a longer memory is worth",
        "n-grams with interpolated modified Kneser-Ney smoothing. Words: the test part of WikiText-2, perplexity per "
        "word of a vocabulary of all training words. Characters: the last tenth of tinyshakespeare, bits per byte; a "
        f"uniform guess needs {uniform:.2f}. n-grams need one pass of counting; the networks are trained.",
        ["model", "perplexity", "bits per byte", "CPU-seconds"],
        rows,
        Chart("n", "bits per byte", CHARACTER_ORDERS, lines),
        notes=[
            f"5-grams of characters, sampled: `{sampled}`",
            f"The best n-grams of characters are {1 + int(np.argmin(characters))}-grams: longer ones are too rare.",
            *(
                [f"Behind the best n-grams ({best:.3f}) after so little training: {', '.join(behind)}."]
                if behind
                else []
            ),
        ],
    )
