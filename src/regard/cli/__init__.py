"""The `regard` command: one file per command or group of commands. Only this package imports Typer and Rich."""

from regard.cli.app import main

__all__ = ["main"]
