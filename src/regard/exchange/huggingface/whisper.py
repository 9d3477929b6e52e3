"""Whisper: the config of a speech recognizer, and what its decoder begins with and never writes."""

from collections.abc import Mapping

from torch import Tensor

from regard.config.model import EncoderDecoderConfig
from regard.exchange import encoder_decoder as maps
from regard.exchange.huggingface.architecture import Architecture, SettingsTable, read_dropout
from regard.exchange.huggingface.config_reader import ConfigReader
from regard.exchange.mapping import WeightMap
from regard.pipeline.transcriber import EXTRA_TOKENS

RATE = 16_000  # samples per second
FRAMES_PER_VECTOR = 2
MAX_FORCED = 100  # tokens before a text
MULTILINGUAL = (
    "Name language and task in generation_config.json: "
    '"forced_decoder_ids": [[1, LANGUAGE], [2, TRANSCRIBE], [3, NO_TIMESTAMPS]], with the ids of these tokens.'
)


def _read_whisper(config: ConfigReader, tensors: Mapping[str, Tensor]) -> SettingsTable:  # noqa: ARG001
    config.require("is_encoder_decoder", True, True)
    config.require("tie_word_embeddings", True, True)
    positions, target_positions = (
        config.integer(f"max_{side}_positions", default) for side, default in (("source", 1500), ("target", 448))
    )
    frames = FRAMES_PER_VECTOR * positions
    activation = config.activation("activation_function", "gelu")
    dropout = read_dropout(config.rate("dropout"), config.rate("attention_dropout"), config.rate("activation_dropout"))
    stacks: dict[str, SettingsTable] = {}
    for name, length in (("encoder", positions), ("decoder", target_positions)):
        stacks[name] = {
            "layers": config.integer(f"{name}_layers"),
            "norm_order": "pre",
            "norm": {"kind": "layer", "eps": 1e-5},
            "final_norm": True,
            # The encoder's sinusoids are a table in the file, rounded to its number type.
            "position": {"kind": "learned", "length": length},
            "attention": {"heads": config.integer(f"{name}_attention_heads"), "bias": {"key": False}},
            "feedforward": {
                "kind": "plain",
                "d_ff": config.integer(f"{name}_ffn_dim"),
                "activation": activation,
            },
            "dropout": dropout,
        }
    stacks["decoder"]["cross"] = stacks["decoder"]["attention"]
    return {
        "family": "encoder_decoder",
        "task": "transcribe",
        "d_model": config.integer("d_model"),
        "source": {
            "kind": "mel",
            "bins": config.integer("num_mel_bins", 80),
            "frames": FRAMES_PER_VECTOR,
            "stem": "convolution",
            "pad_to": frames,
            "rate": RATE,
        },
        "target": {
            "kind": "tokens",
            "vocabulary": config.integer("vocab_size"),
            "scale": config.flag("scale_embedding", False),
        },
        **stacks,
        "head": {"kind": "lm", "tied": True},
        # Half of the positions are for the text before, which Regard does not use: a text has the other half.
        "max_length_ratio": max(1, target_positions // 2 - EXTRA_TOKENS) / frames,
    }


def _read_generation(reader: ConfigReader) -> SettingsTable:
    return {
        "prompt": _read_prompt(reader),
        "suppress_tokens": _read_ids(reader, "suppress_tokens"),
        "begin_suppress_tokens": _read_ids(reader, "begin_suppress_tokens"),
        "beam_size": reader.integer("num_beams", 1),
    }


def _read_prompt(reader: ConfigReader) -> list[int]:
    """Return the tokens after `decoder_start_token_id`: pairs of position and token, or no timestamps in new files."""
    forced = reader.config.get("forced_decoder_ids")
    if forced is None:
        if reader.flag("is_multilingual", False):
            raise reader.error("The model knows several languages, and none is chosen.", MULTILINGUAL)
        token = reader.optional_integer("no_timestamps_token_id")
        return [] if token is None else [token]
    is_list = isinstance(forced, list) and len(forced) <= MAX_FORCED
    pairs = [pair for pair in forced if isinstance(pair, list) and len(pair) == 2] if is_list else []
    if not is_list or len(pairs) < len(forced) or [place for place, _ in pairs] != [*range(1, len(pairs) + 1)]:
        raise reader.error("'forced_decoder_ids' must be a list of pairs: 1, 2, 3, ... and a token.", MULTILINGUAL)
    if any(token is None for _, token in pairs):
        raise reader.error("'forced_decoder_ids' leaves the language open.", MULTILINGUAL)
    return _check_ids(reader, "forced_decoder_ids", [token for _, token in pairs])


def _read_ids(reader: ConfigReader, key: str) -> list[int]:
    value = reader.config.get(key)
    return [] if value is None else _check_ids(reader, key, value)


def _check_ids(reader: ConfigReader, key: str, value: object) -> list[int]:
    if not isinstance(value, list) or any(type(token) is not int or token < 0 for token in value):
        raise reader.error(f"'{key}' must be a list of tokens, got {str(value)[:60]}.")
    return sorted(set(value)) if key != "forced_decoder_ids" else value


def _map_whisper(settings: EncoderDecoderConfig, max_positions: int) -> WeightMap:  # noqa: ARG001 - both tables are learned
    return maps.whisper()


WHISPER: Architecture[EncoderDecoderConfig] = Architecture(
    "WhisperForConditionalGeneration",
    "whisper",
    "AutoModelForSpeechSeq2Seq",
    "automatic-speech-recognition",
    None,
    _read_whisper,
    _map_whisper,
    _read_generation,
)
