"""Learn two pairs of sentences by heart, then serve that model and untrained ones of text, images and sound.

python serve_models.py FOLDER PORT
"""

import sys
from pathlib import Path

import torch
from tests.tasks.factories import (
    TEXTS,
    make_decoder_only,
    make_generator_settings,
    make_tokenizers,
    make_translator_settings,
)
from tests.tasks.media_models import write_captioning_model, write_image_model, write_transcription_model

from regard.cli import main
from regard.models.build import build
from regard.serve.settings import hash_key
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.scorer import Scorer
from regard.tasks.translation.translator import Translator
from regard.training.optim import EagerAdam

KEY = "page-test-key"


def learn_by_heart(translator: Translator) -> None:
    """Train a translator on the two sentence pairs of `TEXTS`, without dropout."""
    rows = Scorer(translator.model, translator.tokenizers, translator.settings).make_rows(TEXTS[2:], TEXTS[:2])
    optimizer = EagerAdam(translator.model.parameters(), lr=1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        for row in rows:
            logits = translator.model(torch.tensor([row.source]), torch.tensor([row.inputs]))
            torch.nn.functional.cross_entropy(logits[0], torch.tensor(row.labels)).backward()
        optimizer.step()


def run() -> None:
    """Write the models and a keys file, and serve them."""
    torch.set_num_threads(1)
    folder, port = Path(sys.argv[1]), sys.argv[2]
    settings, tokenizers = make_translator_settings(languages=["en", "de"]), make_tokenizers()
    translator = Translator(build(settings, seed=1).eval(), tokenizers, settings)  # type: ignore[arg-type]
    learn_by_heart(translator)
    write_model(folder / "translator", settings, tokenizers, get_weights(translator.model), "card")
    writer = make_generator_settings()
    write_model(folder / "writer", writer, tokenizers, get_weights(make_decoder_only(writer)), "card")
    (folder / "keys.txt").write_text(f"page {hash_key(KEY)}\n")
    write_image_model(folder / "shapes", **{"head.labels": ["a", "b", "<img src=x onerror=alert(1)>"]})
    write_transcription_model(folder / "speech")
    write_captioning_model(folder / "captions")
    names = ("writer", "shapes", "speech", "captions")
    models = [f"en-de={folder / 'translator'}", *(str(folder / name) for name in names)]
    sys.argv = ["regard", "serve", *models, "--port", port, "--keys", str(folder / "keys.txt")]
    sys.argv += ["--suggestions", str(folder / "suggestions.db")]
    main()


if __name__ == "__main__":
    run()
