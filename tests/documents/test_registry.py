import pytest

from regard.base.errors import RegardError
from regard.documents.registry import FORMATS, find_format


@pytest.mark.parametrize("suffix", FORMATS)
def test_format_knows_its_suffix(suffix: str) -> None:
    assert suffix in find_format(f"a/b.C{suffix.upper()}").suffixes


@pytest.mark.parametrize("name", ["README", "news.en", "news.pt-BR", r"C:\news.de", "a.pdf/news", ".txt"])
def test_language_codes_and_no_suffix_are_text(name: str) -> None:
    assert find_format(name).suffixes == (".txt",)


@pytest.mark.parametrize("name", ["report.pdf", "table.XLSX", "news.en.zip", "a.qq", "x.123"])
def test_unknown_suffix_is_rejected_with_the_formats(name: str) -> None:
    with pytest.raises(RegardError, match=r"cannot be translated(.|\n)*The formats are \.txt"):
        find_format(name)
