"""Sealed checkpoints and records of a run with wrong content."""

import json
from collections.abc import Callable
from typing import Any

from tests.hostile.attack import attack
from tests.hostile.doors import Place

WHOLE = "No intact checkpoint is left"
STANDS = "has no valid progress"
DEEP = 100_000


def _edit_state(place: Place, change: Callable[[dict[str, Any]], object]) -> None:
    """Replace state.json and seal the checkpoint."""
    step = Place(place.step, place.outside, place.canary)
    step.edit("state.json", change)
    step.write_manifest()


@attack("resume", STANDS)
def state_of_wrong_types(place: Place) -> None:
    """The number of steps is a string, the losses are an object."""
    _edit_state(place, lambda state: state["progress"].update(step="many", losses={"a": []}))


@attack("resume", WHOLE)
def state_that_is_a_list(place: Place) -> None:
    """state.json holds a list."""
    _edit_state(place, lambda _: [1, 2, 3])


@attack("resume", STANDS)
def state_without_progress(place: Place) -> None:
    """state.json has no progress."""
    _edit_state(place, lambda state: state.pop("progress") and None)


@attack("resume", STANDS)
def state_with_strangers(place: Place) -> None:
    """The progress has a key that the code would pass as an argument."""
    _edit_state(place, lambda state: state["progress"].update(__class__="os.system"))


@attack("resume", STANDS)
def run_in_state_is_a_number(place: Place) -> None:
    """The settings that the checkpoint was made with are a number."""
    _edit_state(place, lambda state: state.update(run=3))


@attack("resume", WHOLE)
def deep_state(place: Place) -> None:
    """100,000 nested lists."""
    (place.step / "state.json").write_text("[" * DEEP + "]" * DEEP)
    Place(place.step, place.outside, place.canary).write_manifest()


@attack("resume", WHOLE)
def crowded_state(place: Place) -> None:
    """Three million empty lists: twenty bytes of memory for each byte of the file."""
    (place.step / "state.json").write_text('{"progress": [' + ",".join(["[]"] * 3_000_000) + "]}")
    Place(place.step, place.outside, place.canary).write_manifest()


@attack("resume", "have changed since this position")
def position_of_another_corpus(place: Place) -> None:
    """A position in the data that this corpus does not have."""
    _edit_state(place, lambda state: state["progress"]["position"].update(fingerprint="0" * 64))


@attack("resume", STANDS)
def negative_position(place: Place) -> None:
    """A negative epoch and a journal of negative length."""
    _edit_state(place, lambda state: state["progress"].update(spikes=-5, journal=-1))


@attack("resume", STANDS)
def epoch_beyond_64_bits(place: Place) -> None:
    """An epoch of 2^63, which no array of integers can hold."""
    _edit_state(place, lambda state: state["progress"]["position"].update(epoch=2**63))


@attack("resume", STANDS)
def digits_in_a_string(place: Place) -> None:
    """The number of tokens is the string "7", which a lenient parser takes for a number."""
    _edit_state(place, lambda state: state["progress"].update(tokens="7"))


@attack("resume", WHOLE)
def state_of_another_step(place: Place) -> None:
    """The checkpoint claims 400 digits of steps."""
    _edit_state(place, lambda state: state["progress"].update(step=10**400))


@attack("resume", "not a checkpoint name")
def step_in_other_digits(place: Place) -> None:
    """A checkpoint whose number is written in Arabic-Indic digits."""
    place.step.rename(place.step.with_name("step-" + "\u0660" * 7 + "\u0669"))


@attack("resume", "not a checkpoint name")
def step_of_240_digits(place: Place) -> None:
    """A checkpoint whose number has 240 digits."""
    place.step.rename(place.step.with_name("step-" + "9" * 240))


@attack("resume", "not a folder")
def file_for_a_checkpoint(place: Place) -> None:
    """A file has the name of the next checkpoint."""
    place.step.with_name("step-00000005").write_text("mine")


@attack("resume", "corpus.json")
def deep_corpus_facts(place: Place) -> None:
    """corpus.json with 100,000 nested lists."""
    (place.folder / "corpus.json").write_text("[" * DEEP + "]" * DEEP)


@attack("resume", "corpus.json")
def corpus_facts_of_wrong_types(place: Place) -> None:
    """A file in corpus.json is the number 3."""
    place.edit("corpus.json", lambda facts: dict.fromkeys(facts, 3))


@attack("resume", r"validation\.jsonl")
def examples_of_wrong_types(place: Place) -> None:
    """The validation examples are numbers, objects and too many."""
    (place.folder / "validation.jsonl").write_text('3\n{"a": 1}\n' + json.dumps([1] * 9) + "\n")


@attack("resume", r"validation\.jsonl")
def deep_examples(place: Place) -> None:
    """A validation example of 100,000 nested lists."""
    (place.folder / "validation.jsonl").write_text("[" * DEEP + "]" * DEEP + "\n")
