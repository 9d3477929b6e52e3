"""`regard neighbors`: the tokens whose vectors are most similar to words, and analogies."""

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer  # noqa: TID251

from regard.base.formatting import escape_control_characters
from regard.cli.options import INPUT_PANEL, OUTPUT_PANEL, ModelArgument, StringList, option

EXAMPLES = """
regard neighbors my-model Paris
regard neighbors my-model Paris --minus France --plus Italy
"""


def neighbors(
    folder: ModelArgument,
    words: Annotated[list[str], typer.Argument(metavar="WORD", help="Words; their vectors are added.")],
    plus: Annotated[StringList, option("Add the vector of this word.", metavar="WORD", panel=INPUT_PANEL)] = None,
    minus: Annotated[StringList, option("Subtract the vector of this word.", metavar="WORD", panel=INPUT_PANEL)] = None,
    is_target: Annotated[
        bool, option("Use the embedding of the target (encoder-decoder).", "--target", panel=INPUT_PANEL)
    ] = False,
    n_best: Annotated[int, option("Number of neighbors.", min=1, panel=OUTPUT_PANEL)] = 10,
    as_json: Annotated[bool, option("Print one JSON object per neighbor.", "--json", panel=OUTPUT_PANEL)] = False,
) -> None:
    """Find the tokens whose embedding vectors are most similar to a word, or to a sum of words.

    Prints the cosine similarity and the text of each token. The words themselves are left out.
    """
    from regard.pipeline.token_vectors import load_token_vectors  # imports torch: only when needed

    vectors = load_token_vectors(folder, is_target=is_target)
    added = [*words, *(plus or [])]
    for word in (*added, *(minus or [])):
        texts = vectors.tokenizer.token_texts(vectors.encode(word))
        if len(texts) > 1:
            typer.echo(f"'{word}' is {len(texts)} tokens ({' '.join(texts)}); its vector is their mean.", err=True)
    for neighbor in vectors.find_neighbors(added, minus or [], n_best):
        if as_json:
            sys.stdout.write(json.dumps(asdict(neighbor), ensure_ascii=False) + "\n")
        else:
            sys.stdout.write(f"{neighbor.similarity:.4f}\t{escape_control_characters(neighbor.text)}\n")
