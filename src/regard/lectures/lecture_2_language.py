"""Numbers and controls of lecture 2 about words, tokens, language models and decoding."""

import math
from collections import Counter
from typing import cast

import torch

from regard.config.codec import preset
from regard.config.model import BagHeadConfig
from regard.decode.filters import Filters
from regard.lectures.blocks import Number, Table
from regard.lectures.controls import list_inputs, make_control
from regard.lectures.load import Facts
from regard.lectures.merges import count_merges, segment
from regard.lectures.searches import WordTable, search_all, search_beam
from regard.models.build import build
from regard.models.cost import cost
from regard.models.decoder_only import DecoderOnly
from regard.models.heads import BagHead, LMHead
from regard.models.loss.token import class_loss
from regard.nn.masks import no_mask

RHYME = "Peter Piper picked a peck of pickled peppers"
SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date:
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
But thy eternal summer shall not fade
Nor lose possession of that fair thou owest;
"""
NEXT_WORDS = {"the": 0.4, "a": 0.25, "my": 0.15, "his": 0.1, "an": 0.06, "every": 0.04}
HARD = WordTable(  # the best sequence begins with the third best token
    ("<END>", "A", "B", "C", "<START>"),
    (
        (1.0, 0.0, 0.0, 0.0, 0.0),
        (0.299, 0.2, 0.2, 0.301, 0.0),
        (0.3, 0.3, 0.2, 0.2, 0.0),
        (0.97, 0.01, 0.01, 0.01, 0.0),
        (0.0, 0.4, 0.35, 0.25, 0.0),
    ),
)


def word2vec_window() -> Facts:
    """Return how many neighbors each word has in a window."""
    count = len(RHYME.split())

    def compute(window: int, center: int) -> dict[str, Number]:
        head = BagHead(window // 2, LMHead(torch.nn.Linear(count, 1), None))
        neighbors = head.average(torch.eye(count)[None], None)[0] > 0  # (words, words)
        return {"context": int(neighbors[center].sum()), "pairs": int(neighbors.sum())}

    settings = cast("BagHeadConfig", preset("word2vec").head)
    cases = [{"window": window, "center": center} for window, center in ((3, 0), (11, 3), (5, 7), (5, 3))]
    params = {"words": RHYME.split(), "window": 5}
    control = make_control("window", "The window slides over a sentence", params, compute, *cases)
    numbers = {"five": compute(5, 3), "ten": compute(11, 3), "side": settings.window, "all": 2 * settings.window + 1}
    return Facts(numbers, {"control": control})


def peter_piper() -> Facts:
    """Return the merges of the rhyme."""
    merges = [(step.merged, step.count) for step in segment(RHYME)[1:]]
    cases = [{"text": RHYME, "steps": steps} for steps in (0, 1, 2, 4, 20)]
    cases = [{"text": "how much wood would a woodchuck chuck", "steps": 6}, *cases]
    params = {"text": RHYME, "steps": 2, "most": 20}
    control = make_control("merges", "Merge after merge", params, count_merges, *cases)
    counts = {name: count_merges(RHYME, n) for name, n in (("start", 0), ("second", 2), ("third", 3), ("end", 20))}
    return Facts({**counts, "merges": merges, "last": len(merges)}, {"control": control})


def decoding_counts() -> Facts:
    """Return what searches find in a table in which a beam of 2 fails, and how many sequences there are."""
    found = {f"beam search, B = {size}": search_beam(HARD, size)[0] for size in (1, 2, 3)}
    found["exhaustive search"] = search_all(HARD)
    rows = [(name, HARD.write(best.tokens), math.exp(best.score)) for name, best in found.items()]
    words, length, size = 50_000, 20, 4
    counts = [
        ("greedy search, K N", f"{words * length:,}"),
        ("beam search, B = 4, B K N", f"{size * words * length:,}"),
        ("exhaustive search, K^N", f"1 followed by about {length * math.log10(words):.0f} zeros"),
    ]
    blocks = {
        "found": Table(title="A table of 4 tokens", columns=("search", "finds", "probability"), rows=rows, digits=3),
        "counts": Table(title="Scores to compute for K = 50,000 and N = 20", columns=("search", "scores"), rows=counts),
    }
    return Facts({"found": [row[2] for row in rows], "zeros": length * math.log10(words)}, blocks)


def sampling() -> Facts:
    """Return a distribution under temperature, top-k and top-p."""
    logprobs = torch.tensor([list(NEXT_WORDS.values())]).log()

    def compute(temperature: float, top_k: int, top_p: float) -> dict[str, Number]:
        filters = Filters(temperature=temperature, top_k=top_k, top_p=top_p)
        row = filters.probabilities(logprobs)[0]
        entropy = float(torch.special.entr(row.double()).sum()) / math.log(2)
        return {f"p_{i}": float(value) for i, value in enumerate(row)} | {
            "kept": int((row > 0).sum()),
            "entropy": entropy,
        }

    settings = ((0, 6, 1), (10, 6, 1), (0.5, 3, 1), (1, 6, 0.7), (2, 4, 0.6), (1, 6, 1))
    cases = list_inputs("temperature top_k top_p", *settings)
    params = {"labels": list(NEXT_WORDS), "logprobs": logprobs[0].tolist()}
    control = make_control("sampling", "The next word, with three sliders", params, compute, *cases)
    hot, cold, half = compute(100, 6, 1), compute(0.01, 6, 1), compute(0.5, 6, 1)
    return Facts({"hot": hot, "cold": cold, "half": half, "top_p": compute(1, 6, 0.7)}, {"control": control})


def n_grams() -> Facts:
    """Return how well the last L characters of a text predict the next one, on the same text."""

    def compute(length: int) -> dict[str, float]:
        counts = Counter(SONNET[i - length : i + 1] for i in range(length, len(SONNET)))
        contexts, followers = Counter[str](), Counter[str]()
        for gram, count in counts.items():
            contexts[gram[:-1]] += count
            followers[gram[:-1]] += 1
        places = len(SONNET) - length
        bits = -sum(count * math.log2(count / contexts[gram[:-1]]) for gram, count in counts.items()) / places
        return {"bits": bits, "sure": sum(contexts[text] for text, kinds in followers.items() if kinds == 1) / places}

    cases = list_inputs("length", (0,), (9,), (5,), (2,))
    control = make_control("ngram", "A sonnet by its last L characters", {"text": SONNET, "most": 9}, compute, *cases)
    return Facts({f"l{length}": compute(length) for length in (0, 1, 2, 5, 9)}, {"control": control})


@torch.inference_mode()
def all_at_once() -> Facts:
    """Return the loss of every position in one pass, and token by token."""
    words = ["<s>", *["to", "be", "or", "not", "to", "be"], "</s>"]
    tokens = torch.tensor([[sorted(set(words)).index(word) for word in words]])
    settings = {"tokens.vocabulary": len(set(words)), "d_model": 32, "decoder.layers": 2, "decoder.attention.heads": 2}
    model: DecoderOnly = build(preset("lm-small", settings), seed=1).eval()
    inputs, labels = tokens[:, :-1], tokens[0, 1:]
    logits = model(inputs)[0]  # (T, vocabulary)
    steps = torch.stack([model(inputs[:, : n + 1])[0, -1] for n in range(len(labels))])
    losses = -logits.log_softmax(dim=-1).gather(1, labels[:, None])[:, 0]
    model.mask = no_mask()
    cheating = float((model(inputs)[0] - logits).abs()[:-1].max())
    total = float(class_loss(logits, labels).total)
    rows: list[tuple[str | Number, ...]] = [
        (" ".join(words[: n + 1]), words[n + 1], math.exp(-loss), loss) for n, loss in enumerate(losses.tolist())
    ]
    rows.append(("sum", "", "", total))
    title = "One pass of a new model over the sentence"
    table = Table(title=title, columns=("X, read so far", "Y", "p(Y)", "-log p(Y)"), rows=rows, digits=3)
    gpt2 = cost(preset("gpt2"), batch_size=1, target=1024)
    numbers = {"difference": float((logits - steps).abs().max()), "cheating": cheating, "total": total}
    ratio = gpt2.decoding_uncached.total() / gpt2.forward.total()
    return Facts(
        numbers | {"ratio": ratio, "labels": len(labels), "uniform": math.log(len(set(words)))}, {"table": table}
    )
