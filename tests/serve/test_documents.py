"""The structure of files stays: only their text is translated."""

import asyncio
import time

import pytest

from regard.base.errors import RegardError
from regard.serve.documents import translate_document
from tests.serve.factories import BOUND

VTT = """WEBVTT - a film

STYLE
::cue {
  color: white;
}

NOTE a remark
over two lines

intro
00:01.000 --> 00:02.000
[[Good morning.]]
[[NOTE that he left.]]

00:03.000 --> 00:04.000
[[42]]
"""
SRT = """1
00:00:01,000 --> 00:00:02,000
[[NOTE that he left.]]
[[7]]

2
00:00:03,000 --> 00:00:04,000
[[Good morning.]]
"""
MARKDOWN = """# [[Title]]

- [[first]]
```python
print("hello")
~~~
```
[[after]]
~~~~
```
code
~~~~
1. [[last]]
"""


@pytest.mark.parametrize(("name", "marked"), [("a.vtt", VTT), ("a.srt", SRT), ("a.md", MARKDOWN), ("a.txt", "[[a]]\n")])
def test_only_text_is_translated(name: str, marked: str) -> None:
    """The texts in brackets are those that must be translated."""

    async def translate(texts: list[str]) -> list[str]:
        return [f"[[{text}]]" for text in texts]

    content = marked.replace("[[", "").replace("]]", "").encode()
    result = asyncio.run(translate_document(name, content, translate, max_lines=1000))
    assert result.content.decode() == marked


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.srt", "a.html"])
def test_files_are_read_in_linear_time_and_bounded(name: str) -> None:
    async def translate(texts: list[str]) -> list[str]:
        return [text.upper() for text in texts]

    def read(content: str) -> bytes:
        begin = time.process_time()
        file = asyncio.run(translate_document(name, content.encode(), translate, max_lines=1000))
        assert time.process_time() - begin < BOUND
        return file.content

    spaces = "a" + " " * 200_000 + "b"
    assert read(spaces).decode() == spaces.upper()
    assert read("> " * 50_000 + "1" * 50_000 + "b \n").endswith(b"B \n")
    for unit in ("\n", "\r", "\u2028") if name != "a.html" else ("<b>",):
        with pytest.raises(RegardError, match="more than 1,000 lines"):
            read(unit * 200_000)
