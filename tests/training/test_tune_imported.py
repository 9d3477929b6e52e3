"""Fine-tuning of models that other libraries trained: WordPiece, token types, texts without bos."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

import regard
from regard.config.codec import RUN_FILES
from regard.exchange.importer import import_model
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from regard.training.run import fit
from tests.exchange.huggingface.bert_folders import WORDS, write_theirs
from tests.training.runs import make_small_run, write_corpus

DEVICE = {"name": "cpu", "threads": 1, "attention": "autocast", "logit_rows": 16}  # nothing is left to be timed
FEW: dict[str, Any] = {"steps": 2, "force": True, "settings": {"validation": {"every_steps": 2}, "device": DEVICE}}


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An imported BERT with three labels, a WordPiece tokenizer and two token types."""
    folder = tmp_path_factory.mktemp("bert")
    write_theirs(folder / "theirs", types=2)
    import_model(folder / "theirs", folder / "ours")
    return folder / "ours"


def _write_lines(path: Path, form: str) -> Path:
    """Write 80 examples: sentences or pairs with a label, or words with tags."""
    random, words = Random(1), [word for word in WORDS if word.isalpha()]
    lines = ["source\ttarget\tlabel"] if form == "pairs" else []
    for _ in range(80):
        sentences = [random.choices(words, k=random.randint(2, 5)) for _ in range(2)]
        label = "dog" if "dog" in sentences[0] else "other"
        if form == "tags":
            lines.append("".join(f"{word}\t{'NOUN' if word in ('man', 'dog') else 'X'}\n" for word in sentences[0]))
        else:
            texts = [" ".join(words) for words in sentences][: 1 if form == "labels" else 2]
            lines.append("\t".join([*texts, *([] if form == "embedding" else [label])]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(("form", "options"), [("labels", {}), ("labels", {"lora": 2}), ("pairs", {}), ("tags", {})])
def test_an_imported_encoder_learns_labels(bert: Path, tmp_path: Path, form: str, options: dict[str, Any]) -> None:
    data = _write_lines(tmp_path / ("data.conll" if form == "tags" else "data.tsv"), form)
    finished = regard.tune(bert, data=data, out=tmp_path / "run", **options, **FEW)
    classifier = regard.load_classifier(finished.folder)
    assert classifier.settings.encoder.position.length == 32  # type: ignore[union-attr]
    assert RUN_FILES.load(tmp_path / "run" / "run.toml").data.max_length <= 32
    if form == "tags":
        assert {tag.label for tag in classifier.tag("The old dog sleeps").tags} <= {"NOUN", "X"}
    elif form == "pairs":
        assert classifier.classify("the dog", "a man").label in ("dog", "other")
    else:
        assert classifier.classify("The old dogs run.").label in ("dog", "other")


def test_an_imported_encoder_learns_embeddings_from_pairs(bert: Path, tmp_path: Path) -> None:
    data = _write_lines(tmp_path / "data.tsv", "embedding")
    finished = regard.tune(bert, data=data, out=tmp_path / "run", **FEW)
    assert regard.load_embedder(finished.folder).embed(["the old dog"]).shape == (1, 16)
    assert "retrieval" in (tmp_path / "run" / "log.txt").read_text()


def test_a_language_model_without_bos_stays_one(tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    run = make_small_run("causal_lm", files, {"train.steps": 2, "validation.every_steps": 2})
    fit(run, tmp_path / "trained")
    stored = read_model(tmp_path / "trained")
    assert stored.settings.context_length == run.data.max_length  # type: ignore[union-attr]
    settings = stored.settings.model_copy(update={"starts_with_bos": False})
    write_model(tmp_path / "parent", settings, stored.tokenizers, get_weights(stored.model), "# Parent\n")
    pairs: dict[str, Any] = {"source": files["all.en"], "target": files["all.de"]}
    for name, texts in (("answers", pairs), ("text", {"text": files["book.txt"]})):
        finished = regard.tune(tmp_path / "parent", **texts, out=tmp_path / name, **FEW)
        generator = regard.load_generator(finished.folder)
        assert not generator.settings.starts_with_bos
        assert generator.generate("the dog", max_new_tokens=3).tokens
