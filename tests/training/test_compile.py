"""Compiled layers: the same losses, one graph for all layers, and none in evaluation."""

from functools import partial
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from regard.base.errors import RegardError
from regard.models.build import build
from regard.tasks.task import find_task
from regard.training.objective import Objective
from tests.ranks import FAMILY_CHANGES
from tests.training.runs import make_small_run

FILES = {name: name for name in ("all.en", "all.de", "book.txt")}  # only named, never read


def make_objective(should_compile: bool, changes: dict[str, Any]) -> Objective:
    run = make_small_run("causal_lm", FILES, FAMILY_CHANGES["causal_lm"] | changes)
    return Objective.from_run(build(run.model, seed=1), run, should_compile=should_compile)


@pytest.mark.filterwarnings("ignore")  # of torch about itself
def test_equal_layers_share_one_graph_and_give_the_loss_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    torch.compiler.reset()
    counters.clear()
    run = make_small_run("causal_lm", FILES, FAMILY_CHANGES["causal_lm"])
    changes = {"model.decoder.layers": 3, "model.decoder.dropout": {}}
    objectives = [make_objective(should_compile, changes) for should_compile in (True, False)]
    batches = [find_task("causal_lm").synthetic_batch(run, 4, length) for length in (12, 15, 9)]
    for batch in batches:
        losses = [objective(batch).total for objective in objectives]
        torch.testing.assert_close(*losses)
        for loss in losses:
            loss.backward()
    for compiled, eager in zip(*(objective.parameters() for objective in objectives), strict=True):
        torch.testing.assert_close(compiled.grad, eager.grad)
    graphs = counters["stats"]["unique_graphs"]
    assert graphs in (1, 2), "one of the first length, one of all others"
    objectives[0].eval()(batches[0])
    assert counters["stats"]["unique_graphs"] == graphs


def test_a_model_without_transformer_layers_is_refused() -> None:
    with pytest.raises(RegardError, match="Only Transformer layers"):
        make_objective(True, {"model.decoder": {"kind": "recurrent", "layers": 1}})
