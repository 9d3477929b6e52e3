"""`regard embed`: one vector per text, search by similarity, and words with similar vectors."""

import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer  # noqa: TID251

from regard.base.errors import RegardError
from regard.base.formatting import escape_control_characters
from regard.cli.options import (
    OUTPUT_PANEL,
    BatchTokens,
    InputFile,
    ModelArgument,
    StringList,
    input_file_option,
    option,
    output_file_option,
)
from regard.cli.text_input import check_paths, read_lines

_neighbors = partial(option, panel="Similar words")
EXAMPLES = """
regard embed my-encoder "A dog barks." --json
regard embed my-encoder --search corpus.txt "Where is the dog?"
regard embed my-encoder --input texts.txt --output vectors.npy
regard embed my-model Paris Italy --minus France --neighbors
"""


def embed(
    folder: ModelArgument,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts to embed; with --search: queries; with --neighbors: words."),
    ] = None,
    input_file: InputFile = None,
    search: Annotated[
        Path | None,
        input_file_option("Search this file for the lines most similar to each text."),
    ] = None,
    neighbors: Annotated[
        bool,
        _neighbors(
            "Find the tokens whose embedding vectors are most similar to the sum of the words (any model).",
            "--neighbors",
        ),
    ] = False,
    minus: Annotated[StringList, _neighbors("Subtract this word. Repeatable.", metavar="WORD")] = None,
    is_target: Annotated[bool, _neighbors("Use the target embeddings of an encoder-decoder.", "--target")] = False,
    output: Annotated[Path | None, output_file_option("Write the vectors to a NumPy .npy file.", "--output")] = None,
    n_best: Annotated[
        int | None,
        option("With --search or --neighbors: number of results.", min=1, show_default="5 or 10", panel=OUTPUT_PANEL),
    ] = None,
    as_json: Annotated[
        bool, option("Print one JSON object per text or neighbor.", "--json", panel=OUTPUT_PANEL)
    ] = False,
    batch_tokens: BatchTokens = 4096,
) -> None:
    """Embed texts with an encoder, search a file for similar lines, or find words with similar embedding vectors.

    Prints each text's vector as space-separated numbers; with --search the similarity, line number and text of the most
    similar lines; with --neighbors the cosine similarity and text of each token, excluding the given words.
    """
    if neighbors:
        for option_name, path in (("--search", search), ("--input", input_file), ("--output", output)):
            if path is not None:
                raise RegardError(f"--neighbors takes words, not {option_name}.", hint=f"Leave out {option_name}.")
        _print_neighbors(folder, texts or [], minus or [], is_target=is_target, n_best=n_best or 10, as_json=as_json)
        return
    if minus or is_target:
        raise RegardError("--minus and --target need --neighbors.", hint="Add --neighbors.")
    for option_name, is_wrong in (("--search", search is not None), ("--json", as_json)):
        if output is not None and is_wrong:
            message = f"{option_name} has no effect with --output, which writes vectors."
            raise RegardError(message, hint=f"Leave out --output or {option_name}.")
    check_paths(texts, input_file, output)
    import numpy as np

    from regard.tasks.embedding import compute_similarities
    from regard.tasks.encoding import chunks  # imports torch: only when needed
    from regard.tasks.load import load_embedder

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
            best = [int(index) for index in np.argsort(-np.asarray(similarities), kind="stable")[: n_best or 5]]
            matches = [{"line": i + 1, "similarity": float(similarities[i]), "text": corpus[i]} for i in best]
            _write_matches(text, matches, as_json)
        sys.stdout.flush()
    if output is not None:
        np.save(
            output.open("wb"),
            np.concatenate(batches) if batches else np.zeros((0, embedder.settings.d_model), np.float32),
        )


def _print_neighbors(
    folder: Path, words: list[str], minus: list[str], *, is_target: bool, n_best: int, as_json: bool
) -> None:
    from regard.tasks.token_vectors import load_token_vectors  # imports torch: only when needed

    if not words:
        raise RegardError("--neighbors needs a word.", hint="Give at least one WORD.")
    vectors = load_token_vectors(folder, is_target=is_target)
    for word in (*words, *minus):
        texts = vectors.tokenizer.token_texts(vectors.encode(word))
        if len(texts) > 1:
            typer.echo(f"'{word}' is {len(texts)} tokens ({' '.join(texts)}); its vector is their mean.", err=True)
    for neighbor in vectors.find_neighbors(words, minus, n_best):
        line = f"{neighbor.similarity:.4f}\t{escape_control_characters(neighbor.text)}"
        sys.stdout.write(f"{json.dumps(asdict(neighbor), ensure_ascii=False) if as_json else line}\n")


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
