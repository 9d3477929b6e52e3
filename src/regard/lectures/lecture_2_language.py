"""Numbers and controls of lecture 2 about words, tokens, language models and decoding."""

import math
from collections import Counter
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor

from regard.config.codec import preset
from regard.config.model import BagHeadConfig
from regard.config.tokenizers import BpeConfig
from regard.decode.beam import beam
from regard.decode.exhaustive import exhaustive
from regard.decode.filters import Filters
from regard.lectures.blocks import Number, Table
from regard.lectures.load import Facts
from regard.lectures.probes import Inputs, make_control
from regard.lectures.worked_numbers import Rows
from regard.models.build import build
from regard.models.cost import cost
from regard.models.decoder_only import DecoderOnly
from regard.models.heads import BagHead, LMHead
from regard.models.loss.token import class_loss
from regard.nn.masks import no_mask
from regard.text.learn import learn
from regard.text.merges import count_words, replay_merges

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
# Rows: after <END>, A, B, C, <START>. The best sequence begins with the third best token.
HARD_TABLE = (
    (1.0, 0.0, 0.0, 0.0),
    (0.3, 0.2, 0.2, 0.3),
    (0.3, 0.3, 0.2, 0.2),
    (0.97, 0.01, 0.01, 0.01),
    (0.0, 0.4, 0.35, 0.25),
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


def count_merges(text: str, steps: int) -> dict[str, Number]:
    """Return counts after some merges of BPE on a text."""
    tokenizer = learn([text], BpeConfig(vocabulary=1000))
    counts = count_words(tokenizer, [text])
    words, merged, ties = [list(word) for word in counts], 0, 0
    for merge in list(replay_merges(tokenizer, [text]))[:steps]:
        pairs = Counter[tuple[str, str]]()
        for symbols, count in zip(words, counts.values(), strict=True):
            pairs.update({pair: count * times for pair, times in Counter(pairwise(symbols)).items()})
        words, merged, ties = merge.words, merge.count, list(pairs.values()).count(merge.count)
    tokens = sum(len(symbols) * count for symbols, count in zip(words, counts.values(), strict=True))
    vocabulary = len({symbol for symbols in words for symbol in symbols})
    sizes = {"tokens": tokens, "vocabulary": vocabulary, "ratio": (len(text) + 1) / tokens}
    return {"count": merged, "ties": ties, **sizes}


def peter_piper() -> Facts:
    """Return the merges of the rhyme."""

    def compute(text: str, steps: int) -> dict[str, Number]:
        return count_merges(text, steps)

    tokenizer = learn([RHYME], BpeConfig(vocabulary=1000))
    merges = [(merge.merged, merge.count) for merge in replay_merges(tokenizer, [RHYME])]
    cases = [{"text": RHYME, "steps": steps} for steps in (0, 1, 2, 4, 20)]
    cases = [{"text": "how much wood would a woodchuck chuck", "steps": 6}, *cases]
    control = make_control("merges", "Merge after merge", {"text": RHYME, "steps": 2, "most": 20}, compute, *cases)
    numbers = {"merges": merges, "start": count_merges(RHYME, 0), "end": count_merges(RHYME, 20), "last": len(merges)}
    return Facts(numbers | {"third": count_merges(RHYME, 3), "second": count_merges(RHYME, 2)}, {"control": control})


def decoding_counts() -> Facts:
    """Return what searches find in a table in which a beam of 2 fails, and how many sequences there are."""
    table = torch.tensor(HARD_TABLE, dtype=torch.float64).log()

    def step(tokens: Tensor, _: Rows) -> Tensor:
        return table[tokens]

    def write(tokens: list[int]) -> str:
        return " ".join(("<END>", "A", "B", "C")[token] for token in tokens)

    prompt = torch.tensor([[4]])
    found = {}
    for size in (1, 2, 3):
        best = beam(step, Rows(), prompt, eos=0, max_lengths=[3], length_penalty=0, beam_size=size)[0][0]
        found[f"beam search, B = {size}"] = best
    found["exhaustive search"] = exhaustive(step, Rows(), prompt, eos=0, max_lengths=[3], length_penalty=0)[0][0]
    rows = [(name, write(list(best.tokens)), math.exp(best.score)) for name, best in found.items()]
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

    def set_inputs(temperature: float = 1, top_k: int = 6, top_p: float = 1) -> dict[str, Number]:
        return {"temperature": temperature, "top_k": top_k, "top_p": top_p}

    cases = [
        set_inputs(0),
        set_inputs(10),
        set_inputs(0.5, 3),
        set_inputs(1, 6, 0.7),
        set_inputs(2, 4, 0.6),
        set_inputs(),
    ]
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

    cases: list[Inputs] = [{"length": length} for length in (0, 9, 5, 2)]
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
