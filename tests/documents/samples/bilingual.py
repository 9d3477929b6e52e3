"""XLIFF 1.2 and 2.0, TMX and gettext files."""

import random
from xml.sax.saxutils import escape

from tests.documents.samples.words import cut, paragraph, sentence

_STATES = ("", ' state="new"', ' state="translated"', ' state="final"')


def make_xliff(rng: random.Random) -> bytes:
    """Return an XLIFF file of one of the two versions."""
    return (_make_xliff_1 if rng.random() < 0.5 else _make_xliff_2)(rng)


def _make_xliff_1(rng: random.Random) -> bytes:
    units = []
    for number in range(rng.randint(1, 15)):
        source = _inline(rng, ("g", "x", "bpt", "bx", "ph", "mrk"))
        target, attributes = "", ""
        kind = rng.random()
        if kind < 0.2:
            target = f"\n        <target{rng.choice(_STATES)}>{escape(sentence(rng))}</target>"
        elif kind < 0.3:
            target = '<target state="needs-translation"/>'
        elif kind < 0.4:
            attributes = ' translate="no"'
        elif kind < 0.5:
            parts = [f'<mrk mtype="seg" mid="{n}">{escape(sentence(rng))}</mrk>' for n in range(rng.randint(1, 3))]
            target = f"<seg-source>{' '.join(parts)}</seg-source>"
        units.append(
            f'      <trans-unit id="{number}"{attributes}>\n        <source>{source}</source>{target}\n'
            f"        <note>{escape(sentence(rng))}</note>\n      </trans-unit>\n"
        )
    prefix = rng.choice(["", "x:"])
    content = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!-- a comment -->\n<xliff version="1.2" '
        'xmlns="urn:oasis:names:tc:xliff:document:1.2">\n  <file original="a" datatype="plaintext" '
        f'source-language="en" target-language="de">\n    <body>\n{"".join(units)}    </body>\n  </file>\n</xliff>\n'
    )
    return _rename(content, prefix).encode(rng.choice(["utf-8", "utf-8-sig"]))


def _rename(content: str, prefix: str) -> str:
    """Give all elements a prefix."""
    if not prefix:
        return content
    import re

    content = re.sub(r"(</?)(?=[a-z])", rf"\1{prefix}", content)
    return content.replace(" xmlns=", f" xmlns:{prefix[:-1]}=")


def _make_xliff_2(rng: random.Random) -> bytes:
    units = []
    for number in range(rng.randint(1, 15)):
        source = _inline(rng, ("pc", "ph", "sc"))
        target = rng.choice(["", "", "<target/>", f"<target>{escape(sentence(rng))}</target>"])
        state = rng.choice(["", ' state="initial"', ' state="translated"'])
        locked = ' translate="no"' if rng.random() < 0.1 else ""
        units.append(
            f'    <unit id="u{number}"{locked}>\n      <segment{state}>\n        <source>{source}</source>{target}\n'
            "      </segment>\n      <ignorable><source> </source></ignorable>\n    </unit>\n"
        )
    content = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" '
        f'srcLang="en" trgLang="de">\n  <file id="f">\n{"".join(units)}  </file>\n</xliff>\n'
    )
    return content.encode()


def make_tmx(rng: random.Random) -> bytes:
    """Return a translation memory with one complete unit and others that lack a target."""
    units = []
    for _ in range(rng.randint(1, 15)):
        target = rng.choice(["", '\n      <tuv xml:lang="de"><seg/></tuv>', '<tuv xml:lang="DE-de"><seg></seg></tuv>'])
        units.append(
            '    <tu>\n      <prop type="x">1</prop>\n      <tuv xml:lang="en-GB">'
            f"<seg>{_inline(rng, ('bpt1', 'ph', 'hi'))}</seg></tuv>{target}\n    </tu>\n"
        )
    content = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4">\n  <header '
        'srclang="en" segtype="sentence" adminlang="en" datatype="xml" o-tmf="x" creationtool="x" '
        'creationtoolversion="1"/>\n  <body>\n    <tu><tuv xml:lang="en"><seg>Yes</seg></tuv><tuv xml:lang="de-DE">'
        f"<seg>Ja</seg></tuv></tu>\n{''.join(units)}  </body>\n</tmx>\n"
    )
    if rng.random() < 0.1:
        return content.replace("UTF-8", "UTF-16").encode("utf-16")
    return content.encode()


def _inline(rng: random.Random, names: tuple[str, ...]) -> str:
    """Return a text with inline elements; pairs may contain others."""
    output = []
    for number, part in enumerate(cut(rng, paragraph(rng), 5)):
        text, name = escape(part), rng.choice(names)
        number = number + 1
        if rng.random() < 0.4:
            text = {
                "g": f'<g id="{number}">{text}<x id="{number}1"/></g>',
                "x": f'<x id="{number}"/>{text}',
                "bpt": f'<bpt id="{number}">&lt;b></bpt>{text}<ept id="{number}">&lt;/b></ept>',
                "bpt1": f'<bpt i="{number}">&lt;b></bpt>{text}<ept i="{number}">&lt;/b></ept>',
                "bx": f'<bx id="{number}1" rid="{number}"/>{text}<ex id="{number}2" rid="{number}"/>',
                "ph": f'<ph id="{number}">&lt;br/></ph>{text}' if "pc" not in names else f'{text}<ph id="{number}"/>',
                "mrk": f'<mrk mtype="protected" translate="no">{text}</mrk>',
                "pc": f'<pc id="{number}">{text}</pc>',
                "sc": f'<sc id="{number}"/>{text}<ec startRef="{number}"/>',
                "hi": f"<hi>{text}</hi>",
            }[name]
        output.append(text)
    return "".join(output)


def make_po(rng: random.Random) -> bytes:
    """Return a catalog with empty, fuzzy, translated, plural and obsolete entries."""
    entries = [
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
        '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n'
    ]
    for number in range(rng.randint(1, 20)):
        message, kind = f"{sentence(rng)} {number}", rng.random()
        entry = f"# a note\n#: src/a.c:{number}\n"
        if kind < 0.2:
            entry += f'#, fuzzy, c-format\n#| msgid "old"\nmsgid {_quote(rng, message)}\nmsgstr "alt"\n'
        elif kind < 0.4:
            entry += f'msgid "{number} file"\nmsgid_plural "%d {_escape(message)}"\nmsgstr[0] ""\nmsgstr[1] ""\n'
        elif kind < 0.6:
            entry += f'msgctxt "menu"\nmsgid {_quote(rng, message)}\nmsgstr {_quote(rng, sentence(rng))}\n'
        elif kind < 0.7:
            entry = (
                f"#~ msgid {_quote(rng, message, lines=False)}\n#~ msgstr {_quote(rng, sentence(rng), lines=False)}\n"
            )
        else:
            newline = "\n" if rng.random() < 0.3 else ""
            entry += f'msgid {_quote(rng, message + newline)}\nmsgstr ""\n'
        entries.append(entry)
    return "\n".join(entries).replace("\n", rng.choice(["\n", "\n", "\r\n"])).encode()


def _quote(rng: random.Random, text: str, *, lines: bool = True) -> str:
    parts = cut(rng, text, 3) if lines and rng.random() < 0.4 else [text]
    return "\n".join([*(['""'] if len(parts) > 1 else []), *(f'"{_escape(part)}"' for part in parts)])


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
