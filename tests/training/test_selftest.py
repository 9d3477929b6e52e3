"""The self-test passes on this CPU, and names a wrong kernel, another order of sums and a wrong cache."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from regard.base import cpu_fast_path
from regard.nn.kv_cache import KVCache
from regard.training import selftest
from regard.training.selftest import MODELS, SelfTestResult, SelfTestSize, run_selftest
from tests.commands import run_command

SMALL = SelfTestSize(16, layers=1, steps=2, lines=60, timed_steps=1, rounds=1, ranks=1, timed_on_cpu=(16, 1, 256))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, SelfTestResult]]:
    """Return a function that tests the CPU with one model in float32 and returns the results by check."""
    monkeypatch.setattr(selftest, "MODELS", {"causal_lm": MODELS["causal_lm"]})
    monkeypatch.setattr(selftest, "PRECISIONS", ("float32",))
    return lambda: {result.check: result for result in run_selftest(tmp_path, devices=["cpu"], size=SMALL)}


def replace_attention(monkeypatch: pytest.MonkeyPatch, change: Callable[[Tensor], Tensor]) -> None:
    """Change the result of fused attention, but not in the reference."""
    attention = F.scaled_dot_product_attention

    def changed(*arguments: Any, **options: Any) -> Tensor:
        output = attention(*arguments, **options)
        return change(output) if cpu_fast_path.is_enabled() else output

    monkeypatch.setattr(F, "scaled_dot_product_attention", changed)


def test_selftest_passes_on_this_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(selftest, "run_selftest", partial(run_selftest, devices=["cpu"], size=SMALL))
    done = run_command("info", "--selftest")
    assert done.code == 0, done.output
    report = json.loads((tmp_path / "regard-selftest.json").read_text())
    checks = {
        (result["check"], result["model"], result["precision"]): result["verdict"] for result in report["results"]
    }
    names = ("gradients", "repeatable", "loss curve", "exact resume")
    for model in ("translation", "causal_lm"):
        assert [checks[name, model, precision] for precision in ("float32", "bfloat16") for name in names] == [
            "pass"
        ] * 8
        assert checks["decoding", model, "float32"] == "pass"
        assert checks["1 ranks", model, "float32"] == "skipped"
    assert checks["throughput", "causal_lm", "float32"] == "measured"
    assert report["passed"]
    assert report["torch"] == torch.__version__
    for path in (tmp_path, Path.home(), Path(selftest.__file__).parent, Path(torch.__file__).parent):
        assert str(path) not in json.dumps(report)


def test_selftest_names_the_module_of_a_wrong_kernel(
    run: Callable[[], dict[str, SelfTestResult]], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_attention(monkeypatch, lambda output: 2 * output)
    results = run()
    assert {check for check, result in results.items() if result.verdict == "FAIL"} >= {"gradients", "loss curve"}
    assert results["gradients"].detail.startswith("first in the input of decoder.layers.0.attention.output, ")
    assert results["loss curve"].detail == "first above the limit in step 1"
    assert results["repeatable"].verdict == results["exact resume"].verdict == "pass"


def test_selftest_names_the_module_of_a_nondeterministic_kernel(
    run: Callable[[], dict[str, SelfTestResult]], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator()
    generator.seed()
    replace_attention(monkeypatch, lambda output: output * (1 + 1e-6 * torch.randn(output.shape, generator=generator)))
    results = run()
    failures = {check: result.detail for check, result in results.items() if result.verdict == "FAIL"}
    assert failures.keys() == {"repeatable", "exact resume"}, failures
    assert failures["repeatable"].startswith("first in the input of decoder.layers.0.attention.output, ")
    assert failures["exact resume"].startswith("other bytes in best/")


def test_selftest_finds_a_wrong_cache_and_reports_errors_without_paths(
    run: Callable[[], dict[str, SelfTestResult]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    append = KVCache.append
    monkeypatch.setattr(KVCache, "append", lambda self, *args: tuple(1.1 * x for x in append(self, *args)[:2]))

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(f"no kernel in {tmp_path} of {Path.home()}/cards")

    monkeypatch.setattr(selftest, "resume", fail)
    with cpu_fast_path.enabled(False):  # whose decoder has its own cache
        results = run()
    assert results["exact resume"].verdict == "FAIL"
    assert results["exact resume"].detail == "RuntimeError: no kernel in <folder> of ~/cards"
    assert results["decoding"].verdict == "FAIL"
    assert results["gradients"].verdict == "pass"


@pytest.mark.slow
def test_selftest_compares_two_ranks_with_one(tmp_path: Path) -> None:
    results = run_selftest(tmp_path, devices=["cpu"])
    assert {result.verdict for result in results if result.check == "2 ranks"} == {"pass"}
    assert not [result for result in results if result.verdict == "FAIL"]
