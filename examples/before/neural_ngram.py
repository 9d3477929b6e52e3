"""The shallow neural language model of Bengio et al. (2001), beside n-grams that count the same characters.

    python examples/before/neural_ngram.py book.txt              # 5-grams: the next character given the last four

The vectors of the n - 1 characters before are put side by side, one hidden layer (tanh) reads them, and a softmax
gives the next character. Unlike counts, characters with similar vectors share what was learned; unlike an RNN, the
context is fixed. The last tenth of the text is the test.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.measure.likelihood import bits_per_byte

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # started as a script, Python looks in this folder only

from examples.before.ngrams import NgramModel

MIN_CHARACTERS = 1000
BATCH_SIZE = 256


class NeuralNgram(nn.Module):
    """Embedding of n - 1 tokens, side by side -> tanh -> logits of the next token."""

    def __init__(self, order: int, vocabulary: int, width: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.hidden = nn.Linear((order - 1) * width, hidden)
        self.output = nn.Linear(hidden, vocabulary)

    def forward(self, context: Tensor) -> Tensor:
        """Tokens (B, n - 1) -> logits (B, vocabulary)."""
        return self.output(self.hidden(self.embedding(context).flatten(1)).tanh())


def train_model(model: NeuralNgram, ids: Tensor, order: int, steps: int, peak: float = 3e-3) -> None:
    """Learn to predict each token of a text from the n - 1 before it; the learning rate falls to 0."""
    windows = ids.unfold(0, order, 1)  # (N, n)
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=0.01)
    generator = torch.Generator().manual_seed(1)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = peak * (1 - step / steps)
        rows = windows[torch.randint(len(windows), (BATCH_SIZE,), generator=generator)]
        loss = nn.functional.cross_entropy(model(rows[:, :-1]), rows[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def compute_nats(model: NeuralNgram, history: Tensor, ids: Tensor, order: int) -> float:
    """Return the negative log-probability of a text that follows a history."""
    windows = torch.cat((history[len(history) - order + 1 :], ids)).unfold(0, order, 1)
    parts = windows.split(1 << 14)
    losses = (nn.functional.cross_entropy(model(part[:, :-1]), part[:, -1], reduction="sum") for part in parts)
    return sum(float(loss) for loss in losses)


def measure(text: str, order: int, steps: int, width: int = 32, hidden: int = 256) -> list[tuple[str, float, float]]:
    """Return names, test bits per byte and CPU-seconds of n-grams that count, and of the network."""
    if len(text) < MIN_CHARACTERS:
        raise RegardError(f"The text has {len(text):,} characters.", hint=f"Give at least {MIN_CHARACTERS:,}.")
    vocabulary = {character: number for number, character in enumerate(sorted(set(text)))}
    ids: NDArray[np.int64] = np.array([vocabulary[character] for character in text])
    split = len(ids) * 9 // 10
    train, test, size = ids[:split], ids[split:], len(text[split:].encode())
    results = []
    for n in sorted({1, 2, order}):
        start = time.process_time()
        nats = -float(NgramModel.fit(train, n, len(vocabulary)).logprobs(test).sum())
        results.append((f"{n}-grams, counted", bits_per_byte(nats, size), time.process_time() - start))
    torch.manual_seed(1)
    start, model = time.process_time(), NeuralNgram(order, len(vocabulary), width, hidden)
    train_model(model, torch.from_numpy(train), order, steps)
    nats = compute_nats(model, torch.from_numpy(train), torch.from_numpy(test), order)
    results.append((f"{order}-grams, neural", bits_per_byte(nats, size), time.process_time() - start))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("text", type=Path, help="a text file")
    parser.add_argument("--order", type=int, default=5, help="n: a character is predicted from n - 1 before it")
    parser.add_argument("--steps", type=int, default=4000)
    arguments = parser.parse_args()
    print("model                 test bits per byte  CPU-seconds")
    text = arguments.text.read_text(encoding="utf-8")
    for name, bits, seconds in measure(text, max(2, arguments.order), arguments.steps):
        print(f"{name:21} {bits:18.3f} {seconds:12.1f}")


if __name__ == "__main__":
    main()
