"""Tables of generated rows."""

from collections.abc import Callable, Sequence

ROWS = 40


def make(*columns: str | Callable[[int], str], separator: str = "\t", header: Sequence[str] = ()) -> str:
    """Return a table; `{}` in a column is the number of the row."""
    rows = [
        [column(n) if callable(column) else column.replace("{}", str(n)) for column in columns] for n in range(ROWS)
    ]
    return "".join(f"{separator.join(row)}\n" for row in [*([header] if header else []), *rows])
