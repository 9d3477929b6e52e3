"""`regard evaluate`: score a model or a file of its output, and compare it with another system."""

import json
from os import PathLike
from typing import Any

import typer  # noqa: TID251

from regard.cli.evaluate_options import PARAMETER_TYPES, PARAMETERS, EvaluateCommandOptions
from regard.cli.evaluation_tables import print_evaluation
from regard.cli.options import takes_options
from regard.cli.progress import print_warnings, show_stages
from regard.cli.score import score_texts
from regard.cli.text_input import show_export
from regard.exchange.engine_cache import load_on_engine

EXAMPLES = """
regard evaluate my-model --source test.en --reference test.de
regard evaluate my-model --source test.en --reference test.de --other another-model
regard evaluate my-classifier --data test.tsv
regard evaluate my-book --text another-book.txt
regard evaluate my-model --score "Wo ist Tom?" --source-text "Where is Tom?"
regard evaluate my-book --score --text chapter.txt --lines --json
"""
ADVANCED = "columns train samples seed length_penalty window unconstrained probes fit_temperature fit_quality engine"


@takes_options(EvaluateCommandOptions, PARAMETERS, PARAMETER_TYPES)
def evaluate(options: EvaluateCommandOptions) -> None:
    """Evaluate a model, or a file of its output, on test data.

    Translation: BLEU, chrF, TER, exact match, word error rate, perplexity, calibration. Classification: accuracy, macro
    F1, Matthews correlation, confusion matrix. Tagging: the same per word, and entity F1. Transcription: character and
    word error rate. Captions: BLEU, chrF, exact match. Language models: (pseudo-)perplexity. Embeddings: retrieval@1.
    Image generation: bits per pixel. --other and --other-output add a paired bootstrap test.
    """
    options.check()
    with show_stages(), print_warnings():
        if options.score:
            score_texts(options)
            return
        from regard.tasks.evaluate import evaluate as run_evaluation  # imports torch: only when needed

        def load(folder: str | PathLike[str], count: int | None) -> Any:
            # The number of table rows is unknown until the table is read, so the model is not exported in that case.
            return load_on_engine(folder, options.engine.value, show_export, sentences=count or 0)

        evaluation = run_evaluation(options, load)
    if options.as_json:
        typer.echo(json.dumps(evaluation, ensure_ascii=False))
    else:
        print_evaluation(evaluation)
