"""Search and sampling in a document: nodes replay to the hypothesis, races to the drawn token."""

import math

import numpy as np
import pytest
import torch

from regard.base.blobs import decode_blob
from regard.base.errors import RegardError
from regard.decode.filters import Filters
from regard.look.build import look_into
from regard.look.look import Look
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.search import Beam, Sampling
from regard.tasks.translation.ensemble import EnsembleTranslator
from regard.tasks.translation.translator import Translator
from tests.look.conftest import SOURCE


def test_nodes_replay_to_the_hypothesis(translation_look: Look) -> None:
    document, search = translation_look.document, translation_look.document["search"]
    assert search is not None
    assert search["settings"] == {
        "search": "beam",
        "beam_size": 3,
        "length_penalty": "|y|^1",
        "n_best": 2,
        "stop_after": None,
        "exact": False,
        "max_new_tokens": 8,
    }
    for winner, hypothesis in zip(search["winners"], document["hypotheses"], strict=True):
        path = [winner]
        while search["step"][path[-1]]:
            path.append(search["parent"][path[-1]])
        path = path[::-1]
        if winner == search["winners"][0]:
            assert path == search["lineage"]
        assert [search["token"][node] for node in path[1:]] == [token["id"] for token in hypothesis["tokens"]]
        total = math.fsum(search["logprob"][node] or 0.0 for node in path)
        assert search["total"][winner] == pytest.approx(total, abs=1e-5)
        assert search["score"][winner] == pytest.approx(total / (len(path) - 1), abs=1e-5)
    assert search["winner_step"] <= search["last_step"] == max(search["step"])
    assert search["end"] in ("bound", "max_new_tokens")
    assert {str(token) for token in search["token"][1:]} <= document["vocabulary"].keys()


def test_a_forced_candidate_leads_on_from_itself(translation_look: Look) -> None:
    search, trace = translation_look.document["search"], translation_look.run.generated
    assert search is not None
    assert trace is not None
    assert trace.trace is not None
    assert search["continuations"]
    for key, continuation in search["continuations"].items():
        forced = trace.trace.lineage(int(key))[1:]
        assert search["status"][int(key)] == "dropped"
        assert continuation["tokens"][: continuation["forced"]] == [candidate.token for candidate in forced]
        for logprob, candidate in zip(continuation["logprobs"], forced, strict=False):
            assert logprob == pytest.approx(candidate.logprob, abs=1e-5)
        assert translation_look.continue_from(int(key))[0] == continuation
    finished = search["status"].index("finished")
    continuation, vocabulary = translation_look.continue_from(finished)
    assert len(continuation["tokens"]) == search["step"][finished]
    assert {str(token) for token in continuation["tokens"]} == vocabulary.keys()
    for number in (0, -1, len(search["token"])):
        with pytest.raises(RegardError, match="no candidate"):
            translation_look.continue_from(number)


def test_any_candidate_can_be_aligned(translation_look: Look) -> None:
    search = translation_look.document["search"]
    assert search is not None
    answer = translation_look.hypothesis(search["winners"][0])
    winner = translation_look.document["hypotheses"][0]
    assert answer["hypothesis"]["tokens"] == winner["tokens"]
    assert answer["blobs"][answer["hypothesis"]["cross"]] == translation_look.document["blobs"][winner["cross"]]
    dropped = search["status"].index("dropped", 20)
    assert len(translation_look.hypothesis(dropped)["hypothesis"]["tokens"]) == search["step"][dropped]


def test_races_are_won_by_the_drawn_token(generator: TextGenerator, continuation_look: Look) -> None:
    document, sampling = continuation_look.document, continuation_look.document["sampling"]
    assert sampling is not None
    assert document["output"] == generator.generate("A little", 6, seed=4).text
    target = document["sequences"]["target"]
    filters = Filters(**{name: value for name, value in sampling["filters"].items() if value is not None})  # type: ignore[arg-type]
    for step in sampling["steps"]:
        race = step["race"]
        assert race is not None
        assert target[step["position"]]["id"] == step["token"] == race["tokens"][0]
        assert target[step["position"]]["logprob"] == step["logprob"]
        speeds = np.array(race["probabilities"]) / np.array(race["times"])
        assert (np.diff(speeds) <= 0).all()
        logits = torch.tensor(decode_blob(document["blobs"][step["logits"] or ""]))
        logits[sampling["suppressed"]] = -torch.inf
        distribution = filters.probabilities(logits[None])[0]
        assert race["probabilities"] == pytest.approx(distribution[race["tokens"]].tolist(), abs=1e-6)
        assert race["contenders"] == int((distribution > 0).sum())
        assert {str(token) for token in race["tokens"]} <= document["vocabulary"].keys()
        assert continuation_look.logits(step["position"]) == document["blobs"][step["logits"] or ""]


def test_all_searches_of_both_kinds_of_models(generator: TextGenerator, translator: Translator) -> None:
    searched = look_into(generator, "A little", search=Beam(2), max_new_tokens=4).document
    assert searched["search"] is not None
    assert searched["sampling"] is None
    greedy = look_into(
        generator, "A little", search=Sampling(filters=Filters(temperature=0)), max_new_tokens=4
    ).document
    assert greedy["sampling"] is not None
    assert [step["race"] for step in greedy["sampling"]["steps"]] == [None] * 4
    sampled = look_into(translator, SOURCE, search=Sampling(), max_new_tokens=4, seed=3).document
    assert sampled["output"] == translator.translate(SOURCE, Sampling(), max_new_tokens=4, seed=3).text
    assert sampled["hypotheses"][0]["candidate"] == -1
    with pytest.raises(RegardError, match="one text"):
        look_into(generator, "A little", search=Sampling(3))
    with pytest.raises(RegardError, match="empty"):
        look_into(translator, " ")
    with pytest.raises(RegardError, match="ensemble"):
        look_into(EnsembleTranslator([translator, translator]), SOURCE)


def test_predictions_of_encoders(looks: dict[str, Look]) -> None:
    filled = looks["masked_lm"].document
    mask = looks["masked_lm"].run.input.source[filled["predictions"][0]["position"] or 0]
    assert filled["sequences"]["source"][filled["predictions"][0]["position"] or 0]["text"] == "<mask>"
    assert [prediction["position"] for prediction in filled["predictions"]] == [
        index for index, token in enumerate(filled["sequences"]["source"]) if token["id"] == mask
    ]
    label = looks["text_classification"].document["predictions"][0]
    assert label["labels"][0] == looks["text_classification"].document["output"]
    assert sum(label["probabilities"]) == pytest.approx(1.0)
    ablation = looks["text_classification"].document["ablation"]
    assert ablation is not None
    assert ablation["baseline"] == pytest.approx(math.log(label["probabilities"][0]), abs=1e-5)
    assert len(looks["tagging"].document["predictions"]) == 3
