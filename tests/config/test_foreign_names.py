"""Settings of other tools are answered with the setting of Regard."""

import pytest

from regard.config.codec import MODEL_FILES, RUN_FILES
from regard.config.foreign_names import REPLACEMENTS


@pytest.mark.parametrize("path", sorted({path for paths in REPLACEMENTS.values() for path in paths}))
def test_replacement_is_a_setting(path: str) -> None:
    assert list(RUN_FILES.find_wrong_changes({path: None})) == []


@pytest.mark.parametrize(
    ("path", "replacement"),
    [
        ("epochs", "Use 'train.minutes' or 'train.steps'."),
        ("train.epochs", "Use 'train.minutes' or 'train.steps'."),
        ("batch_size", "Use 'train.step_tokens'."),
        ("data.batch_size", "Use 'train.step_tokens'."),
        ("train.learning_rate", "Use 'train.schedule.lr'."),
        ("lr", "Use 'train.schedule.lr'."),
        ("train.optimizer.lr", "Use 'train.schedule.lr'."),
        ("num_beams", "Use 'distillation.beam_size'."),
        ("hidden_size", "Use 'model.d_model'."),
        ("model.encoder.num_heads", "Use 'model.encoder.attention.heads'."),
        ("model.num_layers", "Use 'model.decoder.layers' or 'model.encoder.layers'."),
    ],
)
def test_setting_of_other_tools_names_ours(path: str, replacement: str) -> None:
    (fault,) = RUN_FILES.find_wrong_changes({path: 1})
    assert str(fault) == f"{path}: is not a key here. {replacement}"


def test_setting_of_other_tools_in_a_model_file_names_ours() -> None:
    (fault,) = MODEL_FILES.find_wrong_changes({"hidden_size": 64})
    assert str(fault) == "hidden_size: is not a key here. Use 'd_model'."
