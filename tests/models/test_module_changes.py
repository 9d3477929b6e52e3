"""A changed module changes every task in the same way: the output of a task, rescored by `model(...)`, is equal.

Each module of small models of all families is changed in every way that PyTorch offers.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from regard.base.errors import RegardError, ShapeError
from regard.config import codec
from regard.decode.filters import Filters
from regard.look import attribution
from regard.look.build import look_into
from regard.models.build import build
from regard.nn.feedforward import FeedForward
from regard.nn.positions import Position
from regard.nn.scores import ScoreFunction
from regard.tasks.causal_lm.continuations import score_continuations
from regard.tasks.causal_lm.generator import TextGenerator
from regard.tasks.embedding import Embedder
from regard.tasks.encoding import add_special_tokens
from regard.tasks.masked_lm import FillMask
from regard.tasks.pseudo_likelihood import pseudo_likelihood
from regard.tasks.replay import ReplayInput
from regard.tasks.requests import ReplayOptions
from regard.tasks.search import Beam
from regard.tasks.teacher_forcing import Row
from regard.tasks.translation.ensemble import EnsembleTranslator
from regard.tasks.translation.translator import Translator
from tests.tasks.factories import (
    make_generator_settings,
    make_tokenizer,
    make_tokenizers,
    make_translator_settings,
    perturb,
)

CLOSE = 2e-4
FACTOR = 1.5
SOURCE = "Two young"


def scale(value: Any) -> Any:
    """Scale the vectors of an output, or of the arguments of a call; shift token ids."""
    if isinstance(value, tuple):
        return (scale(value[0]), *value[1:])
    if not isinstance(value, Tensor):
        return value
    return value * FACTOR if value.is_floating_point() else (value + 1) % make_tokenizer().size


class Wrapper(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return scale(self.module(*args, **kwargs))


class Scale(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight * FACTOR


def add_hook(model: nn.Module, name: str) -> None:
    model.get_submodule(name).register_forward_hook(lambda _module, _args, output: scale(output))


def add_pre_hook(model: nn.Module, name: str) -> None:
    model.get_submodule(name).register_forward_pre_hook(lambda _module, args: scale(args))


def change_class(model: nn.Module, name: str) -> None:
    module = model.get_submodule(name)
    kind = type(module)
    forward: Any = kind.forward
    module.__class__ = type(
        f"My{kind.__name__}", (kind,), {"forward": lambda self, *args, **kwargs: scale(forward(self, *args, **kwargs))}
    )


def replace_module(model: nn.Module, name: str) -> None:
    replacement = copy.deepcopy(model.get_submodule(name))
    change_weight(replacement, "")
    model.set_submodule(name, replacement)


def wrap_module(model: nn.Module, name: str) -> None:
    model.set_submodule(name, Wrapper(model.get_submodule(name)))


def replace_forward(model: nn.Module, name: str) -> None:
    module = model.get_submodule(name)
    forward = module.forward
    module.forward = lambda *args, **kwargs: scale(forward(*args, **kwargs))


def parametrize_weight(model: nn.Module, name: str) -> None:
    module = model.get_submodule(name)
    for parameter in list(module._parameters):
        if module._parameters[parameter] is not None:
            parametrize.register_parametrization(module, parameter, Scale())


@torch.no_grad()
def change_weight(model: nn.Module, name: str) -> None:
    for parameter in model.get_submodule(name).parameters(recurse=not name):
        parameter.mul_(FACTOR)


def change_data(model: nn.Module, name: str) -> None:
    for parameter in model.get_submodule(name).parameters(recurse=False):
        parameter.data = parameter.data * FACTOR


def replace_weight(model: nn.Module, name: str) -> None:
    module = model.get_submodule(name)
    for key, parameter in list(module.named_parameters(recurse=False)):
        setattr(module, key, nn.Parameter(parameter.detach() * FACTOR))


CALL_CHANGES = [add_hook, add_pre_hook, change_class, replace_module, wrap_module, replace_forward]
WEIGHT_CHANGES = [parametrize_weight, change_weight, change_data, replace_weight]
Change = Callable[[nn.Module, str], None]


Check = Callable[[Any, Any], list[float]]  # compares the tasks of a model, with its settings, with `model(...)`


def assert_close(actual: Iterable[float], expected: list[float]) -> None:
    assert list(actual) == pytest.approx(expected, abs=CLOSE, rel=CLOSE)


def select(logits: Tensor, tokens: Sequence[int]) -> list[float]:
    """Return the log-probabilities of tokens, from logits (T, V)."""
    return logits.log_softmax(dim=-1)[torch.arange(len(tokens)), torch.tensor(tokens)].tolist()


@torch.inference_mode()
def check_translator(model: Any, settings: Any) -> list[float]:
    tokenizers = make_tokenizers()
    translator = Translator(model, tokenizers, settings)
    (source,) = translator.encode_sources([SOURCE], None)
    translation = translator.translate(SOURCE, Beam(2), max_new_tokens=3)
    tokens, target = translation.tokens, [tokenizers.target.specials.bos, *translation.tokens[:-1]]
    expected = select(model(torch.tensor([source]), torch.tensor([target]))[0], tokens)
    assert_close(translation.logprobs, expected)
    assert_close(translator.make_scorer().score_rows([Row(0, source, target, list(tokens))])[0], expected)
    passage = ReplayInput(model, source, target, range(len(tokens)), tokens)  # what `regard.look` runs
    assert_close(passage.replay()[0].tolist(), expected)
    return expected


@torch.inference_mode()
def check_generator(model: Any, settings: Any) -> list[float]:
    generator = TextGenerator(model, make_tokenizers(), settings)
    (prompt,) = generator.encode_prompts([SOURCE], 3)
    text = generator.generate(SOURCE, 3, Beam(2))
    inputs, start = [*prompt, *text.tokens[:-1]], len(prompt) - 1
    expected = select(model(torch.tensor([inputs]))[0, start:], text.tokens)
    assert_close(text.logprobs, expected)
    row = Row(0, [], inputs, [*prompt[1:], *text.tokens], overlap=start)
    assert_close(generator.make_scorer().score_rows([row])[0], expected)
    passage = ReplayInput(model, (), inputs, range(start, len(inputs)), text.tokens)
    assert_close(passage.replay()[0].tolist(), expected)
    (scores,) = score_continuations(model, [prompt], [[text.tokens]], pad_id=0, batch_tokens=64)
    assert_close(scores[0], expected)
    return expected


@torch.inference_mode()
def check_fill_mask(model: Any, settings: Any) -> list[float]:
    fill_mask, tokenizer = FillMask(model, make_tokenizers(), settings), make_tokenizer()
    row = fill_mask.encode_row(1, "Two ___")
    logits = model(torch.tensor([row]))[0, row.index(tokenizer.specials.mask)]
    logits[tokenizer.specials.not_text] = float("-inf")
    expected = logits.softmax(dim=-1)
    (candidates,) = fill_mask.fill("Two ___").gaps
    assert_close((candidate.probability for candidate in candidates), [expected[c.token].item() for c in candidates])
    passage = fill_mask.replay("Two ___").input
    assert_close(passage.replay()[0].tolist(), [expected[passage.labels[0]].log().item()])
    likelihood = pseudo_likelihood(fill_mask, ["Two"])
    row = add_special_tokens(tokenizer, tokenizer.encode("Two").ids)
    for position, (token, logprob) in enumerate(zip(row[1:-1], likelihood.logprobs[0], strict=True), 1):
        masked = [*row[:position], tokenizer.specials.mask, *row[position + 1 :]]
        assert_close([logprob], select(model(torch.tensor([masked]))[0, [position]], [token]))
    return logits[-9:].tolist()


@torch.inference_mode()
def check_embedder(model: Any, settings: Any) -> list[float]:
    embedder = Embedder(model, make_tokenizers(), settings)
    states = model(torch.tensor(embedder.encode_rows([SOURCE])))[0]  # (T, D)
    expected: list[float] = nn.functional.normalize(states.mean(dim=0), dim=0).tolist()
    assert_close(embedder.embed(SOURCE).tolist(), expected)
    return expected


def make_recurrent_settings(cell: str, **cross: Any) -> Any:
    stack = {"kind": "recurrent", "layers": 1, "cell": cell}
    parts = {"source.vocabulary": make_tokenizer().size, "encoder": stack, "decoder": stack | {"cross": cross}}
    return codec.preset("rnnsearch", {"d_model": 16} | parts)


def make_encoder_settings(**changes: Any) -> Any:
    size = {
        "d_model": 16,
        "source.vocabulary": make_tokenizer().size,
        "encoder.layers": 1,
        "encoder.attention.heads": 2,
    }
    return codec.preset("bert", size | {"encoder.feedforward.d_ff": 24, "encoder.position.length": 16} | changes)


def make_decoder_settings() -> Any:
    feedforward = {"kind": "gated", "d_ff": 24, "activation": "silu"}
    parts = {"decoder.position.length": 16, "decoder.feedforward": feedforward, "decoder.norm": {"kind": "rms"}}
    return make_generator_settings(**{"d_model": 16, "decoder.attention.heads": 2} | parts)


FAMILIES: dict[str, tuple[Callable[[], Any], Check]] = {
    "encoder_decoder": (lambda: make_translator_settings(d_model=16), check_translator),
    "decoder_only": (make_decoder_settings, check_generator),
    "encoder_only": (make_encoder_settings, check_fill_mask),
    "encoder_only_headless": (lambda: make_encoder_settings(task="embedding", head={"kind": "none"}), check_embedder),
    "lstm": (lambda: make_recurrent_settings("lstm", kind="luong"), check_translator),
    "gru": (lambda: make_recurrent_settings("gru", kind="fixed_vector"), check_translator),
    "bahdanau": (
        lambda: make_recurrent_settings("gru", kind="bahdanau", score={"kind": "additive", "hidden": 8}),
        check_translator,
    ),
}


@cache
def make_family(name: str) -> tuple[Any, Any, Check]:
    """Return a model, its settings and the comparison of its tasks with `model(...)`."""
    make_settings, check = FAMILIES[name]
    settings = make_settings()
    return perturb(build(settings, seed=1), 1), settings, check


def is_changeable(model: nn.Module, path: str, change: Change) -> bool:
    """Whether a change of a module is possible at all; positions and scores have no `forward`."""
    module = model.get_submodule(path)
    if change in WEIGHT_CHANGES:
        return any(True for _ in module.parameters(recurse=False))
    return not isinstance(module, nn.ModuleList | Position | ScoreFunction)


def list_groups(name: str, change: Change) -> list[list[str]]:
    """Return the modules that are changed together: one by one where a packed decoder may run, otherwise all."""
    model, _, _ = make_family(name)
    paths = [path for path, _ in model.named_modules() if path and is_changeable(model, path, change)]
    if name not in ("encoder_decoder", "decoder_only"):
        return [[path for path in paths if path not in ("decoder.layers.0.cell", "decoder.layers.0.cross")]]
    encoder = [path for path in paths if path.startswith("encoder")]
    return [[path] for path in paths if path not in encoder] + ([encoder] if encoder else [])


# Both families decode with the same code: by default a language model gets every other kind of change only.
CHANGED = [
    pytest.param(name, change, marks=pytest.mark.slow if name == "decoder_only" and number % 2 else ())
    for name in FAMILIES
    for number, change in enumerate([*CALL_CHANGES, *WEIGHT_CHANGES])
]


@pytest.mark.parametrize(("name", "change"), CHANGED)
def test_changed_modules_change_all_tasks(name: str, change: Change) -> None:
    base, settings, check = make_family(name)
    expected = check(base, settings)
    effects = 0
    for paths in list_groups(name, change):
        model = copy.deepcopy(base)
        for path in reversed(paths):  # children first
            change(model, path)
        try:
            effects += check(model, settings) != pytest.approx(expected, abs=1e-3)
        except AssertionError as error:
            raise AssertionError(f"{change.__name__} of {', '.join(paths)}") from error
    assert effects >= 0.6 * len(list_groups(name, change))


PIPELINES: list[tuple[str, Any]] = [
    ("encoder_decoder", Translator),
    ("decoder_only", TextGenerator),
    ("encoder_only", FillMask),
    ("lstm", Translator),
]


@pytest.mark.parametrize("change", [add_hook, wrap_module])
@pytest.mark.parametrize(("name", "kind"), PIPELINES)
def test_look_shows_changed_modules(name: str, kind: Any, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change inputs, stacks and position tables: a look reads their attributes."""
    monkeypatch.setattr(attribution, "MAX_STEPS", attribution.FIRST_STEPS)  # inexact, but fast
    base, settings, _ = make_family(name)
    model: Any = copy.deepcopy(base)
    inputs = ("source.embedding", "tokens.embedding", "source", "tokens", "encoder.position.table")
    for path in (*inputs, "decoder.position.table", "encoder", "decoder"):
        with suppress(AttributeError):  # this family has no such module
            change(model, path)
    text = "Two ___" if kind is FillMask else SOURCE
    pipeline = kind(model, make_tokenizers(), settings)
    look = look_into(pipeline, text, search=Beam(1), max_new_tokens=2, ablation=False)
    passage = look.run.input
    rows = [torch.tensor([list(ids)]) for ids in (passage.source, passage.target) if len(ids)]
    with torch.inference_mode():
        logits = model(*rows)[0, list(passage.rows)]
        assert look.document["attribution"] is not None
        assert_close(look.document["attribution"]["logits"], logits[torch.arange(len(logits)), passage.labels].tolist())
        logits[:, list(passage.suppressed)] = float("-inf")
        assert_close(passage.replay()[0].tolist(), select(logits, passage.labels))


