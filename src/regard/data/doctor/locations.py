"""The location of every row of a corpus in 8 bytes per row: each file name is stored once."""

from array import array
from bisect import bisect_right

from regard.data.example import Location


class Locations:
    """A compact list of `Location`.

    >>> locations = Locations()
    >>> locations.add(Location("a.en", 7))
    >>> str(locations[0])
    'a.en:7'
    """

    def __init__(self) -> None:
        self._lines = array("Q")
        self._files: list[str] = []
        self._first_rows: list[int] = []

    def add(self, location: Location) -> None:
        """Append the location of the next row."""
        if not self._files or self._files[-1] != location.file:
            self._files.append(location.file)
            self._first_rows.append(len(self._lines))
        self._lines.append(location.line)

    def __getitem__(self, row: int) -> Location:
        return Location(self._files[bisect_right(self._first_rows, row) - 1], self._lines[row])

    def __len__(self) -> int:
        return len(self._lines)
