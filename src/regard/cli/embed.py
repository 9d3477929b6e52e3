"""`regard embed`: one vector per text, and search by similarity."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.options import (
    OUTPUT_PANEL,
    BatchTokens,
    InputFile,
    ModelArgument,
    input_file_option,
    option,
    output_file_option,
)
from regard.cli.text_input import check_paths, read_lines

EXAMPLES = """
regard embed my-encoder "A dog barks." --json
regard embed my-encoder --search corpus.txt "Where is the dog?"
regard embed my-encoder --input texts.txt --output vectors.npy
"""


def embed(
    folder: ModelArgument,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="Texts to embed; with --search: queries.")
    ] = None,
    input_file: InputFile = None,
    search: Annotated[
        Path | None,
        input_file_option("Search the lines of this file for those most similar to each text."),
    ] = None,
    output: Annotated[Path | None, output_file_option("Write the vectors to a .npy file of NumPy.", "--output")] = None,
    n_best: Annotated[int, option("With --search: number of lines per text.", min=1, panel=OUTPUT_PANEL)] = 5,
    as_json: Annotated[bool, option("Print one JSON object per text.", "--json", panel=OUTPUT_PANEL)] = False,
    batch_tokens: BatchTokens = 4096,
) -> None:
    """Embed texts with an encoder, or search a file for similar lines.

    Prints the vector of each text as numbers between spaces; with --search the similarity, line number and text of
    the most similar lines.
    """
    for option_name, is_wrong in (("--search", search is not None), ("--json", as_json)):
        if output is not None and is_wrong:
            what = f"--output writes vectors to a file; {option_name} has no effect on it."
            raise RegardError(what, fix=f"Leave out --output or {option_name}.")
    check_paths(texts, input_file, output)
    import numpy as np

    from regard.pipeline.embedder import compute_similarities
    from regard.pipeline.encoding import chunks  # imports torch: only when needed
    from regard.pipeline.load import load_embedder

    embedder = load_embedder(folder)
    corpus = [] if search is None else list(read_lines(None, search)[0])
    corpus_vectors = embedder.embed(corpus, batch_tokens) if corpus else None
    lines, _, chunk_size = read_lines(texts, input_file)
    batches = []
    for chunk in chunks(lines, chunk_size):
        vectors = embedder.embed(chunk, batch_tokens)
        if output is not None:
            batches.append(vectors)
            continue
        for text, vector in zip(chunk, vectors, strict=True):
            if search is None:
                _write_vector(text, vector.tolist(), as_json)
                continue
            similarities = [] if corpus_vectors is None else compute_similarities(vector[None], corpus_vectors)[0]
            best = [int(index) for index in np.argsort(-np.asarray(similarities), kind="stable")[:n_best]]
            matches = [{"line": i + 1, "similarity": float(similarities[i]), "text": corpus[i]} for i in best]
            _write_matches(text, matches, as_json)
        sys.stdout.flush()
    if output is not None:
        np.save(
            output.open("wb"),
            np.concatenate(batches) if batches else np.zeros((0, embedder.settings.width), np.float32),
        )


def _write_vector(text: str, vector: list[float], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"text": text, "vector": vector}, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(" ".join(f"{number:.6g}" for number in vector) + "\n")


def _write_matches(text: str, matches: list[dict[str, object]], as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps({"query": text, "matches": matches}, ensure_ascii=False) + "\n")
        return
    for match in matches:
        sys.stdout.write(f"{match['similarity']:.4f}\t{match['line']}\t{match['text']}\n")
