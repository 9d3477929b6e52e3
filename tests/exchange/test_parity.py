"""Every Hugging Face architecture with a table of names gives the same logits as our model with its weights."""

from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from regard.exchange.rules import Table, left_out, to_ours, to_theirs
from regard.models.build import AnyModel
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.heads import ClassHead
from regard.models.inputs import TokenInput
from regard.nn.positions import Sinusoidal
from tests.exchange.cases import CASES
from tests.exchange.models import POSITIONS, TOLERANCE, WIDTH, batch, difference, drawn, gradient_difference, model


@dataclass(frozen=True)
class Pair:
    table: Table
    theirs: nn.Module
    ours: AnyModel


@cache  # making models is most of the time here, and no test changes them
def _pair(name: str) -> Pair:
    """Their random model, and ours with its weights; `load_state_dict` is strict about names and shapes."""
    case = CASES[name]
    theirs, ours = drawn(case.theirs()), model(case.settings)
    ours.load_state_dict(to_ours(case.table, theirs.state_dict()))
    return Pair(case.table, theirs, ours)


@pytest.fixture(params=CASES)
def pair(request: pytest.FixtureRequest) -> Pair:
    return _pair(request.param)


def _answers(theirs: nn.Module, ours: AnyModel) -> tuple[Tensor, Tensor, Tensor]:
    """Their answer, ours, and which positions are real."""
    tokens, real = batch(20, seed=1)
    inputs = {"input_ids": tokens, "attention_mask": real.long()}
    if isinstance(ours, EncoderDecoder):
        target, target_real = batch(23, seed=2)
        theirs_logits = theirs(**inputs, decoder_input_ids=target, decoder_attention_mask=target_real.long()).logits
        return theirs_logits, ours(tokens, target, real), target_real
    if isinstance(ours, DecoderOnly):
        return theirs(**inputs).logits, ours(tokens, real), real
    assert isinstance(ours.source, TokenInput)
    types = None if ours.source.types is None else batch(20, seed=3)[0] % ours.source.types.num_embeddings
    answer = theirs(**inputs, token_type_ids=types)
    compared = real.any(dim=1) if isinstance(ours.head, ClassHead) else real
    return answer[0], ours(tokens, real, types=types), compared


def test_same_answers(pair: Pair) -> None:
    assert type(pair.theirs).__name__ == pair.table.architecture
    with torch.no_grad():
        assert difference(*_answers(pair.theirs, pair.ours)) < TOLERANCE


@pytest.mark.parametrize("name", ["gpt2-gelu", "mbart-relu", "llama-both-biases", "bert-classes-gelu"])
def test_same_gradients(name: str) -> None:
    pair = _pair(name)
    answers = _answers(pair.theirs, pair.ours)
    assert gradient_difference(pair.table, pair.theirs, pair.ours, *answers) < TOLERANCE


def test_there_and_back(pair: Pair) -> None:
    theirs, ours = pair.theirs.state_dict(), pair.ours.state_dict()
    _assert_equal(to_theirs(pair.table, to_ours(pair.table, theirs)), theirs)
    _assert_equal(to_ours(pair.table, to_theirs(pair.table, ours)), ours)


def test_files_leave_copies_and_constants_out(pair: Pair) -> None:
    whole = pair.theirs.state_dict()
    skipped = pair.table.their_copies | left_out(pair.table, whole).keys()
    part = {name: tensor for name, tensor in whole.items() if name not in skipped}
    _assert_equal(to_ours(pair.table, part), to_ours(pair.table, whole))


def _assert_equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    assert [name for name in one if not torch.equal(one[name], other[name])] == []


@pytest.mark.parametrize("name", ["marian-relu", "pegasus-relu"])
def test_marian_sinusoid_is_ours(name: str) -> None:
    theirs = _pair(name).theirs.state_dict()
    computed = Sinusoidal(WIDTH, 10000.0, interleaved=False).encode(torch.arange(POSITIONS)[None])[0]
    for side in ("encoder", "decoder"):
        assert torch.allclose(computed, theirs[f"model.{side}.embed_positions.weight"], rtol=0, atol=1e-5)
