"""Where every row of a corpus stands, in 8 bytes a row: file names are kept once."""

from array import array
from bisect import bisect_right

from regard.data.example import Location


class Locations:
    """A list of `Where` that is small however long it is.

    >>> places = Locations()
    >>> places.add(Location("a.en", 7))
    >>> str(places[0])
    'a.en:7'
    """

    def __init__(self) -> None:
        self._lines = array("Q")
        self._files: list[str] = []
        self._first_rows: list[int] = []

    def add(self, where: Location) -> None:
        """Note the next row's place."""
        if not self._files or self._files[-1] != where.file:
            self._files.append(where.file)
            self._first_rows.append(len(self._lines))
        self._lines.append(where.line)

    def __getitem__(self, row: int) -> Location:
        return Location(self._files[bisect_right(self._first_rows, row) - 1], self._lines[row])

    def __len__(self) -> int:
        return len(self._lines)
