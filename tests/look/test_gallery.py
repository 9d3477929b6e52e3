"""The pages of docs/gallery: small, complete in themselves, and made of today's document and program."""

from pathlib import Path

import pytest

from regard.look.document import FORMAT, Document
from regard.look.page import make_page, read_document, read_script
from tests.look.schema import check

GALLERY = Path(__file__).parents[2] / "docs/gallery"
PAGES = sorted(path.name for path in GALLERY.glob("*.html"))


def test_there_are_texts_an_image_and_an_audio_clip() -> None:
    documents = [read_document((GALLERY / name).read_text(encoding="utf-8")) for name in PAGES]
    assert {document["model"]["family"] for document in documents} == {
        "encoder_decoder",
        "decoder_only",
        "encoder_only",
    }
    assert {document["picture"]["kind"] for document in documents if "picture" in document} == {"image", "spectrogram"}
    index = (GALLERY / "README.md").read_text(encoding="utf-8")
    assert all(f"({name})" in index for name in PAGES)


def test_readme_quotes_the_page_that_its_picture_shows() -> None:
    document = read_document((GALLERY / "translator.html").read_text(encoding="utf-8"))
    readme = " ".join((GALLERY.parents[1] / "README.md").read_text(encoding="utf-8").split())
    assert f'translates "{document["text"]}" into "{document["output"]}"' in readme


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_small_file_of_today(name: str) -> None:
    text = (GALLERY / name).read_text(encoding="utf-8")
    assert len(text.encode()) <= 1_000_000
    document = read_document(text)
    assert document["format"] == FORMAT
    assert not document["live"]
    check(document, Document)
    assert text == make_page(document), "run `python scripts/refresh_gallery.py`"
    assert "default-src 'none'" in text  # and so no request leaves the page
    assert "connect-src 'none'" in text
    assert "src=" not in text.replace(read_script(), "")
