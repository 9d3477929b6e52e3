"""The docstrings below settings."""

from regard.config.docstrings import read_docstrings
from regard.config.parts import SettingsModel


class Parent(SettingsModel):
    size: int = 1
    """Number of
    rows."""
    depth: int = 2
    """Number of layers."""


class Child(Parent):
    depth: int = 3
    name: str = ""
    """Name of the table."""


def test_docstrings_of_fields_are_inherited_unless_redefined() -> None:
    assert read_docstrings(Child) == {"size": "Number of\nrows.", "name": "Name of the table."}
