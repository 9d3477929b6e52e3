"""Building the document of a look."""

import pytest

from regard.look.build import look_into
from regard.tasks.causal_lm.generator import TextGenerator
from tests.tasks.factories import make_decoder_only, make_generator_settings, make_tokenizers


def test_a_long_text_leaves_out_what_takes_too_long(generator: TextGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.look.build.MAX_FLOPS", 1.0)
    document = look_into(generator, "A little", max_new_tokens=3).document
    assert document["ablation"] is None
    assert document["masks"][0]["leak"] is None
    assert any("ablation=True" in note for note in document["notes"])
    assert any("leak test was skipped" in note for note in document["notes"])
    assert look_into(generator, "A little", max_new_tokens=3, ablation=True).document["ablation"] is not None


def test_training_mode_and_low_precision() -> None:
    settings = make_generator_settings(**{"decoder.dropout.sublayer": 0.5})
    model = make_decoder_only(settings)
    generator = TextGenerator(model, make_tokenizers(), settings)
    expected = look_into(generator, "A little", max_new_tokens=3).document
    model.train()
    assert look_into(generator, "A little", max_new_tokens=3).document == expected
    assert all(module.training for module in model.modules())
    document = look_into(
        TextGenerator(model.bfloat16(), make_tokenizers(), settings), "A little", max_new_tokens=3
    ).document
    errors = [error or 0.0 for error in document["attention"][0]["errors"][0]]
    assert 1e-4 < max(errors) < 0.5  # the page shows how coarse the model's numbers are
