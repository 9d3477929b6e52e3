"""Check the corpus before a run starts, in a pass over the corpus that is needed anyway.

A run configured from its corpus is checked while statistics are collected; a run from a run file while file checksums
are computed. Both read the corpus once. A resumed run is not checked again.
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
    """Read the run's corpora once; return the check result and each file's size and sha256."""
    check = TrainingCheck(run.data.train, run.data.validation)
    defects = Defects(hash_files=True)  # the defects are reported when the shards are written
    for sources, add in ((run.data.train, check.add), (run.data.validation, check.add_validation)):
        corpus = Corpus(sources)
        corpus.check_regular_files()
        for index, example in corpus.examples(defects):
            add(index, _join_response(example) if run.model.task == "causal_lm" else example)
    return check.conclude(), defects.file_infos


def _join_response(example: Example) -> Example:
    """Join a prompt and its response: they are not translations, and repeated prompts are not leakage."""
    if example.target is None:
        return example
    return replace(example, source=f"{example.source} {example.target}", target=None)


def review_verdict(
    verdict: TrainingCheckResult, sources: Sequence[AnySourceConfig], force_option: str, *, is_forced: bool
) -> tuple[str, ...]:
    """Return the warnings of a verdict.

    Args:
        verdict: The result of the corpus check.
        sources: The training corpus.
        force_option: The name of the option that overrides the check.
        is_forced: Whether to train despite severe findings, which become warnings.

    Raises:
        RegardError: There are severe findings and training is not forced.
    """
    if verdict.refusals and not is_forced:
        findings = "".join(f"\n  - {finding}" for finding in verdict.refusals)
        paths = [path for source in sources for path in source.paths]
        raise RegardError(
            f"Do not train on this yet:{findings}",
            location=" and ".join(paths[:2]) + (" and more" if len(paths) > 2 else ""),
            hint="Repair the corpus; `regard check` lists the lines and writes a cleaned corpus. "
            f"If the text is intended to be like this (e.g. a copy task or a test), use {force_option}.",
        )
    return (*verdict.refusals, *verdict.warnings)
