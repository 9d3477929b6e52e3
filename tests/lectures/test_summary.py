"""The sentences that resemble the others most."""

from pathlib import Path

import pytest
import torch

from regard.base.errors import RegardError
from regard.lectures import summary
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.tasks.factories import make_parts, make_tokenizers

TEXT = """# Rivers

The river Spree flows through the city of Berlin. Very early, a man sold his bicycle to somebody.
The river Havel flows around the city of Potsdam.

The rivers of the city Berlin are the Spree and the river Havel.

```bash
this is no sentence of the page at all
```
"""


def test_the_central_sentences_are_printed_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "text.md"
    path.write_text(TEXT)
    lines = summary.summarize(path)
    assert [line.split()[:2] for line in lines] == [["The", "river"], ["The", "river"], ["The", "rivers"]]
    assert summary.summarize(path, 1) == lines[:1]  # shares words with both
    assert len(summary.summarize(path, 9)) == 4
    model, settings = make_parts()
    write_model(tmp_path / "model", settings, make_tokenizers(), get_weights(model), "card")
    assert len(summary.summarize(path, model=tmp_path / "model")) == 3


def test_the_centrality_is_a_fixed_point() -> None:
    vectors = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))
    vectors[3] = 0  # resembles no sentence
    centrality = summary.compute_centrality(vectors)
    assert centrality.sum().item() == pytest.approx(1)
    unit = torch.nn.functional.normalize(vectors.double(), dim=-1)
    similarity = (unit @ unit.T).clamp(min=0)
    votes = torch.full((7, 7), 1 / 7, dtype=torch.float64)
    for row in range(7):
        similarity[row, row] = 0
        if row != 3:
            votes[row] = similarity[row] / similarity[row].sum()
    expected = torch.linalg.solve(torch.eye(7).double() - 0.85 * votes.T, torch.full((7,), 0.15 / 7).double())
    torch.testing.assert_close(centrality, expected, atol=1e-6, rtol=0)


def test_a_text_without_sentences_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.md").write_text("# Title\n")
    with pytest.raises(RegardError, match="No sentence"):
        summary.summarize(tmp_path / "text.md")
