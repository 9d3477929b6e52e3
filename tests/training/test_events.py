"""Events of a run."""

from pathlib import Path
from typing import get_args

from regard.base.formatting import CompactRepr
from regard.training.events import Event, Finished, Spiked, Validated


def test_events_and_their_reprs_are_short() -> None:
    assert all(issubclass(event, CompactRepr) for event in get_args(Event))
    assert (
        repr(Spiked(3, "the loss is 10.5", "skipped")) == "Spiked(step=3, fault='the loss is 10.5', action='skipped')"
    )
    validated = Validated(3, {"loss": 3.4120398}, is_best=True, signatures={"bleu": "tok:13a"})
    assert repr(validated) == "Validated(step=3, scores={'loss': 3.412}, is_best=True)"
    assert repr(Finished(3, "finished", Path("new"))) == "Finished(step=3, reason='finished', folder='new')"
