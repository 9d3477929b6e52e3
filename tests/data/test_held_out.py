"""One corpus in two parts: nothing twice, nothing lost, the same sentence never on both sides."""

from pathlib import Path

import pytest

from regard.config.sources import DocumentsConfig, LinesConfig
from regard.data.corpus import Corpus
from regard.data.example import Defects, Example
from regard.data.held_out import SplitCorpus, find_end_cut, train_validation_split


def read_examples(part: SplitCorpus) -> list[Example]:
    return [example for _, example in part.examples(Defects())]


@pytest.fixture
def pairs(tmp_path: Path) -> Corpus:
    lines = [f"sentence {n % 400}" for n in range(500)]  # the last hundred come twice
    (tmp_path / "a.en").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "a.de").write_text("".join(f"Satz {n}\n" for n in range(500)))
    return Corpus([LinesConfig(source=str(tmp_path / "a.en"), target=str(tmp_path / "a.de"))])


def test_every_pair_is_in_one_part_and_in_its_order(pairs: Corpus) -> None:
    train, held_out = (read_examples(part) for part in train_validation_split(pairs, 0.1, seed=1))
    lines = [example.location.line for example in (*train, *held_out)]
    assert sorted(lines) == list(range(1, 501))
    assert [example.location.line for example in train] == sorted(example.location.line for example in train)
    assert all(example.target == f"Satz {example.location.line - 1}" for example in held_out)
    assert 20 < len(held_out) < 90


def test_a_repeated_sentence_is_never_in_both_parts(pairs: Corpus) -> None:
    train, held_out = (read_examples(part) for part in train_validation_split(pairs, 0.1, seed=1))
    assert not {example.source for example in train} & {example.source for example in held_out}
    assert len({example.source for example in held_out}) < len(held_out)  # some came twice, together


def test_the_seed_changes_the_held_out_examples(pairs: Corpus) -> None:
    first, again, other_seed = (read_examples(train_validation_split(pairs, 0.1, seed=seed)[1]) for seed in (1, 1, 2))
    assert first == again
    assert first != other_seed


def test_of_running_text_the_end_is_held_out(tmp_path: Path) -> None:
    text = "\n".join(f"line {n}" for n in range(100))
    (tmp_path / "book.txt").write_text(text)
    corpus = Corpus([DocumentsConfig(path=str(tmp_path / "book.txt"))])
    (train,), (held_out,) = (read_examples(part) for part in train_validation_split(corpus, 0.2, seed=1))
    assert train.source + held_out.source == text
    assert held_out.source.startswith("line 8")
    assert held_out.location.line == int(held_out.source.split()[1]) + 1
    assert 0.15 < len(held_out.source) / len(text) < 0.25


def test_of_many_short_documents_whole_ones_are_held_out(tmp_path: Path) -> None:
    paragraphs = [f"An old man lives in house number {n} near the river." for n in range(500)]
    (tmp_path / "book.txt").write_text("\n\n".join([*paragraphs, "long " * 1000]))
    corpus = Corpus([DocumentsConfig(path=str(tmp_path / "book.txt"), separator="")])
    train, held_out = (
        [example.source for example in read_examples(part)] for part in train_validation_split(corpus, 0.1, seed=1)
    )
    assert all(text.endswith(" ") for text in train[:50])  # the first few are cut, between words
    assert set(train[50:-1]) | set(held_out[50:-1]) == set(paragraphs[50:])
    assert 20 < len(held_out[50:-1]) < 80
    assert 400 <= len(held_out[-1]) <= 600  # a long one is cut
    assert not set(train) & set(held_out)


def test_a_line_without_spaces_is_cut_inside() -> None:
    assert find_end_cut("x" * 100, 0.1) == 90
    assert find_end_cut("short\n" + "x" * 100, 0.1) == 95  # not after the first line


@pytest.mark.parametrize("share", [0.1, 0.05, 0.01])
@pytest.mark.parametrize("paragraphs", [1, 2, 3, 6, 50])
def test_of_long_paragraphs_no_more_than_twice_the_share_is_held_out(paragraphs: int, share: float) -> None:
    text = "\n".join(["word " * 300] * paragraphs)
    n_held_out = len(text) - find_end_cut(text, share)
    assert share * len(text) - 1 <= n_held_out <= 2 * share * len(text)
