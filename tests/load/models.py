"""Write the small models of a server: python -m tests.load.models FOLDER."""

import sys
from pathlib import Path

import torch

from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from tests.load.server import TEMPLATE
from tests.tasks.factories import (
    make_decoder_only,
    make_encoder_decoder,
    make_generator_settings,
    make_parts,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
)


def end_early(model: torch.nn.Module) -> None:
    """Make eos likely: an untrained model would always generate as many tokens as it may."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        last_norm = [name for name in parameters if name.startswith("decoder.") and name.endswith("norm.bias")][-1]
        bias = parameters[last_norm].mul_(4)
        embedding = next(name for name in ("tokens.embedding.weight", "source.embedding.weight") if name in parameters)
        parameters[embedding][make_tokenizer().specials.eos] = 7 * bias / bias.square().sum()


def write_models(folder: Path) -> None:
    """Write a translator, a language model and an encoder."""
    translator_settings, generator_settings = (
        make_translator_settings(languages=["en", "de"]),
        make_generator_settings(),
    )
    translator, generator = make_encoder_decoder(translator_settings), make_decoder_only(generator_settings)
    for model in (translator, generator):
        end_early(model)
    write_model(folder / "en-de", translator_settings, make_tokenizers(), get_weights(translator), "card")
    write_model(folder / "writer", generator_settings, make_tokenizers(), get_weights(generator), "card")
    encoder, encoder_settings = make_parts()
    write_model(folder / "encoder", encoder_settings, make_tokenizers(), get_weights(encoder), "card")
    (folder / "chat.jinja").write_text(TEMPLATE)


if __name__ == "__main__":
    write_models(Path(sys.argv[1]))
