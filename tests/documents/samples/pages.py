"""HTML, Markdown, subtitles and plain text."""

import random
from collections.abc import Callable
from html import escape

from tests.documents.samples.words import WORDS, cut, paragraph, sentence

Tag = Callable[[random.Random, str], str]


def make_text(rng: random.Random) -> bytes:
    """Return lines, some of them empty or indented."""
    lines = [rng.choice(["", "  ", "\t"]) + rng.choice([paragraph(rng), "", "---"]) for _ in range(rng.randint(1, 12))]
    return rng.choice(["\n", "\r\n"]).join([*lines, "The end."]).encode(rng.choice(["utf-8", "utf-8-sig"]))


def make_html(rng: random.Random) -> bytes:
    """Return a page with nested blocks, inline tags, code, comments, attributes and tags that are not closed."""
    blocks = [_make_block(rng, 0) for _ in range(rng.randint(1, 8))]
    head = f"<!DOCTYPE html>\n<html lang=en><head><title>{_text(rng)}</title><style>p > a {{}}</style></head>\n<body>"
    page = (head if rng.random() < 0.7 else "") + "\n".join(blocks) + rng.choice(["", "</body></html>\n"])
    return page.replace("\n", rng.choice(["\n", "\r\n"])).encode()


def _make_block(rng: random.Random, depth: int) -> str:
    name = rng.choice(["p", "h1", "li", "td", "div", "blockquote", "section", "SPAN"])
    if depth < 3 and rng.random() < 0.3:
        content = "\n".join(_make_block(rng, depth + 1) for _ in range(rng.randint(1, 3)))
    else:
        content = "".join(_inline(rng, part) for part in cut(rng, sentence(rng, has_odd=False), 5))
    other = ["<!-- a > comment -->", "<pre>a  <b>b</b></pre>", "<script>if (a < b) {}</script>", "<hr>", "5 < 6", ""]
    closing = "" if rng.random() < 0.1 else f"</{name}>"
    return f"<{name}{rng.choice(['', ' class=x', ' title=1'])}>{content}{closing}{rng.choice(other)}"


def _inline(rng: random.Random, text: str) -> str:
    text = escape(text)
    return rng.choice(
        [
            *[text] * 6,
            f"<b>{text}</b>",
            f'<a href="/?a=1&amp;b" title="The {rng.choice(WORDS)}">{text}<i> x </i></a>',
            f"<em class='y'>{text}</em>",
            f"{text}<br>",
            f"{text} <code>a &lt; b</code> ",
            f"{text}<img src=x.png alt='A {rng.choice(WORDS)}'>",
            f"<u>{text}",
            f"{text} caf&eacute;&nbsp;",
            f"<span translate=no>{text}</span>",
            f"<b>{text}<i>x</b>y</i>",
        ]
    )


def _text(rng: random.Random) -> str:
    return escape(sentence(rng))


def make_markdown(rng: random.Random) -> bytes:
    """Return a page with every kind of block."""
    blocks = [rng.choice(_BLOCKS)(rng) for _ in range(rng.randint(1, 10))]
    front = "---\ntitle: A page\n---\n\n" if rng.random() < 0.3 else ""
    end = "\n\n[ref]: /url 'A title'\n\n[^1]: A note about it.\n[^2]: Another *note*.\n"
    return (front + "\n\n".join(blocks) + end).replace("\n", rng.choice(["\n", "\n", "\r\n"])).encode()


def _words(rng: random.Random) -> str:
    """Return a sentence with inline markup between its words."""
    words = sentence(rng, has_odd=False).split()
    marks = [
        "**{}**",
        "*{}*",
        "_{}_",
        "~~{}~~",
        "`{}`",
        "[{}](/a_b)",
        "[{}][ref]",
        "![{}](a.png)",
        "<b>{}</b>",
        "***{}***",
    ]
    marks += ["{}[^1]", "<https://a.b/{}>", "{} &amp; \\*", "**{} [a](b)**"]
    return " ".join(rng.choice(marks).format(word) if rng.random() < 0.2 else word for word in words)


def _lines(rng: random.Random, first: str = "", rest: str = "") -> str:
    lines = [_words(rng) + rng.choice(["", "", "", "  ", "\\"]) for _ in range(rng.randint(0, 3))]
    return first + f"\n{rest}".join([*lines, _words(rng)])


def _table(rng: random.Random) -> str:
    count = rng.randint(1, 4)
    rows = [" | ".join(_words(rng).replace(" or ", " \\| ") for _ in range(count)) for _ in range(rng.randint(1, 4))]
    return "\n".join(f"| {row} |" for row in [rows[0], "|".join(["---"] * count), *rows[1:]])


_BLOCKS: list[Callable[[random.Random], str]] = [
    _lines,
    lambda rng: "#" * rng.randint(1, 6) + " " + _words(rng) + rng.choice(["", " ##"]),
    lambda rng: _words(rng) + "\n===",
    lambda rng: _lines(rng, "> ", "> "),
    lambda rng: _lines(rng, "> - ", rng.choice([">   ", "> ", ""])),
    lambda rng: "\n".join(_lines(rng, rng.choice(["- ", "* ", "- [ ] ", "1. "]), "    ") for _ in range(3)),
    lambda rng: _lines(rng, "1. ", "   ") + "\n   " + _lines(rng, "- ", "     "),
    _table,
    lambda rng: f"```py\n{_words(rng)}\n```",
    lambda rng: f"    {_words(rng)}",
    lambda _: "***",
    lambda rng: f"<details>\n<summary>{_text(rng)}</summary>\n\n{_words(rng)}\n\n</details>",
    lambda rng: f"<!-- {_words(rng)} -->",
]


def make_srt(rng: random.Random) -> bytes:
    """Return cues with tags, positions and speakers."""
    cues = [f"{number}\n00:00:{number:02},000 --> 00:00:{number:02},900\n{_cue(rng)}" for number in range(1, 9)]
    return ("\n\n".join(cues) + rng.choice(["", "\n"])).replace("\n", rng.choice(["\n", "\r\n"])).encode()


def make_vtt(rng: random.Random) -> bytes:
    """Return cues, notes and styles."""
    blocks = ["WEBVTT - A title\nKind: captions", "STYLE\n::cue { color: red }", "NOTE a note"]
    for number in range(1, 9):
        name = rng.choice(["", f"cue {number}\n", f"{number}\n"])
        blocks.append(f"{name}00:{number:02}.000 --> 00:{number:02}.900 align:start\n{_cue(rng).replace('&', '&amp;')}")
    return "\n\n".join(blocks).encode()


def _cue(rng: random.Random) -> str:
    text = sentence(rng, has_odd=False)
    middle = text.find(" ", len(text) // 2)
    text = text[:middle] + "\n" + text[middle + 1 :] if middle > 0 and rng.random() < 0.6 else text
    marks = ["{}", "{}", "<i>{}</i>", "{{\\an8}}{}", "<v Ann>{}", "- {}\n- And <b>you</b>?", "<c.x>{}</c> & more"]
    return rng.choice(marks).format(text)
