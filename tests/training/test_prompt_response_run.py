"""A language model on pairs from scratch: prompts and responses, from a run file."""

from pathlib import Path
from typing import Any

from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.store.run_folder import RunFolder
from regard.training.corpus_check import check_run
from regard.training.data import prepare_data


def make_run(
    folder: Path, prompts: list[str], responses: list[str], changes: dict[str, Any] | None = None
) -> RunConfig:
    """Write the corpus, its first lines also as validation, and return a small run."""
    table: dict[str, Any] = {"data": {"batch_tokens": 128, "max_length": 32}}
    for part, rows in (("train", slice(None)), ("validation", slice(0, 20))):
        for name, lines in (("prompts", prompts), ("responses", responses)):
            (folder / f"{part}.{name}").write_text("".join(f"{line}\n" for line in lines[rows]))
        files = {"source": str(folder / f"{part}.prompts"), "target": str(folder / f"{part}.responses")}
        table["data"][part] = [{"kind": "lines", **files}]
    table |= {
        "tokenizer": {"kind": "word", "vocabulary": 64},
        "model": {"preset": "lm-small", "width": 16, "tokens.vocabulary": 64},
        "train": {"updates": 4, "update_tokens": 128, "schedule": {"kind": "constant", "peak": 0.01}},
        "device": {"name": "cpu", "threads": 1},
    }
    return RUN_FILES.parse(table, {"model.decoder.layers": 1, "model.decoder.attention.heads": 2, **(changes or {})})


def test_the_vocabulary_has_the_words_of_responses(tmp_path: Path) -> None:
    run = make_run(tmp_path, ["one", "two"] * 30, ["c1 c2 c3", "c4"] * 30)
    data = prepare_data(run, RunFolder(tmp_path), lambda _: None)
    assert data.tokenizers is not None
    words = {"one", "two", "c1", "c2", "c3", "c4"}
    assert words <= set(data.tokenizers.source.vocabulary)


def test_the_doctor_reads_prompt_and_response_as_one_text(tmp_path: Path) -> None:
    """As translations these lines would be misaligned, and equal prompts in the validation part would be leakage."""
    prompts = [f"draw a {'boot' if number % 2 else 'bag'}" for number in range(400)]
    responses = [" ".join(f"c{(number * 7 + k) % 23}" for k in range(1 + number % 40)) for number in range(400)]
    run = make_run(tmp_path, prompts, responses)
    for part in ("prompts", "responses"):
        path = tmp_path / f"validation.{part}"
        lines = [f"c{number} c{2 * number} c{3 * number + 1}" for number in range(20)]
        path.write_text("".join(f"{line}\n" for line in (lines if part == "responses" else prompts[:20])))
    verdict, _ = check_run(run)
    assert verdict.refusals == ()
    assert not any("isaligned" in warning for warning in verdict.warnings)
    copied = make_run(tmp_path, prompts, responses)  # the validation rows are training rows again
    assert any("Leakage" in finding for finding in (*check_run(copied)[0].refusals, *check_run(copied)[0].warnings))
