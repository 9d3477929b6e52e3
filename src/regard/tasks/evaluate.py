"""Evaluate a model, or a file of its output, on test data (`regard evaluate`)."""

from collections.abc import Callable
from dataclasses import replace

from regard.base.errors import RegardError
from regard.base.files import AnyPath
from regard.tasks.evaluation.data import add_examples, check_content, read_lines
from regard.tasks.evaluation.options import Evaluation, EvaluationData, EvaluationOptions
from regard.tasks.evaluation.outputs import evaluate_outputs
from regard.tasks.load import load
from regard.tasks.pipeline import Pipeline

Loader = Callable[[AnyPath, int | None], Pipeline]


def evaluate(options: EvaluationOptions, load_model: Loader = lambda folder, _: load(folder)) -> Evaluation:
    """Evaluate the model or file in the options; `load_model` is called with a folder and the number of inputs.

    Returns:
        The results by name: the object that `regard evaluate --json` prints.
    """
    options.check()
    system, data = read_test_data(options, load_model)
    model = system or data.other
    if model is not None and options.data_path is None:
        check_content(data, model)
    if system is None:
        return evaluate_outputs(None, data, options)
    engines = {"engine": system.engine_name} | ({} if data.other is None else {"other_engine": data.other.engine_name})
    return system.evaluate(data, options) | engines


def read_test_data(
    options: EvaluationOptions, load_model: Loader = lambda folder, _: load(folder)
) -> tuple[Pipeline | None, EvaluationData]:
    """Load the models and read the test data; line files are read before any model is loaded."""
    data = read_lines(options)
    count = None if data.inputs is None else len(data.inputs)
    system, other = (
        model if model is None or isinstance(model, Pipeline) else load_model(model, count)
        for model in (options.model, options.other)
    )
    if system is not None and other is not None and other.kind != system.kind:
        message, location = f"This is a {other.kind}, not a {system.kind}.", str(other.folder or other)
        raise RegardError(message, location=location, hint=f'Use `regard {other.command} {location} "..."`.')
    return system, replace(add_examples(data, options, system or other), other=other)
