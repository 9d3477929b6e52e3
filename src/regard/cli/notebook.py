"""Notebook cell output that is updated in place."""

from typing import Any


class NotebookOutput:
    """Text below a cell; `Console.is_jupyter` is True in a notebook."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, text: str) -> None:
        """Replace the text."""
        from IPython.display import display  # every notebook has it

        if self._handle is None:
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)