CELL_CHANGES = [change for change in CALL_CHANGES if change is not replace_module] + [parametrize_weight]


@pytest.mark.parametrize("change", CELL_CHANGES)
@pytest.mark.parametrize("name", ["lstm", "gru", "bahdanau"])
def test_changed_recurrent_cell_cannot_decode(name: str, change: Change) -> None:
    base, settings, check = make_family(name)
    model = copy.deepcopy(base)
    change(model, "decoder.layers.0.cell")
    with pytest.raises(RegardError, match="recurrent cell was changed"):
        check(model, settings)


def hook_model(model: nn.Module) -> None:
    model.register_forward_hook(lambda _module, _args, output: scale(output))


def pre_hook_model(model: nn.Module) -> None:
    model.register_forward_pre_hook(lambda _module, args: scale(args))


def override_model(model: nn.Module) -> None:
    forward = model.forward
    model.forward = lambda *args, **kwargs: scale(forward(*args, **kwargs))


@pytest.mark.parametrize("change", [hook_model, pre_hook_model, override_model, lambda model: change_class(model, "")])
@pytest.mark.parametrize("name", ["encoder_decoder", "decoder_only", "encoder_only", "bahdanau"])
def test_change_of_whole_model_is_refused_where_tasks_bypass_it(name: str, change: Callable[[Any], None]) -> None:
    base, settings, check = make_family(name)
    model = copy.deepcopy(base)
    change(model)
    with pytest.raises(RegardError, match="forward"):
        check(model, settings)
    if name == "encoder_only":
        with pytest.raises(RegardError, match="forward"):
            ReplayInput(model, [5, 6], (), [0], [7]).replay()
        FillMask(model, make_tokenizers(), settings).fill("Two ___")  # calls the whole model
        return
    pipeline: Any = (Translator if name != "decoder_only" else TextGenerator)(model, make_tokenizers(), settings)
    with pytest.raises(RegardError, match="forward"):
        pipeline.make_scorer().score([SOURCE], None if name == "decoder_only" else [SOURCE])
    with pytest.raises(RegardError, match="forward"):
        pipeline.replay(SOURCE, ReplayOptions(Beam(1), max_new_tokens=2))


