"""`regard embed`."""

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner  # noqa: TID251

from regard.base.errors import RegardError
from regard.cli.app import app
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.token_vectors import load_token_vectors
from tests.commands import run_command
from tests.tasks.factories import make_encoder_decoder, make_tokenizers, make_translator_settings


def test_the_command_reads_the_embedding_of_either_side(tmp_path: Path) -> None:
    tokenizers = make_tokenizers()
    settings = make_translator_settings()
    model = make_encoder_decoder(settings)
    write_model(tmp_path / "model", settings, tokenizers, get_weights(model), "# Card\n")
    source = load_token_vectors(tmp_path / "model")
    weight = get_weights(model)["source.embedding.weight"]
    assert np.array_equal(source.vectors, weight.numpy())
    ids = source.encode("Mädchen")
    mean = torch.nn.functional.normalize(weight, dim=1)[ids].mean(dim=0)
    expected = torch.nn.functional.cosine_similarity(mean[None], weight).numpy()
    best = source.find_neighbors(["Mädchen"], n_best=1)[0]
    assert best.similarity == pytest.approx(expected[best.token], abs=1e-6)
    result = CliRunner().invoke(
        app, ["embed", str(tmp_path / "model"), "Mädchen", "--neighbors", "--target", "--n-best", "3"]
    )
    assert result.exit_code == 0
    assert f"{best.similarity:.4f}" in result.stdout
    assert len(ids) > 1
    assert f"is {len(ids)} tokens" in result.stderr

    with pytest.raises(RegardError, match="several tokens"):
        source.find_rank("Mädchen", ["men"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("king", "--minus", "man"), "--minus and --target need --neighbors"),
        (("king", "--neighbors", "--output", "vectors.npy"), "not --output"),
        (("--neighbors",), "needs a word"),
    ],
)
def test_embed_command_refuses_options_without_neighbors(
    options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    (tmp_path / "model.toml").touch()
    done = run_command("embed", str(tmp_path), *options)
    assert done.code == 1
    assert message in done.errors
