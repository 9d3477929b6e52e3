"""Search traces and sampling traces as parts of a document."""

from dataclasses import asdict, replace

import numpy as np

from regard.base.blobs import Blob, encode_f32, finite
from regard.decode.filters import FILTER_ORDER
from regard.decode.trace import DROPPED, SamplingTrace, SamplingTraceStep, Trace
from regard.look import document
from regard.look.document import Continuation, Race, SamplingJson, SearchJson
from regard.tasks.replay import Generation
from regard.tasks.search import Beam
from regard.tasks.search import Sampling as SamplingSearch

MAX_CONTENDERS = 24  # tokens of a race that are stored
MAX_LOGITS = 65_536  # logits of all sampling steps that are stored; at least one step
MOST_PROBABLE = 200  # tokens of a step whose texts are stored


def make_search(trace: Trace) -> SearchJson:
    """Return the trace of one text."""
    candidates, best = trace.candidates, trace.winners[0][0]
    settings = dict(trace.settings)
    settings["max_new_tokens"] = settings.pop("max_lengths")[0]
    return SearchJson(
        settings=settings,
        parent=[candidate.parent for candidate in candidates],
        step=[candidate.length for candidate in candidates],
        token=[candidate.token for candidate in candidates],
        logprob=[finite(candidate.logprob) for candidate in candidates],
        total=[finite(candidate.total) for candidate in candidates],
        score=[finite(candidate.score) for candidate in candidates],
        status=[candidate.status for candidate in candidates],  # type: ignore[misc]
        winners=list(trace.winners[0]),
        lineage=[candidate.number for candidate in trace.lineage(best)],
        end=trace.ends[0],
        winner_step=candidates[best].length,
        last_step=max(candidate.length for candidate in candidates),
        continuations={},
    )


def continue_candidate(generation: Generation, trace: Trace, number: int) -> Continuation:
    """Run the search again, forced to start with a candidate, until a hypothesis is finished."""
    assert isinstance(generation.search, Beam)  # noqa: S101 - sampling has no trace of candidates
    forced = [candidate.token for candidate in trace.lineage(number)[1:]]
    search = replace(generation.search, stop_after=1)
    best = replace(generation, search=search, n_best=1).run(forced=forced).hypotheses[0]
    return Continuation(
        tokens=list(best.tokens),
        forced=len(forced),
        logprobs=[finite(logprob) for logprob in best.logprobs],
        text=generation.decode(best),
        score=best.score,
    )


def best_dropped(trace: Trace, count: int) -> list[int]:
    """Return the dropped candidates of the winner's lineage that came closest, at most one per step."""
    lineage = {candidate.number for candidate in trace.lineage(trace.winners[0][0])}
    best: dict[int, int] = {}
    for candidate in trace.candidates:
        if candidate.status == DROPPED and candidate.parent in lineage:
            rival = best.get(candidate.length)
            if rival is None or candidate.total > trace.candidates[rival].total:
                best[candidate.length] = candidate.number
    return sorted(best.values(), key=lambda number: -trace.candidates[number].logprob)[:count]


def make_sampling(generation: Generation, trace: SamplingTrace, blobs: dict[str, Blob]) -> SamplingJson:
    """Return the races of one sampled text; the logits of its first steps go to `blobs`."""
    assert isinstance(generation.search, SamplingSearch)  # noqa: S101
    filters, first = asdict(generation.search.filters), len(generation.prompt)
    steps = []
    stored = MAX_LOGITS
    for index, step in enumerate(trace.rows[0]):
        name = None
        if index == 0 or stored >= len(step.logprobs):
            name = f"logits.{first + index}"
            blobs[name] = encode_f32(step.logprobs)
            stored -= len(step.logprobs)
        steps.append(
            document.SamplingStepJson(
                position=first + index,
                token=step.token,
                logprob=finite(float(step.logprobs[step.token])),
                race=_make_race(step),
                logits=name,
            )
        )
    return SamplingJson(
        filters={name: filters[name] for name in FILTER_ORDER},
        filter_order=list(FILTER_ORDER),
        seed=generation.seed,
        suppressed=generation.tokenizer.specials.not_text,
        steps=steps,
    )


def mentioned_tokens(search: SearchJson | None, trace: SamplingTrace | None) -> set[int]:
    """Return the tokens that a page may need to show."""
    tokens = set(search["token"]) if search is not None else set()
    if search is not None:
        tokens.update(token for entry in search["continuations"].values() for token in entry["tokens"])
    for step in trace.rows[0] if trace is not None else ():
        tokens.update(np.argsort(-step.logprobs, kind="stable")[:MOST_PROBABLE].tolist())
        tokens.update([step.token])
        race = _make_race(step)
        tokens.update(race["tokens"] if race is not None else ())
    return tokens


def _make_race(step: SamplingTraceStep) -> Race | None:
    if not len(step.waiting_times):
        return None
    with np.errstate(divide="ignore"):
        order = np.argsort(-(step.probabilities / step.waiting_times), kind="stable")[:MAX_CONTENDERS]
    order = order[step.probabilities[order] > 0]
    return Race(
        tokens=step.tokens[order].tolist(),
        probabilities=step.probabilities[order].astype(float).tolist(),
        times=step.waiting_times[order].astype(float).tolist(),
        contenders=int((step.probabilities > 0).sum()),
    )