def test_whole_headless_encoder_may_be_changed() -> None:
    base, settings, check = make_family("encoder_only_headless")
    model = copy.deepcopy(base)
    model.register_forward_hook(lambda _module, _args, output: output + 1)
    assert check(model, settings) != pytest.approx(check(base, settings), abs=1e-3)


def test_model_with_own_step_is_trusted() -> None:
    base, settings, _ = make_family("encoder_decoder")
    model: Any = copy.deepcopy(base)
    forward, step = model.forward, model.step
    model.forward = lambda *args, **kwargs: scale(forward(*args, **kwargs))
    model.step = lambda *args, **kwargs: scale(step(*args, **kwargs))
    translation = Translator(model, make_tokenizers(), settings).translate(SOURCE, Beam(2), max_new_tokens=3)
    plain = Translator(base, make_tokenizers(), settings).translate(SOURCE, Beam(2), max_new_tokens=3)
    assert translation.logprobs != pytest.approx(plain.logprobs, abs=1e-3)


@pytest.mark.parametrize("is_prepared", [False, True])
def test_hook_after_first_translation_takes_effect_and_is_logged_once(
    is_prepared: bool, caplog: pytest.LogCaptureFixture
) -> None:
    base, settings, _ = make_family("encoder_decoder")
    translator = Translator(copy.deepcopy(base), make_tokenizers(), settings)
    with translator.prepared() if is_prepared else nullcontext():
        plain = translator.translate(SOURCE, Beam(2), max_new_tokens=3)
        assert not caplog.records
        add_hook(translator.model, "decoder.layers.0.feedforward")
        results = [translator.translate(SOURCE, Beam(2), max_new_tokens=3) for _ in range(2)]
    assert results[0] == results[1]
    assert results[0].logprobs != pytest.approx(plain.logprobs, abs=1e-3)
    (record,) = caplog.records
    assert "model.decoder.layers.0.feedforward has a forward hook" in record.getMessage()


