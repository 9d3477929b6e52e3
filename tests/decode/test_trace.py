"""Search traces: what they record equals what the search did."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.decode.beam import beam
from regard.decode.filters import Filters
from regard.decode.greedy import greedy
from regard.decode.protocol import Hypothesis
from regard.decode.sample import sample
from regard.decode.trace import BEATEN, DROPPED, FINISHED, OPEN, SamplingTrace, Trace, TraceCandidate
from regard.models.encoder_decoder import EncoderDecoder
from regard.nn.kv_cache import DecodingState
from regard.nn.record import Record
from tests.decode.table_models import BOS, EOS, TableModel
from tests.tasks.factories import make_encoder_decoder, make_tokenizer, make_translator_settings

SENTENCES, MAX_LENGTHS = [0, 1, 2], [5, 3, 6]
SUPPRESSED = torch.tensor([BOS])


def make_prompt(rows: int = 3) -> Tensor:
    return torch.full((rows, 1), BOS)


def traced_beam(
    table: TableModel, trace: Trace | None, n_best: int = 2, stop_after: int | None = None
) -> list[list[Hypothesis]]:
    state = table.start(SENTENCES)
    options = {
        "beam_size": 3,
        "eos": EOS,
        "max_lengths": MAX_LENGTHS,
        "length_penalty": 0.7,
        "n_best": n_best,
        "stop_after": stop_after,
        "exact": True,
        "suppress_tokens": SUPPRESSED,
    }
    return beam(table.step, state, make_prompt(), trace=trace, **options)  # type: ignore[arg-type]


def traced_greedy(table: TableModel, trace: Trace | None) -> list[list[Hypothesis]]:
    hypotheses = greedy(
        table.step,
        table.start(SENTENCES),
        make_prompt(),
        eos=EOS,
        max_lengths=MAX_LENGTHS,
        length_penalty=0.7,
        suppress_tokens=SUPPRESSED,
        trace=trace,
    )
    return [[hypothesis] for hypothesis in hypotheses]


@pytest.mark.parametrize("search", [traced_beam, traced_greedy])
def test_trace_changes_nothing_and_contains_the_result(search) -> None:  # type: ignore[no-untyped-def]
    for seed in range(20):
        trace = Trace()
        result = search(TableModel(7, seed), trace)
        assert result == search(TableModel(7, seed), None)
        for sentence, hypotheses in enumerate(result):
            assert len(trace.winners[sentence]) == len(hypotheses)
            for number, text in zip(trace.winners[sentence], hypotheses, strict=True):
                path = trace.lineage(number)
                assert path[0] == trace.candidates[sentence]
                assert [candidate.length for candidate in path] == list(range(len(path)))
                assert tuple(candidate.token for candidate in path[1:]) == text.tokens
                assert tuple(candidate.logprob for candidate in path[1:]) == text.logprobs
                assert path[-1].score == pytest.approx(text.score, abs=1e-9)
                assert {candidate.status for candidate in path[:-1]} == {OPEN}
                assert path[-1].status == FINISHED


@pytest.mark.parametrize("stop_after", [None, 1])
def test_beam_records_every_candidate(stop_after: int | None) -> None:
    status_counts: Counter[str] = Counter()
    for seed in range(20):
        table, trace = TableModel(7, seed), Trace()
        traced_beam(table, trace, stop_after=stop_after)
        steps: dict[tuple[int, int], list[TraceCandidate]] = {}
        for candidate in trace.candidates[len(SENTENCES) :]:
            parent = trace.candidates[candidate.parent]
            assert (parent.sentence, parent.length + 1, parent.status) == (candidate.sentence, candidate.length, OPEN)
            assert candidate.total == pytest.approx(parent.total + candidate.logprob)
            text = [step.token for step in trace.lineage(candidate.number)[1:]]
            assert candidate.logprob == pytest.approx(table.logprobs(candidate.sentence, text)[-1], abs=1e-5)
            steps.setdefault((candidate.sentence, candidate.length), []).append(candidate)
            status_counts[candidate.status] += 1
        for (sentence, length), step_candidates in steps.items():
            _check_step(step_candidates, sentence, length)
    assert status_counts.keys() == {OPEN, FINISHED, DROPPED, BEATEN}


def _check_step(candidates: list[TraceCandidate], sentence: int, length: int) -> None:
    """Check the rules of beam search on the recorded candidates of one step."""
    assert len(candidates) == 6  # 2 x beam_size of 3; the first step has 6 tokens, too
    assert [candidate.total for candidate in candidates] == sorted(
        (candidate.total for candidate in candidates), reverse=True
    )
    is_last = length == MAX_LENGTHS[sentence]
    finished = [candidate for candidate in candidates[:3] if candidate.token == EOS or is_last]
    continued = [] if is_last else [candidate for candidate in candidates if candidate.token != EOS][:3]
    assert [candidate for candidate in candidates if candidate.status == FINISHED] == finished
    assert [candidate for candidate in candidates if candidate.status in (OPEN, BEATEN)] == continued
    assert len({candidate.status for candidate in continued}) <= 1  # a sentence is done, or not


def test_greedy_records_its_choice_and_the_next_best() -> None:
    table, trace = TableModel(7, 4), Trace(candidates_per_step=3)
    traced_greedy(table, trace)
    by_step: dict[tuple[int, int], list[TraceCandidate]] = {}
    for candidate in trace.candidates[3:]:
        by_step.setdefault((candidate.sentence, candidate.length), []).append(candidate)
    for (sentence, _), candidates in by_step.items():
        prefix = tuple(candidate.token for candidate in trace.lineage(candidates[0].parent)[1:])
        logprobs = table.logits(sentence, (BOS, *prefix)).log_softmax(dim=-1).index_fill(0, SUPPRESSED, -torch.inf)
        assert [candidate.token for candidate in candidates] == logprobs.topk(3).indices.tolist()
        assert [candidate.status for candidate in candidates[1:]] == [DROPPED, DROPPED]
        assert candidates[0].status in (OPEN, FINISHED)


def test_finished_rows_are_not_recorded() -> None:
    """A finished row stays in a large batch for some steps; the trace ignores what it generates then."""
    table, sentences = TableModel(7, 4), list(range(40))
    max_lengths = [1 + sentence // 2 for sentence in sentences]
    state = table.start(sentences)
    trace = Trace(read_attention=lambda: np.zeros((len(state.histories), 1)))
    hypotheses = greedy(
        table.step,
        state,
        make_prompt(40),
        eos=EOS,
        max_lengths=max_lengths,
        trace=trace,
        suppress_tokens=torch.tensor([EOS]),
    )
    assert max(state.reordered_row_counts) < 40 - 2  # two finish at every step, and several are removed at once
    assert trace.attention_rows.keys() == {
        candidate.number for candidate in trace.candidates if candidate.status == OPEN
    }
    finished = [candidate for candidate in trace.candidates if candidate.status == FINISHED]
    assert len(finished) == 40
    for candidate in finished:
        assert (
            tuple(step.token for step in trace.lineage(candidate.number)[1:]) == hypotheses[candidate.sentence].tokens
        )


def test_recorded_attention_is_unchanged_by_reorder() -> None:
    model: EncoderDecoder = make_encoder_decoder(make_translator_settings(), 3).eval()
    name = next(layer.cross.name for layer in model.decoder.layers if layer.cross is not None)
    with torch.inference_mode():
        state, record = model.start(torch.randint(10, 250, (3, 7)), capacity=4), Record()
        model.step(torch.tensor([[5], [6], [7]]), state, record)
        before = record.weights(name).clone()
        state.reorder(torch.tensor([2, 1]))  # the last row replaces the first
        assert torch.equal(record.weights(name), before)


def test_trace_converts_to_json() -> None:
    trace = Trace(read_attention=lambda: np.zeros((1, 2)))
    table = TableModel(4, 0)
    beam(table.step, table.start([0]), make_prompt(1), beam_size=1, eos=EOS, max_lengths=[3], trace=trace)
    read = json.loads(json.dumps(trace.to_dict()))
    assert [TraceCandidate(**candidate) for candidate in read["candidates"]] == trace.candidates
    assert read["winners"] == trace.winners
    assert read["attention"]["0"] == [0.0, 0.0]


def test_trace_can_be_reused() -> None:
    trace, fresh = Trace(), Trace()
    traced_beam(TableModel(7, 0), trace)
    traced_beam(TableModel(7, 1), trace)
    traced_beam(TableModel(7, 1), fresh)
    assert trace == fresh


@pytest.mark.parametrize("size", [1, 3])
def test_attention_follows_the_lineage(size: int) -> None:
    """Rows are reordered, dropped and share memory; the attention of a lineage equals that of one forward pass."""
    model: EncoderDecoder = make_encoder_decoder(make_translator_settings(), 3).eval()
    specials = make_tokenizer().specials
    generator = torch.Generator().manual_seed(1)
    source, valid = torch.randint(10, 250, (3, 7), generator=generator), torch.arange(7) < torch.tensor([[7], [3], [5]])
    names = [layer.cross.name for layer in model.decoder.layers if layer.cross is not None]
    record = Record()

    def step(tokens: Tensor, state: DecodingState) -> Tensor:
        return model.step(tokens, state, record)

    def read_attention() -> NDArray[np.float32]:
        return torch.stack([record.weights(name)[:, :, -1] for name in names], dim=1).numpy()  # (R, layers, H, S)

    trace, prompt = Trace(read_attention=read_attention), torch.full((3, 1), specials.bos)
    with torch.inference_mode():
        state = model.start(source, valid, capacity=9)
        if size == 1:
            greedy(step, state, prompt, eos=specials.eos, max_lengths=[9, 4, 6], trace=trace)
        else:
            beam(step, state, prompt, beam_size=size, eos=specials.eos, max_lengths=[9, 4, 6], n_best=2, trace=trace)
        assert trace.attention_rows.keys() == {
            candidate.number for candidate in trace.candidates if candidate.status == OPEN
        }  # all tokens read
        for sentence, numbers in enumerate(trace.winners):
            for number in numbers:
                text = [candidate.token for candidate in trace.lineage(number)[1:]]
                full_record = Record()
                target = torch.tensor([[specials.bos, *text[:-1]]])
                model(source[[sentence]], target, valid[[sentence]], record=full_record)
                expected = torch.stack(
                    [full_record.weights(name)[0].transpose(0, 1) for name in names], dim=1
                )  # (T, layers..)
                assert torch.from_numpy(trace.attention(number)).allclose(expected, atol=1e-5)


@pytest.mark.parametrize("stop_after", [None, 1])
def test_a_trace_holds_the_settings_and_why_each_search_ended(stop_after: int | None) -> None:
    reasons: set[str] = set()
    for seed in range(6):
        trace, table = Trace(), TableModel(6, seed)
        traced_beam(table, trace, n_best=1, stop_after=stop_after)
        assert trace.settings == {
            "search": "beam",
            "beam_size": 3,
            "length_penalty": "|y|^0.7",
            "n_best": 1,
            "stop_after": stop_after,
            "exact": True,
            "max_lengths": MAX_LENGTHS,
        }
        for sentence, reason in enumerate(trace.ends):
            candidates = [candidate for candidate in trace.candidates if candidate.sentence == sentence]
            length = max(candidate.length for candidate in candidates)
            (winner,) = trace.winners[sentence]
            best_open = max((c.total for c in candidates if c.status == BEATEN and c.length == length), default=-np.inf)
            is_bounded = trace.candidates[winner].score >= best_open / MAX_LENGTHS[sentence] ** 0.7
            finished = sum(candidate.status == FINISHED for candidate in candidates)
            expected = "max_new_tokens" if length == MAX_LENGTHS[sentence] else "bound" if is_bounded else "stop_after"
            assert reason == expected
            assert reason != "stop_after" or finished >= 1
            reasons.add(str(reason))
    assert reasons == ({"max_new_tokens", "bound"} if stop_after is None else {"stop_after"})


def test_greedy_search_ends_with_eos_or_the_maximum_length() -> None:
    reasons = set()
    for seed in range(6):
        trace = Trace()
        hypotheses = traced_greedy(TableModel(6, seed), trace)
        assert trace.settings["search"] == "greedy"
        for (hypothesis,), reason in zip(hypotheses, trace.ends, strict=True):
            assert reason == ("eos" if hypothesis.ended else "max_new_tokens")
            reasons.add(reason)
    assert reasons == {"eos", "max_new_tokens"}


@pytest.mark.parametrize(
    "filters",
    [
        Filters(),
        Filters(temperature=0),
        Filters(temperature=0.7, top_k=4),
        Filters(top_p=0.8, min_p=0.1),
        Filters(typical_p=0.7, repetition_penalty=1.3, no_repeat_ngram=2),
    ],
)
def test_a_sampling_trace_shows_the_race_that_took_place(filters: Filters) -> None:
    def draw(trace: SamplingTrace | None) -> list[Hypothesis]:
        table = TableModel(8, 3, sharpness=1.0)
        generator = torch.Generator().manual_seed(5)
        options = {"eos": EOS, "max_lengths": [6, 4, 8], "filters": filters, "suppress_tokens": SUPPRESSED}
        return sample(table.step, table.start([0, 1, 2]), make_prompt(), generator=generator, trace=trace, **options)  # type: ignore[arg-type]

    trace = SamplingTrace()
    hypotheses = draw(trace)
    assert hypotheses == draw(None), "a trace changes nothing"
    for hypothesis, steps in zip(hypotheses, trace.rows, strict=True):
        assert tuple(step.token for step in steps) == hypothesis.tokens
        for position, step in enumerate(steps):
            assert step.history == (BOS, *hypothesis.tokens[:position])
            assert step.logprobs[step.token] == pytest.approx(hypothesis.logprobs[position], abs=1e-6)
            assert step.allowed[BOS] == -np.inf
            if filters.temperature > 0:
                assert step.tokens[(step.probabilities / step.waiting_times).argmax()] == step.token
            distribution = np.zeros(8, np.float32)
            distribution[step.tokens] = step.probabilities
            allowed = torch.from_numpy(step.logprobs)[None].index_fill(1, SUPPRESSED, -np.inf)
            stages = filters.stages(allowed, torch.tensor([step.history]))
            final = stages[-1][1] if stages else allowed.softmax(dim=1)
            np.testing.assert_allclose(distribution, final[0].numpy(), atol=1e-6)


def test_stages_renormalise_what_each_filter_keeps() -> None:
    filters = Filters(temperature=0.5, top_k=5, top_p=0.9, min_p=0.1, typical_p=0.95, repetition_penalty=1.2)
    logprobs = torch.randn(3, 20, generator=torch.Generator().manual_seed(1)).log_softmax(dim=1)
    stages = filters.stages(logprobs, torch.tensor([[0, 1], [2, 3], [4, 5]]))
    assert [name for name, _ in stages] == ["repetition_penalty", "temperature", "top_k", "top_p", "min_p", "typical_p"]
    counts = []
    for _, distribution in stages:
        torch.testing.assert_close(distribution.sum(dim=1), torch.ones(3))
        counts.append((distribution > 0).sum(dim=1))
    assert all(bool((after <= before).all()) for before, after in itertools.pairwise(counts))
    assert bool((counts[2] == 5).all())
