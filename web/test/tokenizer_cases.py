"""Write tokenizers of every kind with Python's ids and texts, to compare run/tokenizer.ts with: FOLDER."""

import gzip
import json
import sys
from importlib.resources import files
from pathlib import Path

from regard.config.tokenizers import (
    AnyTokenizerConfig,
    BpeConfig,
    ByteBpeConfig,
    ByteLevelConfig,
    CharacterLevelConfig,
    NormalizeConfig,
    SpecialsConfig,
    UnigramConfig,
    WordLevelConfig,
)
from regard.look.tokens import describe_tokens
from regard.text.learn import learn

ODD = [
    *(
        "",
        " ",
        "  ",
        "\t",
        "a",
        " a",
        "a ",
        "  two  spaces  ",
        "tab\tand\nbreak\r\n",
        "don't we'll I'M",
        "<pad> <s></s>",
    ),
    *(
        "<unk>",
        "ΑΣ ΟΔΟΣ İstanbul ẞ",
        "e\u0301te\u0301 ﬁn Å",
        "日本語のテキスト。",
        "👩‍👩‍👧 🇩🇪",
        "\u00a0x\u2003y\u3000z",
        "\x85\ufeff|",
    ),
    *(
        "▁▁mark▁",
        "<term>one<term> <term>",
        "<terminal>",
        "12345 ½ ²",
        "العربية हिन्दी",
        "a" * 300,
        "\u0000\u0007",
        "…—“”",
    ),
]


def main() -> None:
    """Write one case per kind of tokenizer."""
    content = gzip.decompress((files("regard") / "assets/demo/train.tsv.gz").read_bytes()).decode()
    pairs = [line.split("\t") for line in content.splitlines()]
    texts = [text for pair in pairs for text in pair[:2]][:4000]
    lines = [*ODD, *texts[:: len(texts) // 1000]]
    specials = SpecialsConfig(languages=("de",), extra=("<term>", "<terminal>"))
    folded = NormalizeConfig(form="nfkc", lowercase=True, strip_accents=True)
    kinds: list[AnyTokenizerConfig] = []
    for normalize in (NormalizeConfig(), folded):
        shared = {"specials": specials, "normalize": normalize}
        kinds += [
            ByteBpeConfig(vocabulary=900, **shared),
            ByteLevelConfig(**shared),
            BpeConfig(vocabulary=900, **shared),
            UnigramConfig(vocabulary=900, **shared),
            UnigramConfig(vocabulary=900, byte_fallback=True, **shared),
            CharacterLevelConfig(**shared),
            WordLevelConfig(vocabulary=600, **shared),
        ]
    cases = []
    for kind in kinds:
        tokenizer = learn(texts, kind)
        ids = tokenizer.encode_ids(lines)
        odd_ids = [list(row) for row in (range(n, min(n + 7, tokenizer.size)) for n in range(0, tokenizer.size, 7))]
        cases.append({
            "kind": kind.kind,
            "file": json.loads(tokenizer.content),
            "control": sorted(tokenizer.specials.control),
            "bos": tokenizer.specials.bos,
            "eos": tokenizer.specials.eos,
            "unk": tokenizer.specials.unk,
            "size": tokenizer.size,
            "ids": ids,
            "texts": [tokenizer.decode(row) for row in ids],
            "odd_ids": odd_ids,
            "odd_texts": [tokenizer.decode(row) for row in odd_ids],
            "tokens": [describe_tokens(tokenizer, row) for row in [*ids[: len(ODD) + 50], *odd_ids]],
            "blank": [not tokenizer.normalize(line).strip() for line in lines],
        })  # fmt: skip
    Path(sys.argv[1], "cases.json").write_text(json.dumps({"lines": lines, "cases": cases}))


if __name__ == "__main__":
    main()