def use_known_class_in_other_place(model: Any) -> None:
    model.decoder.layers[0].feedforward_residual.dropout = nn.Linear(16, 16)


def override_method(model: Any) -> None:
    attention = model.decoder.layers[0].attention
    project = attention.project_query
    attention.project_query = lambda x: scale(project(x))


def limit_embedding(model: Any) -> None:
    model.source.embedding.max_norm = 0.5
    model.head.projection = nn.Linear(16, model.source.embedding.num_embeddings)  # its bias is not read


def hook_all_modules(model: Any) -> None:
    feedforward = model.decoder.layers[0].feedforward

    def change_output(module: nn.Module, _args: Any, output: Any) -> Any:
        return scale(output) if module is feedforward else None

    nn.modules.module.register_module_forward_hook(change_output)


@pytest.fixture(autouse=True)
def remove_global_hooks() -> Iterator[None]:
    yield
    nn.modules.module._global_forward_hooks.clear()


@pytest.mark.parametrize("change", [use_known_class_in_other_place, override_method, limit_embedding, hook_all_modules])
def test_unusual_changes_change_all_tasks(change: Callable[[Any], None]) -> None:
    base, settings, check = make_family("encoder_decoder")
    expected, model = check(base, settings), copy.deepcopy(base)
    change(model)
    assert check(model, settings) != pytest.approx(expected, abs=1e-3)


