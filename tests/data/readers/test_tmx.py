from pathlib import Path

import pytest

from regard.config.sources import TmxConfig
from tests.data.readers.formats import TMX_HEAD, read_all, read_until_error

BOMB = """<?xml version="1.0"?>
<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>
<tmx version="1.4"><body><tu><tuv xml:lang="en"><seg>&b;</seg></tuv></tu></body></tmx>
"""


def write_tmx(tmp_path: Path, *units: str) -> str:
    path = tmp_path / "a.tmx"
    path.write_text(TMX_HEAD + "".join(f"<tu>{unit}</tu>\n" for unit in units) + "</body></tmx>\n")
    return str(path)


def make_tuv(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{text}</seg></tuv>'


@pytest.mark.parametrize(
    ("languages", "candidates", "pair"),
    [
        (("en", "de"), ("EN-GB", "de-DE"), ("0", "1")),
        (("de", "en"), ("en", "de"), ("1", "0")),
        (("en-gb", "de"), ("en-US", "EN_GB", "de"), ("1", "2")),
        (("en-GB", "de-AT"), ("en", "de"), ("0", "1")),
        (("en", "de"), ("en-US", "en", "de"), ("1", "2")),
        (("en-GB", "en-US"), ("en-US", "en"), ("1", "0")),
    ],
)
def test_languages_are_found_whatever_case_and_region(
    languages: tuple[str, str], candidates: tuple[str, ...], pair: tuple[str, str], tmp_path: Path
) -> None:
    path = write_tmx(tmp_path, "".join(make_tuv(language, str(index)) for index, language in enumerate(candidates)))
    (example,), _ = read_all(TmxConfig(path=path, languages=languages))
    assert (example.source, example.target) == pair
    assert example.languages == languages


@pytest.mark.parametrize(("languages", "missing"), [(("en", "fr"), "fr"), (("en-GB", "en-US"), "en-US")])
def test_units_without_a_language_are_left_out_and_counted(
    languages: tuple[str, str], missing: str, tmp_path: Path
) -> None:
    path = write_tmx(tmp_path, make_tuv("en", "a") + make_tuv("de", "b"))
    examples, defects = read_all(TmxConfig(path=path, languages=languages))
    assert examples == []
    assert str(defects) == f"unit without {missing} left out: 1, first at {path}:4"


def test_a_language_twice_is_counted(tmp_path: Path) -> None:
    path = write_tmx(tmp_path, make_tuv("en", "a") + make_tuv("en", "b") + make_tuv("de", "c"))
    (example,), defects = read_all(TmxConfig(path=path, languages=("en", "de")))
    assert (example.source, example.target) == ("a", "c")
    assert str(defects) == f"language twice in a unit, first segment read: 1, first at {path}:4"


def test_formatting_is_left_out_and_highlighted_text_kept(tmp_path: Path) -> None:
    text = 'Press <bpt i="1">&lt;b></bpt><hi>O<hi>K</hi></hi><ept i="1">&lt;/b></ept> &amp; <ph>x<sub>y</sub></ph>go'
    (example,), defects = read_all(TmxConfig(path=write_tmx(tmp_path, make_tuv("en", text)), languages=("en",)))
    assert (example.source, example.target) == ("Press OK & go", None)
    assert defects.counts["formatting code inside a segment left out"] == 3


def test_old_files_name_languages_without_a_prefix(tmp_path: Path) -> None:
    path = write_tmx(tmp_path, '<tuv lang="EN"><seg>a</seg></tuv><tuv lang="DE"><seg>b</seg></tuv>')
    assert read_all(TmxConfig(path=path, languages=("en", "de")))[0][0].target == "b"


def test_utf16_is_read_and_its_bytes_are_not_taken_for_carriage_returns(tmp_path: Path) -> None:
    text = TMX_HEAD.replace("UTF-8", "UTF-16") + f"<tu>{make_tuv('cs', 'čaj')}</tu></body></tmx>"  # č has the byte 0x0d
    path = tmp_path / "a.tmx"
    path.write_bytes(text.encode("utf-16"))
    (example,), defects = read_all(TmxConfig(path=str(path), languages=("cs",)))
    assert example.source == "čaj"
    assert not defects.counts


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (BOMB, "defines an entity", 2),
        (BOMB.replace("<!ENTITY a", "<!ENTITY % a"), "defines an entity", 2),
        (BOMB.replace('"aaaaaaaaaa"', 'SYSTEM "file:///etc/passwd"'), "defines an entity", 2),
        ('<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx><body><tu><seg>a&nbsp;b</seg></tu></body></tmx>', "'&nbsp;' is", 2),
        ("<tmx><body>\n<tu><seg>a&nbsp;b</seg></tu></body></tmx>", "Not well-formed", 2),
        ("<tmx><body>\n<tu></body></tmx>", "Not well-formed", 2),
        ("<tmx><body>\n", "Not well-formed", 2),
        ("<html>\n</html>", "root element is <html>", 1),
    ],
)
def test_dangerous_and_broken_files_are_refused(content: str, message: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "a.tmx"
    path.write_text(content)
    rows_read, error = read_until_error(TmxConfig(path=str(path), languages=("en",)))
    assert rows_read == []
    assert message in error.message
    assert error.location == f"{path}:{line}"


def test_a_document_type_alone_is_fine(tmp_path: Path) -> None:
    path = Path(write_tmx(tmp_path, make_tuv("en", "a")))
    path.write_text(path.read_text().replace("<tmx", '<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx', 1))
    assert len(read_all(TmxConfig(path=str(path), languages=("en",)))[0]) == 1


def test_missing_languages_setting_lists_the_languages_of_the_file(tmp_path: Path) -> None:
    _, error = read_until_error(TmxConfig(path=write_tmx(tmp_path, make_tuv("en", "a") + make_tuv("de", "b"))))
    assert 'the first unit has "en", "de"' in (error.hint or "")


@pytest.mark.parametrize("encoding", ["GB2312", "Shift_JIS", "no-such-encoding"])
def test_an_unsupported_encoding_is_reported(encoding: str, tmp_path: Path) -> None:
    path = Path(write_tmx(tmp_path, make_tuv("en", "a")))
    path.write_text(path.read_text().replace("UTF-8", encoding))
    _, error = read_until_error(TmxConfig(path=str(path), languages=("en",)))
    assert "encoding" in error.message
    assert str(path) in str(error.location)
