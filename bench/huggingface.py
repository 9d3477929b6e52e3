"""Export a translator to Hugging Face and compare it with `transformers`: logits, greedy and beam outputs.

    python -m bench.huggingface MODEL --sources test.en --references test.de

Both engines get the same maximum length, and the beam of `transformers` stops by our rule (`early_stopping="never"`).
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch

from bench.real_weights import read_lines
from regard.exchange.export import export_model
from regard.tasks.load import load_translator
from regard.tasks.search import Beam

TEXTS, MAX_LENGTH, ROWS = 200, 60, 20


def main() -> None:
    import transformers

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--references", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sources, references = read_lines(arguments.sources)[:TEXTS], read_lines(arguments.references)[:TEXTS]
    translator = load_translator(arguments.model)
    with tempfile.TemporaryDirectory() as name, torch.inference_mode():
        folder, report = export_model(arguments.model, "huggingface", Path(name) / "export")
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
        model: Any = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        print(report.summary)
        rows = tokenizer(sources)["input_ids"]
        expected_rows = translator.encode_sources(sources, None)
        print(f"ids: {sum(a == b for a, b in zip(rows, expected_rows, strict=True))} of {len(rows)} rows equal")
        bos = translator.tokenizers.target.specials.bos
        difference = 0.0
        for source, reference in zip(sources, references, strict=True):
            ids, target = torch.tensor([tokenizer(source)["input_ids"]]), tokenizer(reference)["input_ids"]
            inputs = torch.tensor([[bos, *target[:-1]]])
            theirs = model(input_ids=ids, decoder_input_ids=inputs).logits
            difference = max(difference, float((theirs - translator.model(ids, inputs)).abs().max()))
        print(f"logits: largest difference {difference:.1e} on {len(sources)} pairs")
        for beams in (1, 5):
            ours = [result.text for result in translator.translate(sources, Beam(beams), max_new_tokens=MAX_LENGTH)]
            texts: list[str] = []
            for start in range(0, len(sources), ROWS):
                batch = tokenizer(sources[start : start + ROWS], padding=True, return_tensors="pt")
                output = model.generate(**batch, num_beams=beams, max_new_tokens=MAX_LENGTH)
                texts += tokenizer.batch_decode(output, skip_special_tokens=True)
            print(f"beam {beams}: {sum(a == b for a, b in zip(ours, texts, strict=True))} of {len(ours)} texts equal")


if __name__ == "__main__":
    main()
