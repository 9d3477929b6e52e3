"""Export a page and write the attention that it must show: FOLDER RUNTIME [MODEL LINES COUNT].

FOLDER/page is the page in float32. FOLDER/cases.json has Python's weights of the first COUNT lines of the file LINES,
and what a look document says of them. Without a MODEL: a random one of two layers.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.tasks.factories import TEXTS, make_encoder_decoder, make_tokenizers, make_translator_settings

from regard.exchange import parity
from regard.exchange.export import ExportOptions, export_model
from regard.look.alignment import make_hypotheses
from regard.look.attention import attention_name, make_groups
from regard.look.build import MAX_CELLS
from regard.look.next_tokens import find_next_tokens
from regard.look.reads import find_reads
from regard.look.record import LookRecord
from regard.look.tokens import describe_sequences
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.load import load
from regard.tasks.pipeline import Pipeline
from regard.tasks.requests import ReplayOptions
from regard.tasks.search import Beam
from regard.text.sentences import split_sentences


def main() -> None:
    """Write the page and the cases."""
    folder, runtime, *rest = sys.argv[1:]
    if rest:
        model, texts = Path(rest[0]), Path(rest[1]).read_text(encoding="utf-8").splitlines()[: int(rest[2])]
    else:
        model, texts = _make_model(Path(folder) / "model"), [*TEXTS, "x", "  A  tab\tand ▁ don't."]
        parity.TEXTS = 4
    export_model(model, "web", Path(folder) / "page", ExportOptions(dtype="float32", runtime=Path(runtime)))
    pipeline = load(model)
    cases = [_make_case(pipeline, split_sentences(text)[0][0]) for text in texts]
    (Path(folder) / "cases.json").write_text(json.dumps(cases))


def _make_model(path: Path) -> Path:
    settings = make_translator_settings(**{"encoder.layers": 2, "decoder.layers": 2, "max_length_ratio": 1.0})
    write_model(path, settings, make_tokenizers(), get_weights(make_encoder_decoder(settings)), "card")
    return path


def _make_case(pipeline: Pipeline, text: str) -> dict[str, Any]:
    run, record = pipeline.replay(text, ReplayOptions(Beam(1))), LookRecord()
    run.input.replay(record)
    assert run.generated is not None  # noqa: S101
    sequences, blobs = describe_sequences(pipeline, run), {}
    groups = make_groups(record, sequences, blobs, MAX_CELLS)
    hypotheses = make_hypotheses(run.generated, record, blobs)
    reads = find_reads(run, record, groups, hypotheses, blobs)
    return {
        "text": text,
        "output": run.output,
        "sequences": sequences,
        "next": find_next_tokens(run),
        "reads": reads and reads["heads"],
        "groups": {
            group["name"]: {
                "default_head": group["default_head"],
                "statistics": group["statistics"],
                "weights": [
                    record.weights(attention_name(group["name"], layer))[0].tolist()  # (heads, rows, columns)
                    for layer in range(group["layers"])
                ],
            }
            for group in groups
        },
    }


if __name__ == "__main__":
    main()
