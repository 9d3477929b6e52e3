"""Packages report the stages of long work, whether or not anyone listens."""

from regard.base.progress import Advance, begin, listen, track


def test_track_without_listener_yields_the_items() -> None:
    assert list(track(["a", "b"], "reading")) == ["a", "b"]


def test_listener_hears_stages_and_counts_inside_its_block_only() -> None:
    heard: list[tuple[object, ...]] = []

    def hear(stage: str, total: int | None) -> Advance:
        heard.append((stage, total))
        return lambda count: heard.append((stage, "+", count))

    with listen(hear):
        assert list(track("ab", "reading")) == ["a", "b"]
        begin("writing")(3)
    begin("deleting")(1)
    assert heard == [
        ("reading", 2),
        ("reading", "+", 1),
        ("reading", "+", 1),
        ("writing", None),
        ("writing", "+", 3),
    ]
