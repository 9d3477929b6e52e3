"""The switch of the CPU fast path: with it off, only reference code trains and translates."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.base import cpu_fast_path
from regard.data.batches.order import OrderSettings
from regard.decode import topk
from regard.models import cpu_decoder
from regard.models.loss import token as loss
from regard.nn import autocast_attention, dropout
from regard.nn.attention import Attention
from regard.store.model_folder import read_model
from regard.training import autotune
from regard.training.run import fit, resume
from tests.training.runs import make_small_run, write_corpus

FAST_PARTS: list[tuple[Any, str]] = [
    (dropout, "dropout_mask"),
    (topk, "_block_maxima"),
    (cpu_decoder, "_Plan"),
    (autotune, "StepTimer"),
    (loss, "ChunkedPass"),
    (autocast_attention.AutocastAttention, "weighted_sum"),
]


@pytest.fixture
def forbid_fast_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of the fast path raises."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("The fast path was used.")

    for owner, name in FAST_PARTS:
        monkeypatch.setattr(owner, name, fail)


@pytest.mark.usefixtures("forbid_fast_parts")
def test_a_run_without_the_fast_path_trains_and_translates(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "device.cpu_fast_path": False,
        "device.logit_rows": None,
        "device.threads": None,
        "device.attention": None,
        "train.precision": "bfloat16",
        "train.steps": 4,
        "train.save_every": 2,
        "validation.every_steps": 2,
    }
    changes |= {f"model.{stack}.dropout.sublayer": 0.1 for stack in ("encoder", "decoder")}
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), changes)
    finished = fit(run, tmp_path / "run", pause_at=2)
    assert finished.step == 2
    assert resume(tmp_path / "run").step == 4
    assert cpu_fast_path.is_enabled()
    with cpu_fast_path.enabled(False):
        translator: Any = regard.load(tmp_path / "run")
        assert not any(
            isinstance(module, autocast_attention.AutocastAttention) for module in translator.model.modules()
        )
        assert any(isinstance(module, Attention) for module in translator.model.modules())
        assert len(translator.translate(["a b c", "b"])) == 2


def test_both_paths_translate_alike(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), {"train.steps": 2})
    fit(run, tmp_path / "run")
    texts = ["a b c", "c b", "b a c a"]
    translator: Any = regard.load(tmp_path / "run")
    fast = translator.translate(texts)
    with cpu_fast_path.enabled(False):
        translator = regard.load(tmp_path / "run")
        reference = translator.translate(texts)
    assert [translation.text for translation in fast] == [translation.text for translation in reference]


@pytest.mark.usefixtures("forbid_fast_parts")
def test_top_k_without_the_fast_path() -> None:
    scores = torch.randn(64, 4096, generator=torch.Generator().manual_seed(1))
    with pytest.raises(AssertionError, match="fast path"):
        topk.topk(scores, 4)
    with cpu_fast_path.enabled(False):
        assert torch.equal(topk.topk(scores, 4)[1], scores.topk(4).indices)
        assert torch.equal(topk.argmax(scores)[:, 0], scores.argmax(dim=1))


def test_batches_have_any_shape_without_the_fast_path() -> None:
    shapes = OrderSettings(max_tokens=4096, max_length=512, few_shapes=False).shapes
    for length in range(1, 513):
        assert shapes.max_rows(length) == 4096 // length
        assert shapes.padded_width(8, length) == length


def test_an_environment_variable_switches_it_off() -> None:
    program = "from regard.base import cpu_fast_path; print(cpu_fast_path.is_enabled())"
    for value, expected in (("0", "False"), ("1", "True")):
        environment = {**os.environ, cpu_fast_path.VARIABLE: value}
        done = subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == expected


def test_blocks_nest_and_never_switch_it_on() -> None:
    assert cpu_fast_path.is_enabled()
    with cpu_fast_path.enabled(False):
        with cpu_fast_path.enabled(True):
            assert not cpu_fast_path.is_enabled()
        assert not cpu_fast_path.is_enabled()
    assert cpu_fast_path.is_enabled()


def test_read_model_builds_what_the_switch_says(tmp_path: Path) -> None:
    run = make_small_run("translation", write_corpus(tmp_path / "corpus"), {"train.steps": 1})
    fit(run, tmp_path / "run")
    for enabled in (True, False):
        with cpu_fast_path.enabled(enabled):
            model = read_model(tmp_path / "run").model
        kinds = [isinstance(module, autocast_attention.AutocastAttention) for module in model.modules()]
        assert any(kinds) == enabled
