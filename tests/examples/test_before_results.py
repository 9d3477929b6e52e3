"""The kept results of long runs support, or contradict, the claims of the lectures."""

import re
from pathlib import Path

import pytest
import torch
from examples.before import positions, speed
from examples.before.gradients import make_models, measure_reach
from examples.before.report import read_section

from regard.config.codec import MODEL_FILES
from regard.models.build import build
from regard.models.cost import cost
from regard.nn.positions import Learned, Sinusoidal

NUMBER = re.compile(r"[\d.,]+(e[+-]\d+)?( M|%)?")
FOLDER = Path(__file__).parents[2] / "examples" / "before"


def read_table(part: str) -> dict[str, list[float]]:
    """Return the rows of a part's table by name; cells that are not numbers are left out."""
    rows: dict[str, list[float]] = {}
    for line in read_section(part, FOLDER).splitlines():
        if line.startswith("| ") and not line.startswith("| model"):
            name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            rows[name] = [float(cell.replace(",", "").rstrip("%M ")) for cell in cells if NUMBER.fullmatch(cell)]
    return rows


def test_a_missing_section_is_reported() -> None:
    with pytest.raises(SystemExit, match="no section 'walk'"):
        read_section("walk", FOLDER)


def test_attention_translates_better_and_longer_sentences_gain_more() -> None:
    rows = read_table("translation")
    attention, fixed = rows["additive attention"], rows["fixed vector, equal steps"]
    bleu, first, last = 3, 4, 7
    assert attention[bleu] - fixed[bleu] > 8
    assert attention[last] - fixed[last] > attention[first] - fixed[first] > 0


def test_a_shortcut_carries_the_gradient_of_a_new_model() -> None:
    """From 2 to 20 symbols the gradient vanishes through a fixed vector, and falls as 1 / n with attention."""
    rows = read_table("shortcut")
    (fixed, trained_fixed, attention, _), last = rows["2"], rows["20"]
    assert fixed / last[0] > 100
    assert attention / last[2] < 10
    assert trained_fixed / last[1] < 2, "after training it does not vanish"


def test_every_score_is_better_than_a_fixed_vector() -> None:
    rows = read_table("scores")
    fixed = rows.pop("fixed vector")
    scores = {name: row for name, row in rows.items() if len(row) == 4}
    assert set(scores) == {"scaled_dot", "dot", "general", "concat", "additive"}
    assert all(loss < fixed[0] for loss, *_ in scores.values())
    assert [name for name, (loss, spread, *_) in scores.items() if loss + spread > fixed[0]] == ["general"]


def test_the_transformer_gains_more_from_data() -> None:
    rows = read_table("data")
    transformer, gru = rows["Transformer"][1:], rows["GRU with attention"][1:]
    assert transformer[-1] - transformer[0] > gru[-1] - gru[0]


def test_without_residual_connections_depth_harms() -> None:
    rows = read_table("ablations")
    without = rows["without residual, with norm"]
    assert without == sorted(without)
    assert without[2] > rows["with residual, with norm"][2] + 1


def test_norms_speed_up_deep_models_only() -> None:
    """After equal steps, the loss with norms is lower with four layers, and not with one or two."""
    rows = read_table("ablations")
    better = [a < b for a, b in zip(rows["with residual, with norm"], rows["with residual, without norm"], strict=True)]
    assert better == [False, False, True]


def test_the_loss_without_residual_connections_is_flat_because_nothing_is_learned() -> None:
    """The kept run contradicts the lectures' picture of a smoother loss."""
    rows = read_table("surface")
    assert rows["without residual"][-1] < rows["with residual"][-1]
    assert "contradicts the lectures" in read_section("surface", FOLDER)


def test_no_position_kind_reads_longer_texts_well() -> None:
    rows = read_table("positions")
    assert all(row == sorted(row) and row[-1] > row[0] + 1 for row in rows.values() if len(row) == 3)


def test_positions_longer_than_in_training_are_finite_except_learned_and_exponential() -> None:
    x, places = torch.zeros(1, 200, 8), torch.arange(200)[None]
    assert Sinusoidal(8, 10000.0, interleaved=True).on_input(x, places).isfinite().all()
    assert not positions.Exponential().on_input(x, places).isfinite().all()
    with pytest.raises(IndexError):
        Learned(8, 128, offset=0).on_input(x, places)


def test_attention_carries_a_gradient_over_any_distance_and_a_small_rnn_loses_it() -> None:
    """New models: the RNN's recurrent weights decide whether the gradient vanishes or explodes."""
    tokens = torch.randint(20, (4, 60), generator=torch.Generator().manual_seed(1))
    models = {
        name: build(MODEL_FILES.change(settings, {"tokens.vocabulary": 20}), seed=1)
        for name, settings in make_models(16).items()
    }
    reach = measure_reach(models["Transformer"], tokens, 50)
    assert 0.2 < reach[-1] / reach[0] < 5
    rnn, ratios = models["RNN"], {}
    recurrent = rnn.get_parameter("decoder.layers.0.cell.weight_hh_l0")
    weights = recurrent.detach().clone()
    for factor in (0.3, 3.0):
        recurrent.data = factor * weights
        reach = measure_reach(rnn, tokens, 50)
        ratios[factor] = max(reach) / reach[0], reach[-1] / reach[0]
    assert ratios[0.3][1] < 1e-9, "it vanishes"
    assert ratios[3.0][0] > 3, "it explodes"


def test_recurrent_models_take_a_step_per_token_and_layer() -> None:
    for name, settings in speed.make_models(16, 50).items():
        steps = [cost(settings, batch_size=1, target=length).sequential.total() for length in (16, 512)]
        assert (steps[1] == steps[0]) == (name == "Transformer"), name
        assert name == "Transformer" or steps[1] == 32 * steps[0]
