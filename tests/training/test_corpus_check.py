"""A language model on pairs from scratch: prompts and responses, from a run file."""

from pathlib import Path

from regard.training.corpus_check import check_run
from tests.training.runs import make_prompt_run


def test_the_doctor_reads_prompt_and_response_as_one_text(tmp_path: Path) -> None:
    """As translations these lines would be misaligned, and equal prompts in the validation part would be leakage."""
    prompts = [f"draw a {'boot' if number % 2 else 'bag'}" for number in range(400)]
    responses = [" ".join(f"c{(number * 7 + k) % 23}" for k in range(1 + number % 40)) for number in range(400)]
    run = make_prompt_run(tmp_path, prompts, responses)
    for part in ("prompts", "responses"):
        path = tmp_path / f"validation.{part}"
        lines = [f"c{number} c{2 * number} c{3 * number + 1}" for number in range(20)]
        path.write_text("".join(f"{line}\n" for line in (lines if part == "responses" else prompts[:20])))
    verdict, _ = check_run(run)
    assert verdict.refusals == ()
    assert not any("isaligned" in warning for warning in verdict.warnings)
    copied = make_prompt_run(tmp_path, prompts, responses)  # the validation rows are training rows again
    assert any("Leakage" in finding for finding in (*check_run(copied)[0].refusals, *check_run(copied)[0].warnings))
