"""Whisper: a speech recognition model with BART's tensor names, a decoder prompt and suppressed tokens.

Convolutions read a spectrogram, keys have no bias, and both tables of positions are stored.
"""

from regard.config.model import EncoderDecoderConfig
from regard.exchange.huggingface.architecture import ConfigKey, EncoderDecoderArchitecture, SettingsTable
from regard.exchange.huggingface.architecture_rules import ArchitectureRules
from regard.exchange.huggingface.bart import DECODER_EMBEDDING, FINAL_NORMS, POSITIONS, STACKS, make_keys
from regard.exchange.huggingface.config_reader import ConfigReader
from regard.exchange.weight_map import (
    HEAD_WEIGHT,
    TARGET_EMBEDDING,
    MappingRule,
    Tensors,
    WeightMap,
    make_rules,
)

RATE = 16_000  # samples per second
FRAMES_PER_VECTOR = 2
MAX_FORCED = 100  # tokens before a text
MULTILINGUAL = (
    "Name language and task in generation_config.json: "
    '"forced_decoder_ids": [[1, LANGUAGE], [2, TRANSCRIBE], [3, NO_TIMESTAMPS]], with the ids of these tokens.'
)
STEM = {f"source.{name}": f"model.encoder.{name}" for name in ("conv1", "conv2")}
EMBEDDING = MappingRule(
    TARGET_EMBEDDING, DECODER_EMBEDDING, regard_copies=(HEAD_WEIGHT,), hf_copies=("proj_out.weight",)
)


class WhisperArchitecture(EncoderDecoderArchitecture):
    """`WhisperForConditionalGeneration`."""

    name, model_type = "WhisperForConditionalGeneration", "whisper"
    auto_class, pipeline_tag = "AutoModelForSpeechSeq2Seq", "automatic-speech-recognition"
    is_written = False
    rules = ArchitectureRules(
        "pre", "layer", False, ("learned+0",), ("plain",), ("query value output",), True, eps=1e-5
    )
    positions = ("max_target_positions", 448)
    keys = (
        *make_keys(),
        ConfigKey("vocab_size", "target.vocabulary"),
        ConfigKey("scale_embedding", "target.scale", False, "flag"),
        ConfigKey("num_mel_bins", "source.bins", 80),
    )
    constants = (("is_encoder_decoder", True), ("tie_word_embeddings", True))

    def read_settings(self, config: ConfigReader, tensors: Tensors) -> SettingsTable:
        """Return the settings of a config by path."""
        from regard.tasks.generation import EXTRA_TOKENS  # imports torch: only when needed

        settings = super().read_settings(config, tensors)
        positions = config.integer("max_source_positions", 1500)
        frames = FRAMES_PER_VECTOR * positions
        # Half of the positions are for the previous text, which Regard does not use.
        max_tokens = max(1, settings["decoder.position.length"] // 2 - EXTRA_TOKENS)
        return settings | {
            "task": "transcription",
            "source.kind": "mel",
            "source.frames": FRAMES_PER_VECTOR,
            "source.stem": "convolution",
            "source.pad_to": frames,
            "source.rate": RATE,
            "target.kind": "tokens",
            # The encoder's sinusoids are a table in the file, rounded to its number type.
            "encoder.position.length": positions,
            "max_length_ratio": max_tokens / frames,
        }

    def read_generation(self, config: ConfigReader) -> SettingsTable:
        """Return the settings `generation`."""
        return {
            "prompt": _read_prompt(config),
            "suppress_tokens": _read_ids(config, "suppress_tokens"),
            "begin_suppress_tokens": _read_ids(config, "begin_suppress_tokens"),
            "beam_size": config.integer("num_beams", 1),
        }

    def make_weight_map(self, model: EncoderDecoderConfig, max_positions: int) -> WeightMap:  # noqa: ARG002
        """Return the weight map of a model."""
        names = STACKS | FINAL_NORMS | STEM
        keys = {ours: theirs for ours, theirs in names.items() if ours.endswith(".key")}
        biased = {ours: theirs for ours, theirs in names.items() if ours not in keys}
        rules = (*make_rules(biased), *make_rules(keys | POSITIONS, "weight"))
        return WeightMap(self.name, (EMBEDDING, *rules))


def _read_prompt(reader: ConfigReader) -> list[int]:
    """Return the tokens after `decoder_start_token_id`: pairs of position and token, or no timestamps in new files."""
    forced = reader.config.get("forced_decoder_ids")
    if forced is None:
        if reader.flag("is_multilingual", False):
            raise reader.error("The model is multilingual, and no language is set.", MULTILINGUAL)
        token = reader.optional_integer("no_timestamps_token_id")
        return [] if token is None else [token]
    is_list = isinstance(forced, list) and len(forced) <= MAX_FORCED
    pairs = [pair for pair in forced if isinstance(pair, list) and len(pair) == 2] if is_list else []
    if not is_list or len(pairs) < len(forced) or [place for place, _ in pairs] != [*range(1, len(pairs) + 1)]:
        raise reader.error("'forced_decoder_ids' must be a list of pairs: 1, 2, 3, ... and a token.", MULTILINGUAL)
    if any(token is None for _, token in pairs):
        raise reader.error("'forced_decoder_ids' does not set the language.", MULTILINGUAL)
    return _check_ids(reader, "forced_decoder_ids", [token for _, token in pairs])


def _read_ids(reader: ConfigReader, key: str) -> list[int]:
    value = reader.config.get(key)
    return [] if value is None else _check_ids(reader, key, value)


def _check_ids(reader: ConfigReader, key: str, value: object) -> list[int]:
    if not isinstance(value, list) or any(type(token) is not int or token < 0 for token in value):
        raise reader.error(f"'{key}' must be a list of tokens, got {str(value)[:60]}.")
    return sorted(set(value)) if key != "forced_decoder_ids" else value


WHISPER = WhisperArchitecture()
