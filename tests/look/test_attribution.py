"""Attribution: sums are exact, no token after an output counts, and occlusion equals replacing a token by hand."""

import numpy as np
import pytest
import torch

from regard.base.blobs import decode_blob
from regard.look.look import Look
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.inputs import TokenInput


@pytest.mark.parametrize("task", ["translation", "causal_lm", "masked_lm", "text_classification", "tagging"])
def test_integrated_gradients_sum_to_the_difference_of_the_logits(task: str, looks: dict[str, Look]) -> None:
    document = looks[task].document
    attribution = document["attribution"]
    assert attribution is not None
    matrices = {name: decode_blob(document["blobs"][blob]) for name, blob in attribution["methods"].items()}
    assert set(matrices) == {"occlusion", "gradient_x_input", "integrated_gradients"}
    difference = np.array(attribution["logits"]) - np.array(attribution["baseline_logits"])
    error = np.abs(matrices["integrated_gradients"].sum(axis=1) - difference) / np.maximum(1, np.abs(difference))
    assert error.max() <= 0.01
    assert attribution["completeness"] == pytest.approx(error.tolist(), abs=1e-4)
    passage, columns = looks[task].run.input, attribution["source_columns"] + attribution["target_columns"]
    with torch.no_grad():
        assert attribution["logits"] == pytest.approx(passage.label_logits()[0].tolist(), abs=1e-4)
    tokens = [*document["sequences"].get("source", []), *document["sequences"].get("target", [])]
    for matrix in matrices.values():
        assert matrix.shape == (len(attribution["outputs"]), columns)
        assert np.abs(matrix).max() > 0.01
        for row, output in enumerate(attribution["outputs"]):
            if attribution["target_columns"] and output is not None:  # the output itself and all later tokens
                later = matrix[row, attribution["source_columns"] + output :]
                assert np.abs(later).max(initial=0.0) < 1e-4
        for column in range(columns):
            if tokens[column]["role"] == "special":
                assert np.abs(matrix[:, column]).max() < 1e-5


def test_occlusion_replaces_one_token(translation_look: Look) -> None:
    document, passage = translation_look.document, translation_look.run.input
    attribution, model = document["attribution"], passage.model
    assert attribution is not None
    assert isinstance(model, EncoderDecoder)
    occlusion = decode_blob(document["blobs"][attribution["methods"]["occlusion"]])
    column = 2
    assert isinstance(model.source, TokenInput)
    embedding = model.source.embedding
    token = passage.source[column]
    assert list(passage.source).count(token) == 1

    def is_chosen(ids: torch.Tensor) -> torch.Tensor:
        """The decoder reads through the same module: its text has another length."""
        return (ids == token) & (ids.size(1) == len(passage.source) != len(passage.target))

    with torch.no_grad():
        before = passage.label_logits()[0]
        mean, scale = embedding.weight.mean(dim=0), model.source.scale or 1.0
        handle = model.source.register_forward_hook(
            lambda _m, arguments, output: (
                torch.where(is_chosen(arguments[0])[..., None], scale * mean, output[0]),
                output[1],
            )
        )
        after = passage.label_logits()[0]
        handle.remove()
    assert (before - after).tolist() == pytest.approx(occlusion[:, column].tolist(), abs=1e-3)
