"""Lines of text for the terminal."""


def join(*cells: str) -> str:
    """Return cells as one line."""
    return " ".join(cells)
