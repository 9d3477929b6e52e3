"""Which engines hold a model: every preset's verdicts, and every knob that takes one away."""

import pytest

from regard.config.codec import preset
from regard.config.toml_file import parse_settings
from regard.exchange.exportable import exportable_to, find_target_obstacles

EXPORTABLE = {
    "bart": ["ctranslate2", "huggingface:BartForConditionalGeneration"],
    "base": ["ctranslate2", "huggingface:MarianMTModel"],
    "bert": ["huggingface:BertForMaskedLM"],
    "big": ["ctranslate2", "huggingface:MarianMTModel"],
    "lm-small": ["ctranslate2", "huggingface:LlamaForCausalLM"],
    "gpt2": ["ctranslate2", "huggingface:GPT2LMHeadModel"],
    "lecture": ["ctranslate2"],
    "lm-medium": ["ctranslate2", "huggingface:LlamaForCausalLM"],
    "llama": ["ctranslate2", "huggingface:LlamaForCausalLM"],
    "mini": ["ctranslate2", "huggingface:MarianMTModel"],
    "encoder-small": ["huggingface:BertForMaskedLM"],
    "encoder-tiny": [],
    "small": ["ctranslate2", "huggingface:PegasusForConditionalGeneration"],
    "tiny": ["ctranslate2", "huggingface:MarianMTModel"],
}


def list_exportable(name: str, *settings: str) -> list[str]:
    verdicts = exportable_to(preset(name, parse_settings(settings)))
    assert all(verdict.is_exact == (not verdict.obstacles) for verdict in verdicts)
    return [verdict.target for verdict in verdicts if verdict.is_exact]


@pytest.mark.parametrize("name", EXPORTABLE)
def test_presets(name: str) -> None:
    assert list_exportable(name) == EXPORTABLE[name]


MARIAN_OBSTACLES = [
    "encoder.norm_order=pre",
    "decoder.final_norm=true",
    "encoder.input_norm=true",
    "encoder.norm.eps=1e-6",
    'encoder.norm={kind = "rms"}',
    "encoder.norm.bias=false",
    "decoder.position.layout=interleaved",
    "decoder.position.base=500.0",
    "decoder.window=8",
    "encoder.attention.key_value_heads=2",
    "encoder.attention.key_dim=16",
    "encoder.attention.value_dim=16",
    "encoder.attention.score.scale=1.0",
    "encoder.attention.score.kind=dot",
    "decoder.cross.bias.key=false",
    "decoder.cross.heads=2",  # it has one number for the decoder
    "decoder.attention.query_key_norm.kind=rms",
    'encoder.feedforward={kind = "gated", d_ff = 256}',
    "encoder.feedforward.activation=gelu",  # one stack only
    "encoder.feedforward.bias=false",
    "head.tied=false",
    'target={kind = "tokens", vocabulary = 10000}',  # not scaled, unlike the source
]


@pytest.mark.parametrize("setting", MARIAN_OBSTACLES)
def test_every_setting_that_marian_lacks_is_an_obstacle(setting: str) -> None:
    assert "huggingface:MarianMTModel" not in list_exportable("tiny", setting)


def test_a_target_table_of_its_own_is_marians_only() -> None:
    own_table = 'target={kind = "tokens", vocabulary = 9000, scale = true}'
    assert list_exportable("tiny", own_table) == EXPORTABLE["tiny"]
    assert list_exportable("small", own_table) == ["ctranslate2"]


def test_positions_of_both_stacks_must_be_alike() -> None:
    positions = [f'{stack}.position={{kind = "sinusoidal", base = 500.0}}' for stack in ("encoder", "decoder")]
    assert list_exportable("bart", *positions) == EXPORTABLE["bart"]
    assert list_exportable("bart", positions[0]) == ["ctranslate2"]
    assert list_exportable("bart", "decoder.position.length=512") == ["ctranslate2"]


