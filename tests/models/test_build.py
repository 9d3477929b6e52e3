"""Building a model from its settings."""

import torch

from regard.config.codec import preset
from regard.models.build import build


def test_build_without_initialization_draws_no_random_numbers() -> None:
    settings = preset("tiny", {"encoder.layers": 1, "decoder.layers": 1, "source.vocabulary": 50})
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    model = build(settings, initialize=False)
    assert torch.equal(torch.rand(2), expected)
    assert [parameter.shape for parameter in model.parameters()] == [
        parameter.shape for parameter in build(settings).parameters()
    ]
