"""The lectures' examples as documents of the page."""

import numpy as np
import pytest

from regard.base.blobs import decode_blob
from regard.lectures import worked_pages
from regard.lectures.worked_numbers import RAW_SCORES
from regard.look.document import Document
from tests.look.schema import check

Weights = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def read_map(document: Document, group: int, head: int) -> Weights:
    return decode_blob(document["blobs"][document["attention"][group]["maps"][f"0.{head}"]])


@pytest.mark.parametrize("name", worked_pages.PAGES)
def test_every_page_is_a_document(name: str) -> None:
    document = worked_pages.PAGES[name]()
    check(document, Document)
    for group in document["attention"]:
        for head in range(group["heads"]):
            assert read_map(document, document["attention"].index(group), head).sum(axis=1) == pytest.approx(
                1, abs=0.02
            )


def test_thinking_machines() -> None:
    document = worked_pages.show_attention()
    assert np.round(read_map(document, 0, 0), 2).tolist() == [
        [pytest.approx(0.88, abs=0.005), pytest.approx(0.12, abs=0.005)]
    ]
    assert read_map(document, 0, 1).tolist() == [[1.0, 0.0]]


def test_the_masked_table() -> None:
    document = worked_pages.show_mask()
    exponentials = np.exp(np.array(RAW_SCORES))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    masked = np.tril(exponentials) / np.tril(exponentials).sum(axis=1, keepdims=True)
    assert np.abs(read_map(document, 0, 0) - expected).max() <= 1 / 255
    assert np.abs(read_map(document, 1, 0) - masked).max() <= 1 / 255
    assert not np.triu(read_map(document, 1, 0), k=1).any()
    assert document["masks"][1]["terms"] == [{"kind": "causal"}]


def test_hard_and_soft_lookup() -> None:
    document = worked_pages.show_lookup()
    soft, hard, mean = (read_map(document, 0, head) for head in range(3))
    assert hard.argmax(axis=1).tolist() == soft.argmax(axis=1).tolist() == [4, 6, 9]
    assert hard.max() == 1.0
    assert 0.5 < soft.max() < 0.9
    assert np.abs(mean - 1 / 11).max() < 0.005
    assert hard[2, 9] == hard[2, 10] == pytest.approx(0.5, abs=0.005), "a key that is there twice"


def test_low_lower_newest_widest() -> None:
    merges = worked_pages.show_merges()["merges"]
    assert merges is not None
    assert dict(zip(merges["words"], merges["counts"], strict=True)) == {
        "low▁": 5, "lower▁": 2, "newest▁": 6, "widest▁": 3,
    }  # fmt: skip
    assert merges["start"][0] == ["l", "o", "w", "▁"]
    assert [(step["left"] + step["right"], step["count"]) for step in merges["steps"][:4]] == [
        ("es", 9), ("t▁", 9), ("est▁", 9), ("lo", 7),
    ]  # fmt: skip
    assert merges["steps"][0]["words"][2] == ["n", "e", "w", "es", "t", "▁"]
    assert [len(word) for word in merges["steps"][-1]["words"]] == [1, 1, 1, 1]


def test_positions_of_ten_words() -> None:
    (positions,) = worked_pages.show_positions()["positions"]
    assert (positions["kind"], positions["length"], positions["width"]) == ("sinusoidal", 10, 64)
