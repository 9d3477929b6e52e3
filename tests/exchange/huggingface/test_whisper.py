"""Whisper: a small random model of `transformers`, imported, has its states, logits and greedy tokens."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from regard.base.errors import RegardError
from regard.exchange.export import export_model
from regard.exchange.importer import import_model
from regard.tasks.load import load_transcriber
from regard.tasks.search import Beam
from regard.tasks.transcription import Transcriber
from tests.exchange.models import randomize_weights

TOLERANCE = 2e-5
END, START, NO_TIMESTAMPS = "<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"
SPECIAL_TOKENS = (END, START, "<|nospeech|>", NO_TIMESTAMPS, *(f"<|{time}.00|>" for time in range(3)))
EOS, BOS, NO_SPEECH, PROMPT = 256, 257, 258, 259
VOCABULARY = 256 + len(SPECIAL_TOKENS)
POSITIONS, TARGET_POSITIONS, BINS = 50, 24, 8  # 100 frames: a second
SUPPRESSED = [3, 5, 8, BOS, NO_SPEECH]
SIZES = {
    "vocab_size": VOCABULARY,
    "d_model": 16,
    "num_mel_bins": BINS,
    "max_source_positions": POSITIONS,
    "max_target_positions": TARGET_POSITIONS,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 28,
    "decoder_start_token_id": BOS,
    **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), EOS),
}
GENERATION = {
    "decoder_start_token_id": BOS,
    "eos_token_id": EOS,
    "pad_token_id": EOS,
    "is_multilingual": False,
    "forced_decoder_ids": [[1, PROMPT]],
    "suppress_tokens": SUPPRESSED,
    "begin_suppress_tokens": [220, EOS],
}


def write_theirs(folder: Path, **changes: Any) -> Any:
    """Write a random model of `transformers` with a tokenizer of bytes, as published folders have it."""
    transformers = pytest.importorskip("transformers")
    config = transformers.WhisperConfig(**SIZES | changes)
    theirs: Any = randomize_weights(transformers.WhisperForConditionalGeneration(config))
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            if "encoder_attn" in name or "decoder.embed_positions" in name:
                weight.mul_(4)  # texts that differ between audio clips
    theirs.save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps(GENERATION), encoding="utf-8")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({symbol: number for number, symbol in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL_TOKENS])
    names = [(text, tokenizer.token_to_id(text)) for text in SPECIAL_TOKENS]
    template = f"{START} {NO_TIMESTAMPS} $A {END}"
    tokenizer.post_processor = processors.TemplateProcessing(single=template, special_tokens=names)
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = dict.fromkeys(("bos_token", "eos_token", "unk_token", "pad_token"), END)
    (folder / "tokenizer_config.json").write_text(json.dumps(roles), encoding="utf-8")
    return theirs.eval()


def make_audio(seed: int, seconds: float = 0.4) -> Any:
    return np.random.default_rng(seed).normal(0, 3000, round(16_000 * seconds)).astype(np.int16)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Transcriber]:
    folder = tmp_path_factory.mktemp("whisper")
    theirs = write_theirs(folder / "theirs")
    import_model(folder / "theirs", folder / "ours")
    return theirs, load_transcriber(folder / "ours")


@torch.no_grad()
def test_states_and_logits_are_equal(pair: tuple[Any, Transcriber]) -> None:
    transformers = pytest.importorskip("transformers")
    theirs, ours = pair
    extract = transformers.WhisperFeatureExtractor(feature_size=BINS, chunk_length=1)
    for seed in range(3):
        clip = make_audio(seed, 0.2 + 0.3 * seed)
        features = extract(clip / 32768, sampling_rate=16_000, return_tensors="pt").input_features
        spectrogram = ours.input.load(clip)
        assert spectrogram.shape == (2 * POSITIONS, BINS)
        assert np.abs(spectrogram.T - features[0].numpy()).max() < 1e-4, "each computes its own"
        source, valid = ours.input.stack([spectrogram], ours.device)
        assert valid is None, "silence is no padding"
        target = torch.randint(0, VOCABULARY, (1, TARGET_POSITIONS), generator=torch.Generator().manual_seed(seed))
        expected = theirs(source.transpose(1, 2), decoder_input_ids=target)
        states, _ = ours.model.encode(source)
        assert (states - expected.encoder_last_hidden_state).abs().max() < TOLERANCE
        assert (ours.model(source, target) - expected.logits).abs().max() < TOLERANCE


@torch.no_grad()
def test_greedy_tokens_are_equal(pair: tuple[Any, Transcriber]) -> None:
    theirs, ours = pair
    audio = [make_audio(seed) for seed in range(6)]
    results = ours.transcribe(audio, Beam(1), max_new_tokens=TARGET_POSITIONS - 1)
    for clip, result in zip(audio, results, strict=True):
        source, _ = ours.input.stack([ours.input.load(clip)], ours.device)
        tokens = [BOS, PROMPT]
        while len(tokens) < TARGET_POSITIONS + 1 and tokens[-1] != EOS:
            logits = theirs(source.transpose(1, 2), decoder_input_ids=torch.tensor([tokens])).logits[0, -1]
            logits[SUPPRESSED] = -torch.inf
            if len(tokens) == 2:
                logits[[220, EOS]] = -torch.inf
            tokens.append(int(logits.argmax()))
        assert list(result.tokens) == tokens[2:]
        assert result.text == result.text.strip()
    assert len({result.tokens for result in results}) > 1


def test_their_generate_gives_the_same_tokens(pair: tuple[Any, Transcriber]) -> None:
    theirs, ours = pair
    audio = [make_audio(seed) for seed in range(3)]
    source, _ = ours.input.stack([ours.input.load(clip) for clip in audio], ours.device)
    config = {name: value for name, value in GENERATION.items() if name != "forced_decoder_ids"}
    generation = type(theirs.generation_config)(**config, no_timestamps_token_id=PROMPT, max_new_tokens=10)
    expected = theirs.generate(source.transpose(1, 2), generation_config=generation).tolist()
    for result, tokens in zip(ours.transcribe(audio, Beam(1), max_new_tokens=10), expected, strict=True):
        assert [token for token in result.tokens if token != EOS] == [token for token in tokens if token < EOS]


def test_an_audio_clip_is_padded_to_the_frames_of_training(pair: tuple[Any, Transcriber]) -> None:
    _, ours = pair
    audio = [make_audio(1, 0.1), make_audio(2, 0.9)]
    alone = [ours.transcribe(clip, Beam(1)) for clip in audio]
    assert [result.tokens for result in ours.transcribe(audio, Beam(1))] == [result.tokens for result in alone]
    with pytest.raises(RegardError, match=r"1\.1 seconds; the model reads at most 1\.0"):
        ours.transcribe(make_audio(1, 1.1))
    assert ours.resolve_max_length(2 * POSITIONS, None) <= TARGET_POSITIONS - 1
    with pytest.raises(RegardError, match="at most 23"):
        ours.transcribe(audio[0], max_new_tokens=TARGET_POSITIONS)


def test_the_default_search_is_theirs(pair: tuple[Any, Transcriber]) -> None:
    _, ours = pair
    assert ours.make_search() == Beam(1, stop_after=1)
    assert ours.make_search(4, n_best=2) == Beam(4, stop_after=4)
    clip = make_audio(1)
    assert ours.transcribe(clip).tokens == ours.transcribe(clip, Beam(1)).tokens
    first_tokens = {result.tokens[0] for result in ours.transcribe(clip, Beam(8), n_best=8).alternatives}
    assert not first_tokens & {220, *SUPPRESSED, EOS}


def test_new_folders_have_no_forced_tokens(tmp_path: Path) -> None:
    write_theirs(tmp_path / "theirs")
    document = {name: value for name, value in GENERATION.items() if name != "forced_decoder_ids"}
    document["no_timestamps_token_id"] = PROMPT
    (tmp_path / "theirs/generation_config.json").write_text(json.dumps(document), encoding="utf-8")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    assert load_transcriber(tmp_path / "ours").prompt == [BOS, PROMPT]


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("generation_config.json", {"forced_decoder_ids": [[1, None], [2, 5]]}, "does not set the language"),
        ("generation_config.json", {"forced_decoder_ids": None, "is_multilingual": True}, "is multilingual"),
        ("generation_config.json", {"forced_decoder_ids": [[2, 5]]}, "must be a list of pairs"),
        ("generation_config.json", {"forced_decoder_ids": [[1, PROMPT]] * 10**5}, "must be a list of pairs"),
        ("generation_config.json", {"forced_decoder_ids": [[1, 5]]}, "The model expects"),  # the template has another
        ("generation_config.json", {"suppress_tokens": [-1]}, "must be a list of tokens"),
        (
            "generation_config.json",
            {"suppress_tokens": [10**9]},
            "generation.suppress_tokens: has the token 1000000000",
        ),
        ("generation_config.json", {"begin_suppress_tokens": "all"}, "must be a list of tokens"),
        ("generation_config.json", {"num_beams": "5"}, "'num_beams' must be an integer"),
        ("config.json", {"max_source_positions": 10**12}, "pad_to"),
        ("config.json", {"num_mel_bins": 10**6}, "bins"),
        ("config.json", {"encoder_layers": 10**9}, "layers"),
        ("config.json", {"d_model": 1 << 36}, "The model needs"),
        ("config.json", {"num_mel_bins": 9}, "model.encoder.conv1.weight has shape"),
        ("config.json", {"tie_word_embeddings": False}, "tie_word_embeddings"),
        ("config.json", {"activation_function": "mish"}, "activation_function"),
    ],
)
def test_what_regard_cannot_hold_is_refused(file: str, change: dict[str, Any], message: str, tmp_path: Path) -> None:
    write_theirs(tmp_path / "theirs")
    path = tmp_path / "theirs" / file
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change), encoding="utf-8")
    with pytest.raises(RegardError, match=message):
        import_model(tmp_path / "theirs", tmp_path / "ours")
    assert [entry.name for entry in tmp_path.iterdir()] == ["theirs"]


def test_an_export_says_why_it_fails(tmp_path: Path) -> None:
    write_theirs(tmp_path / "theirs")
    import_model(tmp_path / "theirs", tmp_path / "ours")
    with pytest.raises(RegardError, match="imports WhisperForConditionalGeneration but does not export it"):
        export_model(tmp_path / "ours", "huggingface")
