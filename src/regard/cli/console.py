"""The console that tables are printed on."""

from rich.console import Console  # noqa: TID251

FILE_WIDTH = 10_000


def make_console() -> Console:
    """Return a console for standard output: as wide as the terminal; without one, no line is wrapped."""
    console = Console()
    return console if console.is_terminal else Console(width=FILE_WIDTH)
