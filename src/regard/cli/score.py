"""`regard evaluate --score`: the log-probability that a model assigns to each given text."""

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from regard.base.errors import RegardError
from regard.cli.evaluate_options import EvaluateOptions
from regard.cli.evaluation_data import EvaluationData
from regard.cli.progress import show_progress
from regard.cli.text_input import CHUNK_LINES

if TYPE_CHECKING:
    from regard.config.model import AnyModelConfig


def score_texts(options: EvaluateOptions, settings: "AnyModelConfig", data: EvaluationData) -> None:
    """Print the log-probability and the number of tokens of each text, or all its tokens as JSON."""
    from regard.pipeline.scorer import Scorer  # imports torch: only when needed

    options.check_kind("--score")
    references = None if data.references is None else [references[0] for references in data.references]
    texts = options.texts or data.texts or references or []
    sources = data.sources if options.source_text is None else [options.source_text] * len(texts)
    if settings.family == "encoder_decoder" and sources is None:
        raise RegardError(
            "This is a translation model: it scores translations of given sources.",
            location=str(options.folder),
            hint="Add --source-text TEXT, or give --source FILE and --reference FILE.",
        )
    scorer = Scorer.load(options.folder or "")
    with show_progress("scoring", len(texts)) as advance:
        for start in range(0, len(texts), CHUNK_LINES):
            chunk = slice(start, start + CHUNK_LINES)
            for scored in scorer.score(
                texts[chunk],
                None if sources is None else sources[chunk],
                target_language=options.into,
                window=options.window,
            ):
                total = scored.total_logprob
                line = f"{total:.4f}\t{len(scored.logprobs)}"
                if options.as_json:
                    line = json.dumps({**asdict(scored), "total_logprob": total}, ensure_ascii=False)
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            advance(len(texts[chunk]))