def test_patched_class_changes_all_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    base, settings, check = make_family("encoder_decoder")
    expected, forward = check(base, settings), FeedForward.forward
    monkeypatch.setattr(FeedForward, "forward", lambda self, x, context: scale(forward(self, x, context)))
    assert check(base, settings) != pytest.approx(expected, abs=1e-3)


def test_replaced_model_of_a_pipeline_runs() -> None:
    base, settings, _ = make_family("encoder_decoder")
    translator = Translator(base, make_tokenizers(), settings)
    plain = translator.translate(SOURCE, Beam(2), max_new_tokens=3)
    other = copy.deepcopy(base)
    change_weight(other, "decoder.layers.0.feedforward.up")
    translator.model = other
    expected = Translator(other, make_tokenizers(), settings).translate(SOURCE, Beam(2), max_new_tokens=3)
    assert translator.translate(SOURCE, Beam(2), max_new_tokens=3) == expected != plain


def test_draft_and_target_of_speculative_decoding_run_changed_modules() -> None:
    base, settings, _ = make_family("decoder_only")
    model, draft_model = copy.deepcopy(base), copy.deepcopy(base)
    for changed in (model, draft_model):
        add_hook(changed, "decoder.layers.0.feedforward")
    generator, draft = (TextGenerator(changed, make_tokenizers(), settings) for changed in (model, draft_model))
    text, result = generator.generate_with_draft(draft, SOURCE, 6, filters=Filters(temperature=0))
    assert result.accepted == result.proposed > 0  # one model: it accepts what it proposes
    (prompt,) = generator.encode_prompts([SOURCE], 6)
    with torch.inference_mode():
        logits = model(torch.tensor([[*prompt, *text.tokens[:-1]]]))[0, len(prompt) - 1 :]
        logits[:, make_tokenizer().specials.not_text] = float("-inf")
    assert list(text.tokens) == logits.argmax(dim=-1).tolist()


def test_ensemble_runs_changed_modules_of_all_members() -> None:
    base, settings, _ = make_family("encoder_decoder")
    members = [Translator(copy.deepcopy(base), make_tokenizers(), settings) for _ in range(2)]
    add_hook(members[1].model, "decoder.layers.0.feedforward")
    ensemble = EnsembleTranslator(members)
    translation = ensemble.translate(SOURCE, Beam(2), max_new_tokens=3)
    (source,), bos = ensemble.encode_sources([SOURCE], None), make_tokenizer().specials.bos
    target = torch.tensor([[bos, *translation.tokens[:-1]]])
    with torch.inference_mode():
        logits = [member.model(torch.tensor([source]), target)[0] for member in members]
        mean = torch.stack([member.softmax(dim=-1) for member in logits]).mean(dim=0)
    assert_close(translation.logprobs, select(mean.log(), translation.tokens))


@pytest.mark.parametrize("is_copy", [False, True])
@pytest.mark.parametrize("name", ["encoder_decoder", "decoder_only"])
def test_layer_that_runs_twice_is_refused_because_its_keys_would_collide(name: str, is_copy: bool) -> None:
    base, settings, check = make_family(name)
    model: Any = copy.deepcopy(base)
    layer = model.decoder.layers[0]
    model.decoder.layers.append(copy.deepcopy(layer) if is_copy else layer)
    with pytest.raises(ShapeError, match=r"Two decoder modules are named 'decoder\.0"):
        check(model, settings)
    if is_copy:
        for part in ("attention", "cross"):
            if getattr(model.decoder.layers[1], part) is not None:
                getattr(model.decoder.layers[1], part).name += ".copy"
        check(model, settings)
