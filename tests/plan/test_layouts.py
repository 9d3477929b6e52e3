"""Layouts that a plan compares."""

import pytest

from regard.base.errors import RegardError
from regard.plan.layouts import list_candidates, make_candidate
from regard.training.distributed.layout import ParallelLayout
from tests.plan.runs import make_run


def test_layouts_have_their_settings_and_refusals_their_reason() -> None:
    run = make_run(train__step_tokens=16 * 512)
    candidates = {candidate.name: candidate for candidate in list_candidates(run, 16, 8)}
    assert candidates["hsdp=8"].layout == ParallelLayout(replicas=2, shards=8)
    assert candidates["fsdp+tensor=2"].layout == ParallelLayout(shards=8, tensor=2)
    assert candidates["fsdp+tensor=8"].layout is None
    assert "4 query heads" in candidates["fsdp+tensor=8"].refusal
    chosen = make_run(train__step_tokens=16 * 512, parallel__mode="fsdp", parallel__replicas=2)
    assert [(each.name, each.layout) for each in list_candidates(chosen, 16, 8)] == [("hsdp=8", ParallelLayout(2, 8))]
    with pytest.raises(RegardError, match="Unknown parallelism"):
        make_candidate(run, "magic", 16, 8)
    with pytest.raises(RegardError, match="16 ranks are not divisible into replicas of 3 shards"):
        make_candidate(run, "hsdp=3", 16, 8)
    few = make_candidate(make_run(train__step_tokens=8 * 512), "ddp", 16, 8)
    assert few.layout is None
    assert "A step has 8 batches" in few.refusal
    tensor = make_run(train__step_tokens=run.train.step_tokens, parallel__tensor=2)
    assert [each.name for each in list_candidates(tensor, 16, 8)] == ["fsdp+tensor=2"]
