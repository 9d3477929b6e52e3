"""Instructions of rank 0 reach the other ranks as JSON."""

import json
from collections.abc import Callable

import pytest

from regard.training.distributed.instructions import Compute, Fail, Instruction, Stop, Train, receive, send
from regard.training.distributed.processes import Json, SingleProcess
from regard.training.run import run_rank_zero
from tests.training.runs import make_small_run

RUN = make_small_run("translation", {name: name for name in ("all.en", "all.de", "book.txt")})


class Mailbox(SingleProcess):
    """Two ranks in one process: rank 0 writes text, rank 1 reads it."""

    world_size = 2

    def __init__(self) -> None:
        self.texts: list[str] = []

    def broadcast(
        self, value: Json, *, patient: bool = False, while_waiting: Callable[[], object] | None = None
    ) -> Json:
        assert patient, "preparation takes hours"
        if self.is_main:
            self.texts.append(json.dumps(value))
            return value
        if while_waiting is not None:
            while_waiting()
        return json.loads(self.texts.pop(0))


@pytest.mark.parametrize(
    ("instruction", "is_last"),
    [(Compute(RUN), False), (Train(RUN, 4), True), (Stop("stop requested"), True), (Fail("no disk"), True)],
)
def test_instruction_arrives_unchanged(instruction: Instruction, is_last: bool) -> None:
    mailbox, waits = Mailbox(), list[int]()
    send(mailbox, instruction)
    assert mailbox.has_started == is_last
    mailbox.rank = 1
    assert receive(mailbox, while_waiting=lambda: waits.append(1)) == instruction
    assert waits == [1]


@pytest.mark.parametrize("sent", [[], [Compute(RUN)], [Stop("stop requested")], [Train(RUN, 1)]])
def test_error_of_rank_zero_is_sent_only_to_ranks_that_wait(sent: list[Instruction]) -> None:
    mailbox = Mailbox()
    for instruction in sent:
        send(mailbox, instruction)
    with pytest.raises(ZeroDivisionError), run_rank_zero(mailbox):
        raise ZeroDivisionError
    does_wait = all(isinstance(instruction, Compute) for instruction in sent)
    assert [json.loads(text).get("error") for text in mailbox.texts[len(sent) :]] == ["ZeroDivisionError"] * does_wait
