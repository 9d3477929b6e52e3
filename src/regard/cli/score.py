"""`regard evaluate --score`: print the log-probability of each text."""

import json
import sys
from dataclasses import asdict

from regard.base.errors import RegardError
from regard.base.progress import begin
from regard.cli.evaluate_options import EvaluateCommandOptions
from regard.cli.text_input import CHUNK_LINES


def score_texts(options: EvaluateCommandOptions) -> None:
    """Print each text's log-probability and token count, or all its tokens as JSON."""
    from regard.tasks.evaluate import read_test_data  # imports torch: only when needed

    options.check_used("--score", ("--target-language", "--window"))
    model, data = read_test_data(options)
    assert model is not None  # noqa: S101 - --score needs a model
    scorer = model.make_scorer()
    has_pairs = data.references is not None
    texts = options.texts or (data.first_references if has_pairs else data.inputs) or []
    sources = data.inputs if has_pairs else None
    if options.source_text is not None:
        sources = [options.source_text] * len(texts)
    if scorer.reads_sources and sources is None:
        raise RegardError(
            "This is a translation model: it scores translations of given sources.",
            location=str(options.model),
            hint="Add --source-text TEXT, or give --source FILE and --reference FILE.",
        )
    advance = begin("scoring", len(texts))
    for start in range(0, len(texts), CHUNK_LINES):
        chunk = slice(start, start + CHUNK_LINES)
        for scored in scorer.score(
            texts[chunk],
            None if sources is None else sources[chunk],
            target_language=options.target_language,
            window=options.window,
        ):
            total = scored.total_logprob
            line = f"{total:.4f}\t{len(scored.logprobs)}"
            if options.as_json:
                line = json.dumps({**asdict(scored), "total_logprob": total}, ensure_ascii=False)
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        advance(len(texts[chunk]))
