"""Ask the corpus doctor before a run starts, in passes over the corpus that are made anyway.

A run that is configured from its corpus is checked while the statistics are collected; a run from a run file while the
checksums of its files are computed. Both read the corpus once. A resumed run is not checked again.
"""

from collections.abc import Sequence
from dataclasses import replace

from regard.base.errors import RegardError
from regard.config.run import RunConfig
from regard.config.sources import AnySourceConfig
from regard.data.corpus import Corpus
from regard.data.doctor.one_pass import TrainingCheck, TrainingCheckResult
from regard.data.example import Defects, Example, FileInfo


def check_run(run: RunConfig) -> tuple[TrainingCheckResult, dict[str, FileInfo]]:
    """Read the corpora of a run once: the doctor's verdict, and size and sha256 of their files."""
    check = TrainingCheck(run.data.train, run.data.validation)
    defects = Defects(hash_files=True)  # the defects are reported when the shards are written
    for sources, add in ((run.data.train, check.add), (run.data.validation, check.add_validation)):
        corpus = Corpus(sources)
        corpus.check_regular_files()
        for index, example in corpus.examples(defects):
            add(index, _join_response(example) if run.model.task == "causal_lm" else example)
    return check.conclude(), defects.file_infos


def _join_response(example: Example) -> Example:
    """Make one text of a prompt and its response: they are no translations, and equal prompts alone are no leakage."""
    if example.target is None:
        return example
    return replace(example, source=f"{example.source} {example.target}", target=None)


def review_verdict(
    verdict: TrainingCheckResult, sources: Sequence[AnySourceConfig], force_option: str, *, is_forced: bool
) -> tuple[str, ...]:
    """Return the warnings of a verdict.

    Args:
        verdict: The doctor's verdict.
        sources: The training corpus.
        force_option: How the user spells the option that overrules the doctor.
        is_forced: Whether to train in spite of grave findings; they become warnings.

    Raises:
        RegardError: There are grave findings, and training is not forced.
    """
    if verdict.refusals and not is_forced:
        findings = "".join(f"\n  - {finding}" for finding in verdict.refusals)
        paths = [path for source in sources for path in source.paths]
        raise RegardError(
            f"Do not train on this yet:{findings}",
            location=" and ".join(paths[:2]) + (" and more" if len(paths) > 2 else ""),
            hint="Repair the corpus; `regard check` lists the lines and writes a cleaned corpus. If the text is meant "
            f"to be like this (a model that shall copy, a test), use {force_option}.",
        )
    return (*verdict.refusals, *verdict.warnings)
