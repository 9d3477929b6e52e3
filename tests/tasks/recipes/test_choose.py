"""Which task a corpus is for: the built-in ones, and those of other packages."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from regard.base.errors import RegardError
from regard.config.sources import DocumentsConfig, ImagesConfig
from regard.config.task_spec import SPECS, TaskSpec, find_spec
from regard.tasks.recipes.images import IMAGE_CLASSIFICATION
from regard.tasks.recipes.recipe import TaskRecipe
from regard.tasks.recipes.translation import TRANSLATION
from regard.training.recipes.configure import configure
from tests.training.runs import write_images


def install(monkeypatch: pytest.MonkeyPatch, spec: TaskSpec, recipe: TaskRecipe) -> None:
    """Add a task, as an installed package would."""
    module = ModuleType("added_task")
    vars(module)["RECIPE"] = recipe
    monkeypatch.setitem(sys.modules, "added_task", module)
    monkeypatch.setitem(SPECS, spec.name, replace(spec, recipe="added_task:RECIPE"))


def test_a_task_that_makes_its_labels_learns_from_images_without_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(find_spec("image_classification"), name="rotation", labels=("0", "90", "180", "270"))
    install(monkeypatch, spec, replace(IMAGE_CLASSIFICATION, learns_from=("images", "images+labels")))
    write_images(tmp_path / "images-idx3-ubyte", 60)
    source = ImagesConfig(path=str(tmp_path / "images-idx3-ubyte"))
    auto_run = configure(source, changes={"model.task": "rotation"})
    assert auto_run.run.model.task == "rotation"
    assert auto_run.run.model.head.kind == "classes"
    assert auto_run.run.model.head.labels == ("0", "90", "180", "270")
    assert auto_run.run.validation.metric == "accuracy"
    assert auto_run.reasons[0].startswith("60 images with 4 labels: preset vit")
    with pytest.raises(RegardError, match="needs labeled images, but this corpus contains images"):
        configure(source, changes={"model.task": "image_classification"})


def test_a_task_that_makes_pairs_of_running_text_trains_like_translation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = replace(find_spec("translation"), name="punctuation")
    install(monkeypatch, spec, replace(TRANSLATION, learns_from=("text",)))
    (tmp_path / "a.txt").write_text("Well, this is a sentence. Is it?\n" * 200, encoding="utf-8")
    auto_run = configure(DocumentsConfig(path=str(tmp_path / "a.txt")), changes={"model.task": "punctuation"})
    assert (auto_run.run.model.task, auto_run.run.model.family) == ("punctuation", "encoder_decoder")
    assert auto_run.run.train.label_smoothing == 0.1
    assert auto_run.run.validation.metric == "chrf"


def test_a_task_without_a_recipe_is_trained_from_a_run_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n" * 2000, encoding="utf-8")
    with pytest.raises(RegardError, match="no recipe for the task 'span_corruption'"):
        configure(DocumentsConfig(path=str(tmp_path / "a.txt")), changes={"model.task": "span_corruption"})
