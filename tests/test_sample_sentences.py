"""scripts/sample_sentences.py finds the sentences of every kind and draws the same ones again."""

import ast

from scripts.sample_sentences import KINDS, Sentence, draw, iter_help, iter_pages, iter_strings, split_sentences

PAGE = """# The title of a page

Regard trains a model. It also
serves the model.

```bash
this is a comment in code
```

| Option | The help of an option |
"""
MODULE = '''
def load(path):
    """Load the model."""
    hint = "Train a model first."
    print(f"Read the file {path}.")
    raise RegardError("There is no model.", hint=hint)
'''


def test_split_sentences_skips_code_and_keeps_table_cells() -> None:
    assert list(split_sentences(PAGE)) == [
        (0, "The title of a page"),
        (2, "Regard trains a model."),
        (2, "It also serves the model."),
        (9, "The help of an option"),
    ]


def test_strings_have_a_kind_and_a_line() -> None:
    assert list(iter_strings(ast.parse(MODULE))) == [
        ("docstring", 3, "Load the model."),
        ("error", 4, "Train a model first."),
        ("log", 5, "Read the file {path}."),
        ("error", 6, "There is no model."),
    ]


def test_draw_repeats_with_the_same_seed_and_takes_equal_shares() -> None:
    pool = [Sentence(kind, "place", f"{kind} {number}") for kind in KINDS for number in range(50)]
    drawn = draw(pool, KINDS, 12, seed=1)
    assert drawn == draw(pool, KINDS, 12, seed=1) != draw(pool, KINDS, 12, seed=2)
    assert [sentence.kind for sentence in drawn] == [kind for kind in KINDS for _ in range(2)]


def test_readme_docs_and_the_help_of_subcommands_are_found() -> None:
    assert {sentence.kind for sentence in iter_pages()} == {"readme", "docs"}
    assert {"regard train --help-all", "regard model show --help-all"} <= {sentence.place for sentence in iter_help()}
