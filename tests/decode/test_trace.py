"""What a search writes down is what it did."""

import json
from collections import Counter

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.beam import beam
from regard.decode.greedy import greedy
from regard.decode.step import Hypothesis
from regard.decode.trace import BEATEN, DROPPED, FINISHED, OPEN, Candidate, Trace
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.state import DecodingState
from regard.nn.record import Record
from tests.decode.tables import BEGIN, END, Table
from tests.pipeline.made import tokenizer, translating_model, translator_settings

SENTENCES, LONGEST = [0, 1, 2], [5, 3, 6]
NEVER = torch.tensor([BEGIN])


def first(rows: int = 3) -> Tensor:
    return torch.full((rows, 1), BEGIN)


def traced_beam(table: Table, trace: Trace | None, best: int = 2, enough: int | None = None) -> list[list[Hypothesis]]:
    state = table.start(SENTENCES)
    options = {"size": 3, "end": END, "longest": LONGEST, "alpha": 0.7, "best": best, "enough": enough, "never": NEVER}
    return beam(table.step, state, first(), trace=trace, **options)  # type: ignore[arg-type]


def traced_greedy(table: Table, trace: Trace | None) -> list[list[Hypothesis]]:
    found = greedy(
        table.step, table.start(SENTENCES), first(), end=END, longest=LONGEST, alpha=0.7, never=NEVER, trace=trace
    )
    return [[one] for one in found]


@pytest.mark.parametrize("search", [traced_beam, traced_greedy])
def test_a_trace_changes_nothing_and_leads_to_what_was_found(search) -> None:  # type: ignore[no-untyped-def]
    for seed in range(20):
        trace = Trace()
        found = search(Table(7, seed), trace)
        assert found == search(Table(7, seed), None)
        for sentence, hypotheses in enumerate(found):
            assert len(trace.winners[sentence]) == len(hypotheses)
            for number, text in zip(trace.winners[sentence], hypotheses, strict=True):
                path = trace.lineage(number)
                assert path[0] == trace.candidates[sentence]
                assert [one.place for one in path] == list(range(len(path)))
                assert tuple(one.token for one in path[1:]) == text.tokens
                assert tuple(one.log for one in path[1:]) == text.logs
                assert path[-1].score == pytest.approx(text.score, abs=1e-9)
                assert {one.fate for one in path[:-1]} == {OPEN}
                assert path[-1].fate == FINISHED


@pytest.mark.parametrize("enough", [None, 1])
def test_beam_writes_down_every_candidate(enough: int | None) -> None:
    fates: Counter[str] = Counter()
    for seed in range(20):
        table, trace = Table(7, seed), Trace()
        traced_beam(table, trace, enough=enough)
        steps: dict[tuple[int, int], list[Candidate]] = {}
        for one in trace.candidates[len(SENTENCES) :]:
            parent = trace.candidates[one.parent]
            assert (parent.sentence, parent.place + 1, parent.fate) == (one.sentence, one.place, OPEN)
            assert one.total == pytest.approx(parent.total + one.log)
            text = [step.token for step in trace.lineage(one.number)[1:]]
            assert one.log == pytest.approx(table.logs(one.sentence, text)[-1], abs=1e-5)
            steps.setdefault((one.sentence, one.place), []).append(one)
            fates[one.fate] += 1
        for (sentence, place), some in steps.items():
            _check_step(some, sentence, place)
    assert fates.keys() == {OPEN, FINISHED, DROPPED, BEATEN}


def _check_step(some: list[Candidate], sentence: int, place: int) -> None:
    """The rules of the search, from what it wrote down of one step."""
    assert len(some) == 6  # 2 x size of 3; the first step has 6 words, too
    assert [one.total for one in some] == sorted((one.total for one in some), reverse=True)
    last = place == LONGEST[sentence]
    ends = [one for one in some[:3] if one.token == END or last]
    goes_on = [] if last else [one for one in some if one.token != END][:3]
    assert [one for one in some if one.fate == FINISHED] == ends
    assert [one for one in some if one.fate in (OPEN, BEATEN)] == goes_on
    assert len({one.fate for one in goes_on}) <= 1  # a sentence is done, or not


def test_greedy_writes_down_its_choice_and_the_next_best() -> None:
    table, trace = Table(7, 4), Trace(shown=3)
    traced_greedy(table, trace)
    by_step: dict[tuple[int, int], list[Candidate]] = {}
    for one in trace.candidates[3:]:
        by_step.setdefault((one.sentence, one.place), []).append(one)
    for (sentence, _), some in by_step.items():
        before = tuple(one.token for one in trace.lineage(some[0].parent)[1:])
        logs = table.logits(sentence, (BEGIN, *before)).log_softmax(dim=-1).index_fill(0, NEVER, -torch.inf)
        assert [one.token for one in some] == logs.topk(3).indices.tolist()
        assert [one.fate for one in some[1:]] == [DROPPED, DROPPED]
        assert some[0].fate in (OPEN, FINISHED)


