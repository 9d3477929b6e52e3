"""The pages of docs/gallery: small, complete in themselves, and made of today's document and program."""

import runpy
from pathlib import Path

import pytest

from regard.base.blobs import decode_blob
from regard.look.document import FORMAT, Document
from regard.look.page import make_page, read_document, read_script
from tests.look.schema import check

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs/gallery"
PAGES = sorted(path.name for path in GALLERY.glob("*.html") if path.name != "index.html")


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


def test_index_and_readme_state_the_hook_of_every_page() -> None:
    refresh = runpy.run_path(str(ROOT / "scripts/refresh_gallery.py"), run_name="refresh_gallery")
    pages = refresh["read_pages"]()
    assert sorted(f"{name}.html" for name in pages) == PAGES
    index = (GALLERY / "index.html").read_text(encoding="utf-8")
    assert index == refresh["make_index"](pages), "run `python scripts/refresh_gallery.py`"
    readme = (GALLERY / "README.md").read_text(encoding="utf-8")
    assert [page["text"] for page in pages.values() if page["text"] not in readme] == []
    pictures = [GALLERY.parent / f"pictures/gallery-{name}.png" for name in pages]
    assert sum(path.stat().st_size for path in pictures) + len(index) < 150_000


def test_pages_show_what_their_hooks_promise() -> None:
    for name in ("translator", "shapes", "six"):  # the head with the largest effect changes the output
        document = read_page(name)
        ablation = document["ablation"]
        assert ablation is not None
        delta, head = min(
            (value or 0.0, f"{group}.{layer}.{head}")
            for group, table in ablation["delta"].items()
            for layer, row in enumerate(table)
            for head, value in enumerate(row)
        )
        assert delta < -1, "the output becomes less than half as probable"
        assert ablation["texts"][head] != document["output"]
    assert read_page("shapes")["output"].split()[::-1][0] == "ring"
    assert "audio" in read_page("six")["picture"]
    boot = read_page("boot")
    assert boot["output"] == "Ankle boot"
    assert boot["ablation"] is not None
    assert any(new[0]["labels"][0] != "Ankle boot" for new in boot["ablation"]["predictions"].values())
    tired, wide = read_page("pronoun"), read_page("pronoun")["against"]
    for document, noun in ((tired, "animal"), (wide, "street")):
        assert f"it/{noun} " in document["output"]
        (group,) = document["attention"]
        layer, head_number = group["default_head"]
        row = [token["text"] for token in document["sequences"]["source"]].index("it")
        weights = decode_blob(document["blobs"][group["maps"][f"{layer}.{head_number}"]])[row]
        assert document["sequences"]["source"][int(weights.argmax())]["text"] == noun
        assert weights.max() > 0.5


def read_page(name: str) -> Document:
    """Return the document of a page."""
    return read_document((GALLERY / f"{name}.html").read_text(encoding="utf-8"))


def test_pronoun_script_holds_out_the_pair_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(GALLERY / "pronouns.py"), run_name="__main__")
    parts = {name: Path(f"pronouns.{name}.conll").read_text(encoding="utf-8") for name in ("train", "valid")}
    sentences = {name: set(text.strip().split("\n\n")) for name, text in parts.items()}
    assert (len(sentences["train"]), len(sentences["valid"])) == (680, 120)
    assert not sentences["train"] & sentences["valid"]
    assert any("animal" in text and "street" in text and "it\tstreet" in text for text in sentences["valid"])
    assert not any("animal" in text and "street" in text for text in sentences["train"])


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


def test_shapes_script_writes_every_image_that_a_caption_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(GALLERY / "shapes.py"), run_name="__main__")
    header, *rows = Path("shapes.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "file\tcaption"
    assert len(rows) == 1500
    assert {path.as_posix() for path in Path("shapes").iterdir()} == {row.split("\t")[0] for row in rows}
    assert {relation for row in rows for relation in ("above", "left of") if relation in row} == {"above", "left of"}
