"""The structure of files stays: only their text is translated."""

import asyncio

import pytest

from regard.serve.documents import translate_document

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
