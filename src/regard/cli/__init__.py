"""The `regard` command: one file a group of verbs. Typer and Rich live here only."""

from regard.cli.app import main

__all__ = ["main"]
