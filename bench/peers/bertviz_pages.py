"""Write the same attention as a document of Regard and as pages of BertViz 1.4.1, for web/bench/bertviz.mjs.

    BERTVIZ_PYTHON -m bench.peers.bertviz_pages FOLDER --tokens 256 --layers 12 --heads 12

Both hold the complete maps of all heads.
"""

import argparse
from pathlib import Path

import torch
from tests.look.synthetic import make_document

from regard.base.blobs import decode_blob
from regard.look.document import Document, to_json


def read_attention(document: Document) -> list[torch.Tensor]:
    """Return the weights of the decoder as BertViz expects them: per layer (1, heads, tokens, tokens)."""
    (group,) = document["attention"]
    return [
        torch.stack(
            [
                torch.from_numpy(decode_blob(document["blobs"][group["maps"][f"{layer}.{head}"]]))
                for head in range(group["heads"])
            ]
        )[None]
        for layer in range(group["layers"])
    ]


def main() -> None:
    """Write regard.json, head_view.html and model_view.html."""
    from bertviz import head_view, model_view  # type: ignore[import-not-found]  # in its own environment

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name in ("tokens", "layers", "heads"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    document = make_document(tokens=options.tokens, layers=options.layers, heads=options.heads)
    attention = read_attention(document)
    tokens = [token["text"] for token in document["sequences"]["target"]][: attention[0].size(2)]
    (options.folder / "regard.json").write_text(to_json(document), encoding="utf-8")
    for view in (head_view, model_view):
        page = view(attention, tokens, html_action="return").data
        (options.folder / f"{view.__name__}.html").write_text(f"<!doctype html>{page}", encoding="utf-8")


if __name__ == "__main__":
    main()
