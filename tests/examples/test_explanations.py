"""The program that compares explanations in a toy world."""

import sys
from pathlib import Path

import pytest
import torch
from examples.explanations import run


def test_every_method_names_a_head_of_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(tmp_path), "--seeds", "1", "--steps", "2"])
    run.main()
    row, total = capsys.readouterr().out.splitlines()[-2:]
    heads = [cell.split()[0].rstrip(",") for cell in row.strip("| ").split(" | ")[2:]]
    assert set(heads) <= {"1.1", "1.2", "2.1", "2.2"}
    assert total.count(" of 1") == len(run.METHODS)

    _, pairs = run.make_pairs(tmp_path / "seed-1" / "model", 1)
    for head in pairs.heads:
        name, index = head
        own = pairs.record.attention[name].output[:, index].detach()
        torch.testing.assert_close(pairs.change(head, own), pairs.logprobs.detach())
    everything = {(name, i): pairs.other.attention[name].output[:, i] for name, i in pairs.heads}
    with torch.no_grad():
        patched = pairs.compute(run.HeadOutputs(everything))
    assert patched.isfinite().all()
