"""Compact locations of lines."""

from regard.data.doctor.locations import Locations
from regard.data.example import Location


def test_locations_are_small_and_exact() -> None:
    expected = [Location("a", 1), Location("a", 2), Location("b", 1), Location("a", 9)]
    locations = Locations()
    for location in expected:
        locations.add(location)
    assert [locations[row] for row in range(len(locations))] == expected
