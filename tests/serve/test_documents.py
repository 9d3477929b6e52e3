"""Files are read in linear time and with bounds, and their translations wait for the download."""

import time

import pytest

from regard.base.errors import RegardError
from regard.documents.registry import find_format
from regard.documents.translate import DocumentTranslation, TranslatedSentence
from regard.serve import documents
from regard.serve.documents import TranslatedFile, TranslatedFiles, read_document
from tests.serve.factories import BOUND


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.srt", "a.html"])
def test_files_are_read_in_linear_time_and_bounded(name: str) -> None:
    def read(content: str) -> bytes:
        begin = time.process_time()
        translation = DocumentTranslation(find_format(name).read(content.encode()))
        while sentences := translation.start_round():
            translation.receive([TranslatedSentence(sentence.text) for sentence in sentences])
        assert time.process_time() - begin < BOUND
        return translation.finish()[0]

    spaces = "a" + " " * 200_000 + "b"
    assert read(spaces).decode() == spaces
    marks = "> " * 50_000 + "1" * 50_000 + "b \n"
    assert read(marks).decode() == marks
    for unit in ("\n", "\r", "<b>"):
        with pytest.raises(RegardError, match="more than 1,000 lines"):
            read_document(name, unit.encode() * 200_000, max_lines=1000)
    if name != "a.html":
        with pytest.raises(RegardError, match="A line has"):
            read_document(name, spaces.encode(), max_lines=1000)


def test_new_files_replace_the_oldest_and_old_ones_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "KEPT_BYTES", 5)
    files = TranslatedFiles()
    names = [files.add(TranslatedFile(f"{number}.txt", b"AB", "text/plain"), now=float(number)) for number in range(4)]
    assert len(set(names)) == 4
    assert [files.find(name, now=4.0) is not None for name in names] == [False, False, True, True]
    large = files.add(TranslatedFile("large.txt", b"A" * 9, "text/plain"), now=5.0)
    assert files.find(large, now=5.0) is not None  # one file is always kept
    assert files.find(names[3], now=5.0) is None
    assert files.find(large, now=5.0 + documents.KEPT_SECONDS) is None
