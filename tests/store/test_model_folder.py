"""Model folders of format 1 open with every later version and give the same numbers.

`format-1` was written by Regard 0.1.0 and never changes. If this test fails, old models of users do not open anymore:
keep reading them, or raise the format and convert.
"""

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.config import codec
from regard.store.model_folder import read_model
from regard.store.model_path import MODEL
from regard.tasks.scorer import Scorer

FOLDER = Path(__file__).with_name("format-1")


def compute_outputs(folder: Path) -> dict[str, Any]:
    """Run every model of a folder."""
    pair, text = read_model(folder / "translator"), read_model(folder / "language-model")
    translation = regard.load_translator(folder / "translator").translate("Two dogs play.", max_new_tokens=8)
    label = regard.load_classifier(folder / "classifier").classify("A cat sleeps.")
    return {
        "translation": translation.tokens,
        "logprobs": translation.logprobs,
        "target": Scorer(pair.model, pair.tokenizers, pair.settings).score("Zwei Hunde.", "Two dogs.").logprobs,  # type: ignore[arg-type]
        "text": Scorer(text.model, text.tokenizers, text.settings).score("Two dogs play.").logprobs,  # type: ignore[arg-type]
        "label": [label.label, label.probability],
    }


def test_model_folders_of_format_1_give_the_stored_outputs() -> None:
    outputs, stored = compute_outputs(FOLDER), json.loads((FOLDER / "outputs.json").read_text(encoding="utf-8"))
    assert outputs.keys() == stored.keys()
    assert list(outputs["translation"]) == stored["translation"]
    assert outputs["label"][0] == stored["label"][0]
    assert outputs["label"][1] == pytest.approx(stored["label"][1], abs=1e-4)
    for name in ("logprobs", "target", "text"):
        assert list(outputs[name]) == pytest.approx(stored[name], abs=1e-4), name


def test_settings_of_format_1_state_their_format() -> None:
    for name in ("translator", "language-model", "classifier"):
        assert (FOLDER / name / MODEL).read_text(encoding="utf-8").startswith("format = 1\n")
    assert codec.RUN_FILES.load(FOLDER / "run.toml").model.task == "translation"
