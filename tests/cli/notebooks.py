"""A notebook as Rich recognizes one, which records the output below its cell."""

import builtins
import sys
import types

import pytest


class ZMQInteractiveShell:
    """The class of the shell by which Rich recognizes a notebook."""


class DisplayHandle:
    """The one output of the cell."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts

    def update(self, content: dict[str, str], raw: bool) -> None:
        assert raw
        self.texts.append(content["text/plain"])


def open_notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let this process be the kernel of a notebook; return the list of texts that its one output has had."""
    texts: list[str] = []

    def display(content: dict[str, str], raw: bool, display_id: bool) -> DisplayHandle:
        assert display_id
        assert not texts, "one output"
        handle = DisplayHandle(texts)
        handle.update(content, raw)
        return handle

    module = types.ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    return texts