@pytest.mark.parametrize(
    "settings",
    [
        ("encoder.attention.score.kind=general",),
        ("decoder.cross.score={kind = 'additive', hidden = 8}",),
        ("decoder.cross.query_key_norm.kind=rms",),
        ("encoder.position.kind=alibi",),
        ("encoder.attention.value_dim=16",),
        ("encoder.norm.eps=1e-6",),
        ('source={kind = "mel", bins = 80}', 'target={kind = "tokens", vocabulary = 100}', "task=transcription"),
        ("encoder.window=8",),
        ("decoder.cross.heads=8",),
    ],
)
def test_what_ctranslate2_lacks(settings: tuple[str, ...]) -> None:
    assert list_exportable("tiny", *settings) == []


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (("decoder.attention.query_key_norm={kind = 'rms', eps = 1e-5}",), "Qwen3ForCausalLM"),
        (
            tuple(f"decoder.attention.bias.{name}=true" for name in ("query", "key", "value")),
            "Qwen2ForCausalLM",
        ),
        (("decoder.feedforward.bias=true",), "LlamaForCausalLM"),
        (("decoder.attention.key_dim=64",), "LlamaForCausalLM"),
    ],
)
def test_what_modern_decoder_only_models_hold(settings: tuple[str, ...], name: str) -> None:
    assert list_exportable("llama", *settings) == ["ctranslate2", f"huggingface:{name}"]


def test_t5() -> None:
    settings = []
    for stack in ("encoder", "decoder"):
        settings += [
            f"{stack}.norm_order=pre",
            f"{stack}.final_norm=true",
            f"{stack}.norm.kind=rms",
            f"{stack}.position.kind=relative",
            f'{stack}.feedforward={{kind = "gated", d_ff = 256, activation = "gelu_tanh"}}',
        ]
    for attention in ("encoder.attention", "decoder.attention", "decoder.cross"):
        settings += [f"{attention}.score.scale=1.0"]
        settings += [f"{attention}.bias.{name}=false" for name in ("query", "key", "value", "output")]
    settings.append("source.scale=false")
    assert list_exportable("tiny", *settings) == ["ctranslate2", "huggingface:T5ForConditionalGeneration"]
    for extra in ("source.scale=true", "head.bias=true", "encoder.attention.key_dim=16", "decoder.position.buckets=16"):
        assert list_exportable("tiny", *settings, extra) == ["ctranslate2"]


def test_heads_and_inputs_of_encoder_only_models() -> None:
    labels = 'labels = ["a", "b"]'
    assert list_exportable("bert", f"head={{kind = 'classes', {labels}}}", "task=text_classification") == [
        "huggingface:BertForSequenceClassification"
    ]
    assert (
        list_exportable("bert", f"head={{kind = 'classes', pool = 'mean', {labels}}}", "task=text_classification") == []
    )
    assert list_exportable("bert", f"head={{kind = 'tags', {labels}}}", "task=tagging") == [
        "huggingface:BertForTokenClassification"
    ]
    assert list_exportable("bert", "head.tied=false") == []
    assert list_exportable("bert", "source.types=0") == EXPORTABLE["bert"]
    assert list_exportable("bert", "head={kind = 'none'}", "task=embedding") == ["ctranslate2", "huggingface:BertModel"]
    assert list_exportable("gpt2", "head={kind = 'none'}", "task=embedding") == []
    assert list_exportable("gpt2", 'prefix={kind = "patches", patch = 4}', "task=captioning") == []


def test_dot_is_a_scaled_dot_with_scale_one() -> None:
    expected = "encoder.attention.score multiplies by 1 (it requires 0.1768)"
    for setting in ("encoder.attention.score.kind=dot", "encoder.attention.score.scale=1.0"):
        verdict = exportable_to(preset("tiny", parse_settings([setting])))[1]
        assert verdict.obstacles == (expected,)


def test_a_verdict_reads_as_a_sentence() -> None:
    verdict = exportable_to(preset("tiny", {"encoder.layers": 2, "head.tied": False}))[1]
    assert str(verdict) == "huggingface:MarianMTModel: no, head.tied is false"


@pytest.mark.parametrize("name", ["rnnsearch", "lstm"])
def test_no_engine_runs_recurrent_layers(name: str) -> None:
    settings = preset(name)
    verdicts = exportable_to(settings)
    assert len(verdicts) > 1
    assert not any(verdict.is_exact for verdict in verdicts)
    assert "decoder.kind is recurrent (it runs attention layers only)" in verdicts[0].obstacles
    assert find_target_obstacles(settings, "onnx") == verdicts[0].obstacles


def test_argos_holds_translation_models_of_ctranslate2() -> None:
    assert find_target_obstacles(preset("tiny"), "argos") == ()
    assert find_target_obstacles(preset("tiny", {"encoder.window": 8}), "argos") == ("encoder.window is not supported",)
    assert find_target_obstacles(preset("gpt2"), "argos") == ("task is causal_lm (it requires translation)",)
