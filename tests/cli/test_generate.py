"""`regard generate`."""

import json

from tests.commands import run_command


def test_generate_continues_a_prompt(generator_folder: str) -> None:
    options = ["--max-new-tokens", "9", "--temperature", "1.2", "--top-k", "20", "--top-p", "0.9", "--seed", "3"]
    done = run_command("generate", generator_folder, "Two young", *options)
    assert done.code == 0, done.errors
    assert done.output.startswith("Two young")
    assert len(done.output) > len("Two young\n")
    assert run_command("generate", generator_folder, "Two young", *options).output == done.output
    assert run_command("generate", generator_folder, "Two young", *options[:-1], "4").output != done.output
    searched = run_command(
        "generate", generator_folder, "Two young", "--max-new-tokens", "4", "--search", "beam", "--count", "2"
    )
    assert searched.code == 0, searched.errors
    assert len(searched.output.splitlines()) == 2


def test_generate_searches_and_filters(generator_folder: str) -> None:
    basic = ["generate", generator_folder, "Two young", "--max-new-tokens", "6", "--seed", "1"]
    done = run_command(*basic, "--count", "3")
    assert done.code == 0, done.errors
    assert done.output.count("Two young") == 3
    done = run_command(
        *basic,
        "--json",
        "--min-p",
        "0.1",
        "--typical-p",
        "0.9",
        "--repetition-penalty",
        "1.2",
        "--no-repeat-ngram",
        "2",
    )
    record = json.loads(done.output)
    assert (record["prompt"], len(record["tokens"])) == ("Two young", len(record["logprobs"]))
    greedy = run_command("generate", generator_folder, "Two young", "--max-new-tokens", "6", "--temperature", "0")
    for filter_options in (["--top-k", "1"], ["--top-p", "0.0001"], ["--min-p", "1"]):
        filtered = run_command(
            "generate",
            generator_folder,
            "Two young",
            "--max-new-tokens",
            "6",
            "--temperature",
            "1.5",
            *filter_options,
            "--seed",
            "1",
        )
        assert filtered.output == greedy.output, filter_options
    token_ids = json.loads(run_command(*basic, "--json", "--no-repeat-ngram", "1").output)["tokens"]
    assert len(set(token_ids)) == len(token_ids) > 1
    drafted = run_command(
        "generate",
        generator_folder,
        "Two young",
        "--max-new-tokens",
        "6",
        "--temperature",
        "0",
        "--draft",
        generator_folder,
    )
    assert drafted.output == greedy.output
    assert "draft tokens accepted" in drafted.errors
    beam = run_command(
        "generate", generator_folder, "Two young", "--max-new-tokens", "6", "--search", "beam", "--count", "2"
    )
    assert beam.code == 0, beam.errors
