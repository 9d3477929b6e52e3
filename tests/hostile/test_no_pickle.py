"""The package cannot load a pickle: it neither imports nor calls anything that does."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = {"pickle", "cPickle", "_pickle", "shelve", "marshal", "dill", "cloudpickle", "joblib", "jsonpickle"}
CALLS = {"torch.load", "torch.save", "torch.jit.load", "torch.package", "torch.hub", "np.load", "numpy.load"}
CALLS |= {"eval", "exec", "compile", "__import__"}
SWITCHES = {"allow_pickle", "weights_only", "trust_remote_code"}


def join_names(node: ast.expr) -> str:
    """Return a name such as `torch.load`; `ast.unparse` would take half of the time of these tests."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{join_names(value)}.{name}"
        case _:
            return ""


def find_faults(source: str) -> Iterator[str]:
    """Yield the forbidden imports, calls and arguments of a source text."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (item.name for item in names if item.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (module for _ in names if module.split(".")[0] in MODULES)
                yield from (path for item in names if (path := f"{module}.{item.name}") in CALLS)
            case ast.Call(func=function, keywords=keywords):
                if (called := join_names(function)) in CALLS:
                    yield called
                yield from (item.arg for item in keywords if item.arg in SWITCHES)
            case _:
                pass


@pytest.mark.parametrize("path", sorted(ROOT.glob("src/**/*.py")), ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_no_source_can_load_a_pickle(path: Path) -> None:
    assert list(find_faults(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import dill.source as d",
        "from marshal import loads",
        "from torch import load",
        "x = torch.load(path)",
        "np.load(path)",
        "numpy.memmap(path, allow_pickle=True)",
        "eval(text)",
        "model(trust_remote_code=True)",
    ],
)
def test_forbidden_code_is_found(source: str) -> None:
    assert len(list(find_faults(source))) == 1
