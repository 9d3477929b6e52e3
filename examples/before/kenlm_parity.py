"""Let KenLM read Regard's 5-grams from an ARPA file, and compare the log-probabilities of a test text.

    pip install kenlm
    python examples/before/kenlm_parity.py --data path/to/data

KenLM's own estimator is not in its Python package; its reader is. An ARPA file has P(w | h) of each n-gram and the
backoff weight of each context, so that equal log-probabilities mean: KenLM, from the same probabilities, computes what
`NgramModel.logprobs` does, also where it backs off.
"""

import argparse
import gzip
import sys
import tempfile
from pathlib import Path

import kenlm
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started as a script, Python looks in this folder only

from examples.before.ngrams import FloatArray, IntArray, NgramModel

RESERVED = {"<unk>": "(unknown)"}  # KenLM gives <unk> a meaning of its own; in WikiText-2 it is a word


def list_ngrams(model: NgramModel) -> list[tuple[IntArray, FloatArray]]:
    """Return the tokens (G, n) and the probabilities (G) of the n-grams of each order."""
    ngrams = list[tuple[IntArray, FloatArray]]()
    tokens = np.zeros((1, 0), np.int64)  # the empty context
    for k, order in enumerate(model.orders):
        contexts, last = order.keys // model.vocabulary, order.keys % model.vocabulary
        tokens = np.hstack([tokens[contexts], last[:, None]])
        lower = np.full(len(last), 1 / model.vocabulary) if k == 0 else ngrams[-1][1][find(model, tokens[:, 1:])]
        ngrams.append((tokens, order.shares + order.backoff[contexts] * lower))
    return ngrams


def find(model: NgramModel, tokens: IntArray) -> IntArray:
    """Return the index of n-grams that all occur: (G, n) -> (G)."""
    indices = np.zeros(len(tokens), np.int64)
    for order, column in zip(model.orders, tokens.T, strict=False):
        indices = np.searchsorted(order.keys, indices * model.vocabulary + column)
    return indices


def write_arpa(model: NgramModel, words: list[str], path: Path) -> None:
    """Write a model as an ARPA file."""
    ngrams = list_ngrams(model)
    with path.open("w", encoding="utf-8") as file:
        file.write("\\data\\\n")
        for n, (tokens, _) in enumerate(ngrams, start=1):
            file.write(f"ngram {n}={len(tokens) + 3 * (n == 1)}\n")
        for n, (tokens, probs) in enumerate(ngrams, start=1):
            file.write(f"\n\\{n}-grams:\n")
            if n == 1:
                file.write("-99\t<unk>\n-99\t<s>\n-99\t</s>\n")
            weights = np.log10(model.orders[n].backoff) if n < len(ngrams) else None
            for i, (row, prob) in enumerate(zip(tokens.tolist(), np.log10(probs).tolist(), strict=True)):
                text = " ".join(words[token] for token in row)
                file.write(f"{prob:.9f}\t{text}" + ("\n" if weights is None else f"\t{weights[i]:.9f}\n"))
        file.write("\n\\end\\\n")


def score_by_kenlm(path: Path, words: list[str]) -> FloatArray:
    """Return KenLM's log-probability of each word of a text, as one sentence without a start."""
    model = kenlm.Model(str(path))
    state, following = kenlm.State(), kenlm.State()
    model.NullContextWrite(state)
    logprobs = np.empty(len(words))
    for i, word in enumerate(words):
        logprobs[i] = model.BaseScore(state, word, following)
        state, following = following, state
    return logprobs * np.log(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with wikitext2/wiki.{train,test}.tokens(.gz)")
    parser.add_argument("--order", type=int, default=5)
    options = parser.parse_args()
    train, test = (read_words(options.data / "wikitext2" / f"wiki.{part}.tokens") for part in ("train", "test"))
    words = list(dict.fromkeys(train))
    number = {word: index for index, word in enumerate(words)}
    model = NgramModel.fit([number[word] for word in train], options.order, len(words))
    ours = model.logprobs([number[word] for word in test])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arpa"
        write_arpa(model, words, path)
        theirs = score_by_kenlm(path, test)
    print(f"{len(test):,} words of the test text, {options.order}-grams")
    print(f"perplexity: Regard {np.exp(-ours.mean()):.4f}, KenLM {np.exp(-theirs.mean()):.4f}")
    print(f"largest difference of a log-probability: {np.abs(ours - theirs).max():.2e}")


def read_words(path: Path) -> list[str]:
    """Read a text as words, with one <eos> per line."""
    if path.exists():
        text = path.read_text(encoding="utf-8")
    else:
        text = gzip.decompress(path.with_name(f"{path.name}.gz").read_bytes()).decode()
    return [RESERVED.get(word, word) for line in text.split("\n")[:-1] for word in [*line.split(), "<eos>"]]


if __name__ == "__main__":
    main()
