"""Summarize a text by its own most central sentences: no sequence-to-sequence model writes anything.

A sentence is central if it resembles many sentences that are central themselves (LexRank, Erkan and Radev 2004):
p = d / n + (1 - d) S^T p, where the rows of S are the cosine similarities of a sentence to all others, each divided by
their sum. Sentence vectors come from an encoder, or are counts of words times log(n / sentences with the word).
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.tasks.load import load_embedder
from regard.text.sentences import split_sentences

JUMP = 0.15  # d: the probability of going to any sentence
STEPS = 100  # of the power iteration: the distance to the limit is at most 2 (1 - d)^steps, below 1e-6
MIN_WORDS = 5  # shorter sentences are headings and remarks
_CODE = re.compile(r"^```.*?^```|^[|<#].*?$|^    .*?$", re.MULTILINE | re.DOTALL)


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text or a Markdown page, without code, tables, headings and repetitions."""
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", _CODE.sub("\n\n", text)))
    sentences = (sentence for part in paragraphs for sentence, _ in split_sentences(part))
    return list(dict.fromkeys(sentence for sentence in sentences if len(sentence.split()) >= MIN_WORDS))


def count_words(sentences: Sequence[str]) -> Tensor:
    """Return counts of words, weighted by how rare each word is: (sentences, words)."""
    counts = [Counter(re.findall(r"\w+", sentence.lower())) for sentence in sentences]
    frequency = Counter(word for count in counts for word in count)
    numbers = torch.tensor([[count[word] for word in frequency] for count in counts], dtype=torch.float64)
    return numbers * torch.log(len(sentences) / torch.tensor(list(frequency.values()), dtype=torch.float64))


def compute_centrality(vectors: Tensor) -> Tensor:
    """Return a probability per sentence, from their vectors (sentences, width)."""
    unit = torch.nn.functional.normalize(vectors.double(), dim=-1)
    similarity = (unit @ unit.T).clamp(min=0).fill_diagonal_(0)  # (S, S); a sentence does not vote for itself
    total = similarity.sum(dim=-1, keepdim=True)
    count = len(vectors)
    votes = torch.where(total > 0, similarity / total, 1 / count)  # a sentence that resembles none votes for all
    centrality = torch.full((count,), 1 / count, dtype=torch.float64)
    for _ in range(STEPS):
        centrality = JUMP / count + (1 - JUMP) * votes.T @ centrality
    return centrality


def summarize(path: Path, count: int = 3, model: str | Path | None = None) -> list[str]:
    """Return the most central sentences of a text or Markdown file, in the order of the text.

    Args:
        path: The file.
        count: Number of sentences.
        model: Folder of an encoder whose sentence vectors replace word counts.
    """
    sentences = list_sentences(path.read_text(encoding="utf-8"))
    if not sentences:
        raise RegardError(f"No sentence has {MIN_WORDS} words.", location=str(path), hint="Choose running text.")
    if model:
        vectors = torch.from_numpy(load_embedder(model).embed(sentences))
    else:
        vectors = count_words(sentences)
    best = compute_centrality(vectors).topk(min(count, len(sentences))).indices
    return [sentences[index] for index in sorted(best.tolist())]
