"""Samples that a parity check runs."""

import json

from regard.exchange.parity import measure_parity
from regard.exchange.parity_samples import make_samples
from regard.store.model_folder import StoredModel
from regard.store.model_path import RUN
from tests.exchange.models import AlteredRunner


def test_validation_texts_of_the_run_are_used(stored: StoredModel) -> None:
    (stored.path.parent / RUN).touch()
    lines = [["Two men", "Zwei Männer", None, ["en", "de"]], ["x " * 900, "y", None, []], ["A girl", "Ein", None, []]]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (stored.path.parent / "validation.jsonl").write_text(text)
    samples, texts_are = make_samples(stored, 5)
    assert texts_are == "validation texts"
    assert [sample.reference for sample in samples] == ["Zwei Männer", "Ein"]  # the long one is left out
    result = measure_parity(stored, AlteredRunner(stored), must_match=True)
    assert result.bleu is not None
    assert result.bleu["change"] == 0
