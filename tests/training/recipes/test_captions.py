"""Recipes for captions."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.config.sources import ImagesConfig
from regard.data.example import CorpusError
from regard.training.autotune import seconds_per_step, synthetic_batch
from regard.training.recipes.configure import configure
from tests.training.runs import write_captions


def test_settings_are_chosen_from_captions(tmp_path: Path) -> None:
    write_captions(tmp_path, 60)
    source = ImagesConfig(path=str(tmp_path / "captions.tsv"), second="text")
    run = configure(source).run
    assert (run.model.task, run.tokenizer.kind) == ("caption", "byte_bpe")
    assert run.data.augmentation is not None
    assert not run.data.augmentation.flip
    assert seconds_per_step(run, 4, should_tune=False) > 0
    assert synthetic_batch(run, 3, 4).source.shape == (3, 1, 8, 8)  # type: ignore[union-attr]
    with pytest.raises(RegardError, match="Preset 'vit' writes no captions"):
        configure(source, preset="vit")


def test_a_row_of_a_table_is_named(tmp_path: Path) -> None:
    write_captions(tmp_path, 60)
    table = tmp_path / "captions.tsv"
    source = ImagesConfig(path=str(table), second="text")
    table.write_text("pictures/1.pgm\ta sky\npictures/nowhere.pgm\ta field\n")
    with pytest.raises(CorpusError, match=r"captions\.tsv:2 names it"):
        configure(source)
    table.write_text("pictures/1.pgm\n")
    with pytest.raises(CorpusError, match="The row has 1 column, not 2"):
        configure(source)