def test_rows_that_wait_to_leave_are_not_told() -> None:
    """Of many rows a finished one stays for a while; what it writes then is nobody's."""
    table, many = Table(7, 4), list(range(40))
    limits = [1 + sentence // 2 for sentence in many]
    state = table.start(many)
    trace = Trace(look=lambda: np.zeros((len(state.histories), 1)))
    found = greedy(table.step, state, first(40), end=END, longest=limits, trace=trace, never=torch.tensor([END]))
    assert max(state.reordered) < 40 - 2  # two are finished at every step, and more leave together
    assert trace.looks.keys() == {one.number for one in trace.candidates if one.fate == OPEN}
    finished = [one for one in trace.candidates if one.fate == FINISHED]
    assert len(finished) == 40
    for one in finished:
        assert tuple(step.token for step in trace.lineage(one.number)[1:]) == found[one.sentence].tokens


def test_a_record_stays_as_it_was_when_rows_move() -> None:
    model: EncoderDecoder = translating_model(translator_settings(), 3).eval()
    name = next(layer.cross.name for layer in model.decoder.layers if layer.cross is not None)
    with torch.inference_mode():
        state, record = model.start(torch.randint(10, 250, (3, 7)), capacity=4), Record()
        model.step(torch.tensor([[5], [6], [7]]), state, record)
        before = record.weights(name).clone()
        state.reorder(torch.tensor([2, 1]))  # the last takes the place of the first
        assert torch.equal(record.weights(name), before)


def test_it_is_plain_data() -> None:
    trace = Trace(look=lambda: np.zeros((1, 2)))
    table = Table(4, 0)
    beam(table.step, table.start([0]), first(1), size=1, end=END, longest=[3], trace=trace)
    read = json.loads(json.dumps(trace.plain()))
    assert [Candidate(**one) for one in read["candidates"]] == trace.candidates
    assert read["winners"] == trace.winners
    assert read["looks"]["0"] == [0.0, 0.0]


def test_a_trace_may_be_used_again() -> None:
    trace, fresh = Trace(), Trace()
    traced_beam(Table(7, 0), trace)
    traced_beam(Table(7, 1), trace)
    traced_beam(Table(7, 1), fresh)
    assert trace == fresh


@pytest.mark.parametrize("size", [1, 3])
def test_what_was_looked_at_follows_the_lineage(size: int) -> None:
    """Rows move, leave and share memories; along a lineage there must be what one plain pass over the text shows."""
    model: EncoderDecoder = translating_model(translator_settings(), 3).eval()
    specials = tokenizer().specials
    draw = torch.Generator().manual_seed(1)
    source, real = torch.randint(10, 250, (3, 7), generator=draw), torch.arange(7) < torch.tensor([[7], [3], [5]])
    names = [layer.cross.name for layer in model.decoder.layers if layer.cross is not None]
    record = Record()

    def step(tokens: Tensor, state: DecodingState) -> Tensor:
        return model.step(tokens, state, record)

    def look() -> NDArray[np.float32]:
        return torch.stack([record.weights(name)[:, :, -1] for name in names], dim=1).numpy()  # (R, layers, H, S)

    trace, begin = Trace(look=look), torch.full((3, 1), specials.bos)
    with torch.inference_mode():
        state = model.start(source, real, capacity=9)
        if size == 1:
            greedy(step, state, begin, end=specials.eos, longest=[9, 4, 6], trace=trace)
        else:
            beam(step, state, begin, size=size, end=specials.eos, longest=[9, 4, 6], best=2, trace=trace)
        assert trace.looks.keys() == {one.number for one in trace.candidates if one.fate == OPEN}  # all that was read
        for sentence, numbers in enumerate(trace.winners):
            for number in numbers:
                text = [one.token for one in trace.lineage(number)[1:]]
                whole = Record()
                target = torch.tensor([[specials.bos, *text[:-1]]])
                model(source[[sentence]], target, real[[sentence]], record=whole)
                wanted = torch.stack([whole.weights(name)[0].transpose(0, 1) for name in names], dim=1)  # (T, layers..)
                assert torch.from_numpy(trace.looked(number)).allclose(wanted, atol=1e-5)
