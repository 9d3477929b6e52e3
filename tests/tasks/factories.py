"""Small untrained models with their own tokenizer."""

from functools import cache
from pathlib import Path
from typing import TypeVar

import torch

from regard.config import codec
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig, EncoderOnlyConfig
from regard.config.tokenizers import ByteBpeConfig, SpecialsConfig
from regard.models.build import build
from regard.models.decoder_only import DecoderOnly
from regard.models.encoder_decoder import EncoderDecoder
from regard.models.encoder_only import EncoderOnly
from regard.store.calibration import QUALITY_FILE, copy_with
from regard.store.model_folder import write_model
from regard.store.weights import get_weights
from regard.tasks.results import GeneratedText
from regard.tasks.scorer import Scorer
from regard.tasks.translation.quality import Quality
from regard.tasks.translation.translator import Translator
from regard.text.familiarity import Familiarity
from regard.text.learn import learn
from regard.text.tokenizer import Tokenizer
from regard.text.tokenizer_pair import TokenizerPair

M = TypeVar("M", bound=torch.nn.Module)
MAX_LENGTH = 8
TOLERANCE = 1e-4
TEXTS = [
    "Two young men are outside near many bushes.",
    "A little girl climbs into a wooden playhouse.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz.",
]


@cache
def make_tokenizer(*languages: str) -> Tokenizer:
    """A tokenizer of 300 tokens, among them tags for these languages."""
    return learn(TEXTS, ByteBpeConfig(vocabulary=300, specials=SpecialsConfig(languages=languages)))


def make_tokenizers(*languages: str) -> TokenizerPair:
    return TokenizerPair.joint(make_tokenizer(*languages))


def make_translator_settings(**changes: object) -> EncoderDecoderConfig:
    size = {"d_model": 32, "source.vocabulary": make_tokenizer().size, "encoder.layers": 1, "decoder.layers": 1}
    settings = codec.preset("tiny", size | changes)
    assert isinstance(settings, EncoderDecoderConfig)
    return settings


def make_generator_settings(**changes: object) -> DecoderOnlyConfig:
    size = {"d_model": 32, "tokens.vocabulary": make_tokenizer().size, "decoder.layers": 1}
    heads = {"decoder.attention.heads": 4, "decoder.feedforward.d_ff": 64}
    settings = codec.preset("gpt2", size | heads | changes)
    assert isinstance(settings, DecoderOnlyConfig)
    return settings


def make_encoder_decoder(settings: EncoderDecoderConfig, seed: int = 1) -> EncoderDecoder:
    """Perturb every parameter, so that the logits of tokens differ clearly."""
    model = build(settings, seed=seed)
    assert isinstance(model, EncoderDecoder)
    return perturb(model, seed)


def make_decoder_only(settings: DecoderOnlyConfig, seed: int = 1) -> DecoderOnly:
    model = build(settings, seed=seed)
    assert isinstance(model, DecoderOnly)
    return perturb(model, seed)


def perturb(model: M, seed: int) -> M:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.2)
    return model.eval()


def make_parts(**changes: object) -> tuple[EncoderOnly, EncoderOnlyConfig]:
    sizes = {
        "d_model": 32,
        "source.vocabulary": make_tokenizer().size,
        "encoder.layers": 1,
        "encoder.attention.heads": 4,
    }
    sizes |= {"encoder.feedforward.d_ff": 64, "encoder.position.length": 32}
    settings = codec.preset("encoder-small", sizes | changes)
    assert isinstance(settings, EncoderOnlyConfig)
    model = build(settings, seed=1)
    assert isinstance(model, EncoderOnly)
    return perturb(model, 1), settings


def make_translator(seed: int = 1) -> Translator:
    settings = make_translator_settings()
    return Translator(make_encoder_decoder(settings, seed), make_tokenizers(), settings)


def all_texts(result: GeneratedText) -> list[str]:
    return [candidate.text for candidate in (result, *result.alternatives)]


def make_lm_scorer(**changes: object) -> Scorer:
    settings = make_generator_settings(**changes)
    return Scorer(make_decoder_only(settings), make_tokenizers(), settings)


def write_translator(folder: Path, seed: int = 1, eos_bias: float = 6.0, **changes: object) -> Path:
    """Write a random model that ends after a few tokens and gives suppressed tokens no probability."""
    settings = make_translator_settings(**{"head.bias": True, "head.tied": False} | changes)
    model, specials = make_encoder_decoder(settings, seed), make_tokenizers().target.specials
    with torch.no_grad():
        assert model.head.bias is not None
        model.head.bias[specials.not_text] = -30.0
        model.head.bias[specials.eos] = eos_bias
        model.head.projection.weight.mul_(4.0)
    write_model(folder, settings, make_tokenizers(), get_weights(model), "card")
    return folder


def add_quality(model: Path, path: Path, *, good: float | None = 0.4, max_surprise: float = 1e9) -> Path:
    """Copy a translator to `path` with a quality estimate that is 1/2 for every translation with the default search."""
    quality = Quality(
        beam_size=5,
        length_penalty=1.0,
        pairs=200,
        chrf=50.0,
        good=good,
        accepted=0.5,
        bound=0.1,
        log_ratio=0.0,
        mean=(0.0,) * 4,
        scale=(1.0,) * 4,
        weights=(0.0,) * 5,
        familiarity=Familiarity(vocabulary=300, tokens={1: 1}, bigrams={}, max_surprise=max_surprise),
    )
    copy_with(model, path, QUALITY_FILE, quality.model_dump_json())
    return path
