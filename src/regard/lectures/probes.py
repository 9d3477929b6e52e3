"""Controls with probes: values that Python computes, with which a test compares the page."""

from collections.abc import Callable, Mapping

from regard.lectures.blocks import Case, Control, Number

Inputs = Mapping[str, Number | str]


def make_control(
    name: str,
    title: str,
    params: Mapping[str, object],
    compute: Callable[..., Mapping[str, Number]],
    *inputs: Inputs,
) -> Control:
    """Return a control whose probes are the outputs of `compute` for these inputs."""
    probes = [Case(inputs=values, outputs=compute(**values)) for values in inputs]
    return Control(control=name, title=title, params=params, probes=probes)
