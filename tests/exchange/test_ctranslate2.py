"""CTranslate2 folders: every shape that `exportable_to` claims, types, tables, and what is refused."""

from pathlib import Path

import ctranslate2
import pytest
import torch

from regard.base.errors import RegardError
from regard.config.codec import MODEL_FILES
from regard.exchange.ctranslate2 import TYPES, count_positions, make_spec, write_ctranslate2
from regard.exchange.exportable import exportable_to
from tests.exchange.ctranslate2_models import (
    CASES,
    SOURCES,
    STACKS,
    Export,
    Settings,
    as_text,
    make_decoder_only,
    make_encoder_decoder,
    make_encoder_only,
    make_stack,
    make_stored_model,
)

CLOSE = 2e-5


def is_exportable(settings: Settings) -> bool:
    (verdict,) = [verdict for verdict in exportable_to(MODEL_FILES.parse(settings)) if verdict.target == "ctranslate2"]
    return verdict.is_exact


@pytest.mark.parametrize("name", CASES)
def test_equal_outputs(name: str, tmp_path: Path) -> None:
    assert is_exportable(CASES[name])
    stored = make_stored_model(CASES[name])
    write_ctranslate2(tmp_path, stored)
    export = Export(stored, tmp_path)
    assert export.measure_difference() < CLOSE
    if not name.startswith("encoder-only"):
        assert all(export.compare_greedy())


def test_relative_positions_of_decoder_only_models_fail_after_a_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason for an obstacle: if an engine repairs this, the obstacle can go."""
    stored = make_stored_model(make_decoder_only(STACKS["relative"]))
    assert not is_exportable(make_decoder_only(STACKS["relative"]))
    monkeypatch.setattr("regard.exchange.ctranslate2.check_exportable", lambda _: None)
    write_ctranslate2(tmp_path, stored)
    export = Export(stored, tmp_path)
    assert export.measure_difference() < CLOSE  # without a cache
    prompts = [[(7 * row + 3 * column) % 250 for column in range(8)] for row in range(12)]
    assert not all(export.compare_greedy(prompts, length=24))


def test_norms_of_other_eps_and_scaled_types_are_obstacles() -> None:
    attention = {"heads": 4, "query_key_norm": {"kind": "layer", "eps": 1e-3}}
    assert not is_exportable(make_decoder_only(make_stack(attention=attention)))
    settings = make_encoder_only(types=2)
    settings["source"]["scale"] = True
    assert not is_exportable(settings)


@pytest.mark.parametrize("type_name", TYPES)
def test_types_leave_the_weights_alone(type_name: str, tmp_path: Path) -> None:
    stored = make_stored_model(make_encoder_decoder())
    before = {name: tensor.clone() for name, tensor in stored.model.state_dict().items()}
    write_ctranslate2(tmp_path, stored, type_name)
    assert all(torch.equal(before[name], tensor) for name, tensor in stored.model.state_dict().items())
    sizes = {"float32": 4, "int16": 2, "float16": 2, "bfloat16": 2}
    numbers = sum(parameter.numel() for parameter in stored.model.parameters())
    table = 2048 * 16 * 4  # not quantized in all types
    assert (tmp_path / "model.bin").stat().st_size < numbers * sizes.get(type_name, 1) + table + 20_000


def test_an_unknown_type_and_a_window_are_refused(tmp_path: Path) -> None:
    stored = make_stored_model(make_encoder_decoder())
    with pytest.raises(RegardError, match="no type 'int4'"):
        write_ctranslate2(tmp_path, stored, "int4")
    with pytest.raises(RegardError, match=r"encoder\.window is not supported"):
        make_spec(make_stored_model(make_encoder_decoder(make_stack(window=4))))
    assert not any(tmp_path.iterdir())


def test_positions_end_with_the_table(tmp_path: Path) -> None:
    stored = make_stored_model(make_encoder_decoder())
    write_ctranslate2(tmp_path, stored, positions=8)
    assert count_positions(stored.settings, 8) == {"encoder": 8, "decoder": 8}
    translator = ctranslate2.Translator(str(tmp_path), intra_threads=1)
    assert len(translator.score_batch(as_text([SOURCES[0]]), as_text([[3] * 8]))[0].log_probs) == 9
    with pytest.raises(RuntimeError, match="9"):
        translator.score_batch(as_text([SOURCES[0]]), as_text([[3] * 9]))
    assert count_positions(MODEL_FILES.parse(make_decoder_only(STACKS["rotary"]))) == {"decoder": None}
    learned = MODEL_FILES.parse(make_encoder_only(STACKS["learned"]))
    assert count_positions(learned) == {"encoder": 32}


def test_a_tied_table_is_stored_once(tmp_path: Path) -> None:
    stored = make_stored_model(make_encoder_decoder())
    write_ctranslate2(tmp_path, stored, positions=8)
    numbers = sum(parameter.numel() for parameter in stored.model.parameters())
    assert (tmp_path / "model.bin").stat().st_size < 4 * numbers + 20_000
