"""The loss of a batch: which weights have an effect."""

import pytest
import torch

from regard.models.build import build
from regard.tasks.task import find_task
from regard.training.objective import Objective
from tests.ranks import FAMILY_CHANGES, UNDETERMINED
from tests.training.runs import TASKS, make_small_run


@pytest.mark.parametrize("task", TASKS)
def test_key_biases_have_an_effect_only_with_rotary_positions(task: str) -> None:
    """Elsewhere they add one number to all scores of a query, which softmax ignores: comparisons leave them out."""
    files = {name: name for name in ("all.en", "all.de", "book.txt")}  # only named, never read
    run = make_small_run(task, files, FAMILY_CHANGES[task])
    model = build(run.model, seed=1).double().eval()  # without dropout
    objective = Objective(model, find_task(run.model.task), label_smoothing=0.1, options=run.options)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        batch = find_task(run.model.task).synthetic_batch(run, 4, 12)
    key_biases = {name: bias for name, bias in model.named_parameters() if name.endswith(UNDETERMINED)}
    results = []
    for size in (0.0, 2.0):
        model.zero_grad()
        with torch.no_grad():
            for number, bias in enumerate(key_biases.values()):
                bias.copy_(size * torch.randn(bias.shape, generator=torch.Generator().manual_seed(number)))
        loss = objective(batch).total
        loss.backward()
        grads = {name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None}
        results.append({"loss": loss.detach(), **grads})
    names = [name for name in results[0] if name not in key_biases]
    change = max(float((results[1][name] - results[0][name]).abs().max()) for name in names)
    gradient = max(float(result[name].abs().max()) for result in results for name in key_biases)
    largest = max(float(results[0][name].abs().max()) for name in names)
    assert len(key_biases) == {"translation": 6, "causal_lm": 2, "masked_lm": 2}[task]
    if task == "causal_lm":
        assert min(change, gradient) > 1e-3 * largest, "rotary positions turn the bias by the position of the key"
    else:
        assert max(change, gradient) < 1e-13 * largest
