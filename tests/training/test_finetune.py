"""Fine-tuning: runs that start from a trained model."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoTokenizer

import regard
from regard.base.errors import ConfigError, RegardError
from regard.base.files import create_folder
from regard.config.codec import RUN_FILES
from regard.config.run import RunConfig
from regard.config.toml_file import to_dict
from regard.data.shards.prepare import open_corpus
from regard.exchange.export import export_model
from regard.exchange.importer import import_model
from regard.serve.metrics import Metrics
from regard.serve.model import ServedModel
from regard.serve.settings import ServeConfig
from regard.store.adapter_folder import load_adapters, merge_adapter, read_adapter
from regard.store.examples import read_examples
from regard.store.model_folder import read_model
from regard.store.weights import get_weights, load_tensors
from regard.tasks.load import load_generator
from regard.text.special_marks import MARK
from regard.training.events import Event, Validated
from regard.training.finetune import compute_rate_scales
from regard.training.options import TrainOptions
from regard.training.recipes.configure import configure
from regard.training.run import fit, resume
from tests.commands import run_command
from tests.training.runs import make_sentences, make_small_run, translate_sentence, write_corpus

FEW = {"train.steps": 8, "train.save_every": 4, "validation.every_steps": 4, "train.average": 1, "train.ema": 0.0}


@pytest.fixture(scope="module")
def parents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small model of each family, in run folders."""
    folder = tmp_path_factory.mktemp("parents")
    files = write_corpus(folder / "corpus")
    for task in ("translation", "causal_lm", "masked_lm"):
        changes = {"model.encoder.layers": 2} if task != "causal_lm" else {}
        changes |= {"model.decoder.layers": 2} if task != "masked_lm" else {}
        fit(make_small_run(task, files, FEW | changes), folder / task)
    return {task: folder / task for task in ("translation", "causal_lm", "masked_lm")}


def _make_run(parent: Path, finetune: dict[str, Any], changes: dict[str, Any] | None = None) -> RunConfig:
    """Return the parent's run with settings of tuning: the same corpus, as if it were another one."""
    table = to_dict(RUN_FILES.load(parent / "run.toml"))
    table |= {"finetune": {"parent": str(parent), **finetune}, "tokenizer": {"kind": "parent"}}
    return RUN_FILES.parse(table, {"seed": 7, **(changes or {})})


def _read_weights(folder: Path) -> dict[str, Tensor]:
    return get_weights(read_model(folder).model)


def _changed(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    return {name for name, tensor in after.items() if name not in before or not torch.equal(tensor, before[name])}


def test_a_run_starts_from_the_weights_of_its_parent(parents: dict[str, Path], tmp_path: Path) -> None:
    events: list[Event] = []
    run = _make_run(parents["translation"], {}, {"train.schedule": {"kind": "constant", "lr": 1e-12}})
    fit(run, tmp_path / "run", listeners=[events.append])
    before, after = _read_weights(parents["translation"]), _read_weights(tmp_path / "run")
    assert max(float((after[name] - tensor).abs().max()) for name, tensor in before.items()) < 1e-6
    assert any("starts from" in str(event) and "(100.00%)" in str(event) for event in events)
    run_file = RUN_FILES.load(tmp_path / "run" / "run.toml")
    card = (tmp_path / "run" / "best" / "README.md").read_text()
    assert run_file.finetune is not None
    assert len(run_file.finetune.parent_sha256) == 64
    assert f"sha256 of the parent's weights: {run_file.finetune.parent_sha256}" in card


@pytest.mark.parametrize(
    ("finetune", "trained"),
    [
        ({}, lambda _: True),
        ({"freeze_embeddings": True}, lambda name: "embedding" not in name),
        ({"layers": 1}, lambda name: ".layers.1." in name or "final_norm" in name),
        ({"layers": 1, "fresh_layers": True}, lambda name: ".layers.1." in name or "final_norm" in name),
        ({"lora": {"rank": 2}}, lambda name: name.endswith("weight") and (".attention." in name or ".cross." in name)),
    ],
)
def test_only_the_chosen_parameters_change(
    parents: dict[str, Path], tmp_path: Path, finetune: dict[str, Any], trained: Any
) -> None:
    parent = parents["translation"]
    fit(_make_run(parent, finetune), tmp_path / "run")
    before = _read_weights(parent)
    assert _changed(before, _read_weights(tmp_path / "run")) == {name for name in before if trained(name)}
    checkpoint = max((tmp_path / "run" / "checkpoints").glob("step-*"))
    state = {name.partition("/")[2] for name in load_tensors(checkpoint / "optimizer.safetensors")}
    weights = load_tensors(checkpoint / "model.safetensors")
    expected = {name for name in weights if "lora_" in name} if "lora" in finetune else set(filter(trained, before))
    assert state == expected  # frozen weights have no optimizer state


def test_fresh_layers_are_initialised_anew(parents: dict[str, Path], tmp_path: Path) -> None:
    still = {"train.schedule": {"kind": "constant", "lr": 1e-12}}
    fit(_make_run(parents["translation"], {"layers": 1, "fresh_layers": True}, still), tmp_path / "run")
    before, after = _read_weights(parents["translation"]), _read_weights(tmp_path / "run")
    matrices = [name for name in before if ".layers.1." in name and before[name].dim() == 2]
    assert all(float((after[name] - before[name]).abs().max()) > 0.01 for name in matrices)
    assert (
        float(
            (after["encoder.layers.0.attention.query.weight"] - before["encoder.layers.0.attention.query.weight"])
            .abs()
            .max()
        )
        < 1e-6
    )


def test_extra_layers_are_new_and_trained_on_top_of_the_parent(parents: dict[str, Path], tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    run = tmp_path / "run"
    pairs = {"source": files["all.en"], "target": files["all.de"], "steps": 2, "force": True}
    regard.tune(parents["translation"], **pairs, extra_layers=1, layers=1, out=run)  # type: ignore[arg-type]
    before, after = _read_weights(parents["translation"]), _read_weights(run)
    extra = {name for name in after if ".layers.2." in name}  # the parent has two layers in each stack
    assert after.keys() - before.keys() == extra
    assert {name.split(".")[0] for name in extra} == {"encoder", "decoder"}
    changed = _changed(before, after) - extra
    assert all("final_norm" in name for name in changed)
    checkpoint = max((run / "checkpoints").glob("step-*"))
    state = {name.partition("/")[2] for name in load_tensors(checkpoint / "optimizer.safetensors")}
    assert {name for name in state if "final_norm" not in name} == extra  # the others are frozen
    assert "1 new layer on top of each stack" in (run / "best" / "README.md").read_text()


def test_extra_layers_never_replace_those_of_the_parent(parents: dict[str, Path], tmp_path: Path) -> None:
    run = _make_run(parents["translation"], {"extra_layers": 1})  # its model has as many layers as the parent
    with pytest.raises(RegardError, match="has not 1 layer more than its parent"):
        fit(run, tmp_path / "run")


@pytest.mark.parametrize("finetune", [{}, {"lora": {"rank": 2, "dropout": 0.1}}, {"layers": 1}])
def test_an_interrupted_run_ends_as_an_undisturbed_one(
    parents: dict[str, Path], tmp_path: Path, finetune: dict[str, Any]
) -> None:
    parent = tmp_path / "parent"
    shutil.copytree(parents["translation"], parent)
    fit(_make_run(parent, finetune, {"train.ema": 0.9}), tmp_path / "whole")
    fit(_make_run(parent, finetune, {"train.ema": 0.9}), tmp_path / "paused", pause_at=5)
    shutil.rmtree(parent)  # the run folder holds all that it needs
    resume(tmp_path / "paused")
    for name in (
        "metrics.jsonl",
        "best/model.safetensors",
        *(["adapter/adapter.safetensors"] if "lora" in finetune else []),
    ):
        assert (tmp_path / "paused" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_run_without_checkpoints_starts_from_its_parent_again(parents: dict[str, Path], tmp_path: Path) -> None:
    fit(_make_run(parents["translation"], {}), tmp_path / "whole")
    fit(_make_run(parents["translation"], {}), tmp_path / "killed", pause_at=4)
    for path in (tmp_path / "killed" / "checkpoints").glob("step-*"):
        shutil.rmtree(path)
    resume(tmp_path / "killed")
    weights = [(tmp_path / name / "best" / "model.safetensors").read_bytes() for name in ("whole", "killed")]
    assert weights[0] == weights[1]


def test_damaged_checkpoints_are_no_reason_to_start_from_scratch(parents: dict[str, Path], tmp_path: Path) -> None:
    fit(_make_run(parents["translation"], {}), tmp_path / "run", pause_at=2)
    for path in (tmp_path / "run" / "checkpoints").glob("step-*"):
        (path / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(RegardError, match="No intact checkpoint is left"):
        resume(tmp_path / "run")


def test_other_parameters_cannot_be_trained_in_a_resumed_run(parents: dict[str, Path], tmp_path: Path) -> None:
    fit(_make_run(parents["translation"], {"layers": 1}), tmp_path / "run", pause_at=2)
    with pytest.raises(RegardError, match="other trained parameters"):
        resume(tmp_path / "run", changes={"finetune.layers": 2}, force=True)


def test_adapters_are_stored_apart_and_used_beside_the_parent(parents: dict[str, Path], tmp_path: Path) -> None:
    parent = parents["translation"]
    rate = {"train.schedule": {"kind": "constant", "lr": 0.05}}
    fit(_make_run(parent, {"lora": {"rank": 2}}, rate), tmp_path / "run")
    adapter = read_adapter(tmp_path / "run")
    assert {name.rpartition(".")[2] for name in adapter.tensors} == {"lora_a", "lora_b"}
    size = (tmp_path / "run" / "adapter" / "adapter.safetensors").stat().st_size
    assert size < (parent / "best" / "model.safetensors").stat().st_size
    tuned, model = _read_weights(tmp_path / "run"), read_model(parent).model
    with load_adapters(model, parent, {"law": tmp_path / "run"}).active("law"):
        assert all(torch.allclose(tensor, tuned[name], atol=1e-6) for name, tensor in get_weights(model).items())
    tuned_translator = regard.load_translator(tmp_path / "run")
    translator = regard.load(parent, task="translation", adapters={"law": tmp_path / "run" / "adapter"})
    before, expected = translator.translate("the dog sees a cat"), tuned_translator.translate("the dog sees a cat")
    with translator.adapters.active("law"):
        assert translator.translate("the dog sees a cat").text == expected.text
    assert translator.translate("the dog sees a cat") == before
    with translator.prepared():  # a change of the adapter packs the weights again
        whole, stream = "".join(translator.stream("the dog sees a cat")), translator.stream("the dog sees a cat")
        first = next(stream)
        with translator.adapters.active("law"):
            assert translator.translate("the dog sees a cat").text == expected.text
        assert translator.translate("the dog sees a cat") == before
        with translator.adapters.active("law"):
            assert first + "".join(stream) == whole  # it goes on with the weights that it began with
    other = tmp_path / "other"
    fit(_make_run(parent, {}), other)
    with pytest.raises(RegardError, match="trained for different weights"):
        load_adapters(read_model(other).model, other, {"law": tmp_path / "run"})


def test_layers_learn_at_their_own_rates(parents: dict[str, Path]) -> None:
    run = _make_run(parents["translation"], {"layer_decay": 0.5})
    scales = compute_rate_scales(read_model(parents["translation"]).model, run.finetune)
    assert scales["encoder.layers.1.attention.query.weight"] == 0.5
    assert scales["decoder.layers.0.cross.query.weight"] == 0.25
    assert scales["decoder.final_norm.weight"] == 1
    assert scales["source.embedding.weight"] == 0.125


def test_the_rate_of_a_layer_moves_its_weights(parents: dict[str, Path], tmp_path: Path) -> None:
    """The first step of Adam moves every weight by the learning rate, whatever the gradient."""
    one = {
        "train.steps": 1,
        "train.optimizer": {"kind": "adam"},
        "train.schedule": {"kind": "constant", "lr": 1e-3},
    }
    fit(_make_run(parents["masked_lm"], {"layer_decay": 0.5}, one), tmp_path / "run")
    before, after = _read_weights(parents["masked_lm"]), _read_weights(tmp_path / "run")
    for name, rate in (
        ("encoder.layers.1.feedforward.up.weight", 5e-4),
        ("encoder.layers.0.feedforward.up.weight", 2.5e-4),
    ):
        assert float((after[name] - before[name]).abs().max()) == pytest.approx(rate, rel=0.02)


def test_labels_give_an_encoder_a_new_head(parents: dict[str, Path], tmp_path: Path) -> None:
    lines = [f"{line}\t{'dog' if 'dog' in line else 'none'}\n" for line in make_sentences(200, seed=3)]
    (tmp_path / "labels.tsv").write_text("".join(lines))
    options = {"settings": {"train": {"save_every": 5}, "validation": {"every_steps": 5}}, "steps": 10, "force": True}
    finished = regard.tune(parents["masked_lm"], data=tmp_path / "labels.tsv", out=tmp_path / "first", **options)  # type: ignore[arg-type]
    first = _read_weights(tmp_path / "first")
    assert {name for name in first if name.startswith("head.")} > {"head.classes.weight"}
    assert regard.load_classifier(finished.folder).classify("the red dog").label in ("dog", "none")
    run = RUN_FILES.load(tmp_path / "first" / "run.toml")
    assert run.finetune is not None
    assert run.finetune.layer_decay == 0.9
    # An adapter with a head makes the tuned model again, from its parent.
    regard.tune(parents["masked_lm"], data=tmp_path / "labels.tsv", out=tmp_path / "lora", **options, lora=2)  # type: ignore[arg-type]
    merge_adapter(tmp_path / "lora" / "adapter", parents["masked_lm"], tmp_path / "merged")
    for name in ("model.safetensors", "model.toml", "tokenizer.json"):
        assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "lora" / "best" / name).read_bytes()
    # The same labels again: the head is kept.
    regard.tune(tmp_path / "first", data=tmp_path / "labels.tsv", out=tmp_path / "second", **options, lora=2)  # type: ignore[arg-type]
    assert "New" not in (tmp_path / "second" / "log.txt").read_text()
    second = load_tensors(tmp_path / "second" / "adapter" / "adapter.safetensors")
    assert {name for name in second if not name.endswith(("lora_a", "lora_b"))} == {
        name for name in first if name.startswith("head.")
    }


def test_an_adapter_is_merged_only_into_its_parent(parents: dict[str, Path], tmp_path: Path) -> None:
    fit(_make_run(parents["translation"], {"lora": {"rank": 2}}), tmp_path / "run")
    with pytest.raises(RegardError, match="different weights"):
        merge_adapter(tmp_path / "run", tmp_path / "run", tmp_path / "merged")
    with create_folder(tmp_path / "old") as old:
        shutil.copytree(tmp_path / "run" / "adapter", old, dirs_exist_ok=True)
        (old / "model.toml").unlink()
        (old / "manifest.json").unlink()
    with pytest.raises(RegardError, match="has no model"):
        merge_adapter(tmp_path / "old", parents["translation"], tmp_path / "merged")
    result = run_command(
        *("import", str(tmp_path / "run" / "adapter"), "--parent", str(parents["translation"])),
        *("--out", str(tmp_path / "merged")),
    )
    assert result.code == 0, result.errors
    assert "with the adapter" in result.output
    assert _read_weights(tmp_path / "merged").keys() == _read_weights(tmp_path / "run").keys()


def test_pairs_teach_a_language_model_to_answer(parents: dict[str, Path], tmp_path: Path) -> None:
    files, events = write_corpus(tmp_path / "corpus"), list[Event]()
    out = tmp_path / "run"
    regard.tune(
        parents["causal_lm"], files["all.en"], files["all.de"], out=out, steps=4, force=True, listeners=[events.append]
    )
    assert RUN_FILES.load(out / "run.toml").model.task == "causal_lm"
    sample = next(event for event in events if isinstance(event, Validated)).samples[0]
    assert translate_sentence(sample.source) == sample.reference  # a whole prompt and its response


def test_the_chat_template_is_stored_with_the_model(parents: dict[str, Path], tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    template = "{{ bos_token }}{% for message in messages %}[{{ message.role }}] {{ message.content }}{{ eos_token }}"
    template += "{% endfor %} [answer]"
    (tmp_path / "chat.jinja").write_text(template, encoding="utf-8")
    options: dict[str, Any] = {"source": files["all.en"], "target": files["all.de"], "steps": 2, "force": True}
    regard.tune(parents["causal_lm"], **options, out=tmp_path / "first", chat_template=tmp_path / "chat.jinja")
    regard.tune(tmp_path / "first", **options, out=tmp_path / "second")  # with the template of its parent
    for name in ("first", "second"):
        assert (tmp_path / name / "best" / "chat_template.jinja").read_text() == template
    first, example = (read_examples(tmp_path / name / "validation.jsonl")[0] for name in ("first", "second"))
    prompt = example.source.removeprefix("[user] ").removesuffix(f"{MARK}</s> [answer]")
    assert first.source == example.source == f"[user] {prompt}{MARK}</s> [answer]"  # bos is part of every row
    assert example.target == translate_sentence(prompt)
    settings = ServeConfig(models={"second": tmp_path / "second"})
    served = ServedModel("second", tmp_path / "second", settings, Metrics())
    rendered = served.chat_template().render([{"role": "user", "content": prompt}])
    assert rendered == example.source
    shards = open_corpus(tmp_path / "second" / "shards" / "validation")
    tokens = shards.load_tokens(0)[: int(shards.shards[0].lengths[0, 0])].tolist()
    generator = load_generator(tmp_path / "second")
    bos, eos = (getattr(generator.tokenizers.source.specials, name) for name in ("bos", "eos"))
    assert generator.encode_prompts([rendered], 1) == [[bos, *tokens]]
    assert tokens.count(eos) == 1
    export_model(tmp_path / "second", "huggingface", tmp_path / "theirs")
    messages = [{"role": "user", "content": prompt}]
    theirs = AutoTokenizer.from_pretrained(tmp_path / "theirs")
    assert theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=False) == [bos, *tokens]
    assert (tmp_path / "theirs" / "chat_template.jinja").read_text() == template
    import_model(tmp_path / "theirs", tmp_path / "back")
    assert (tmp_path / "back" / "chat_template.jinja").read_text() == template


@pytest.mark.parametrize("task", ["translation", "causal_lm", "masked_lm"])
def test_new_tokens_start_from_the_mean_of_their_subwords(parents: dict[str, Path], tmp_path: Path, task: str) -> None:
    (tmp_path / "new.txt").write_text("<zebra>\nthe quick fox\n", encoding="utf-8")
    files, parent = write_corpus(tmp_path / "corpus"), read_model(parents[task])
    texts: dict[str, Any] = {"source": files["all.en"], "target": files["all.de"]}
    texts = texts if task == "translation" else {"text": files["book.txt"]}
    still = {"train.schedule": {"kind": "constant", "lr": 1e-12}, "validation.every_steps": 2}
    regard.tune(
        parents[task],
        **texts,
        out=tmp_path / "run",
        add_tokens=tmp_path / "new.txt",
        steps=2,
        force=True,
        settings=still,
    )
    stored = read_model(tmp_path / "run")
    tokenizer, before = stored.tokenizers.source, parent.tokenizers.source
    assert tokenizer.size == before.size + 2
    assert tokenizer.encode_ids(["<zebra> the quick fox"])[0][0] == before.size
    assert tokenizer.decode(tokenizer.encode_ids(["a <zebra> ran"])[0]) == "a <zebra> ran"
    subwords = before.encode_ids(["<zebra>", "the quick fox"])
    weights, old = get_weights(stored.model), get_weights(parent.model)
    grown = [name for name in weights if weights[name].shape != old[name].shape]
    assert (
        len(grown) == {"translation": 1, "causal_lm": 2, "masked_lm": 2}[task]
    )  # tied; two matrices; tied and its bias
    for name in grown:
        expected = torch.stack([old[name][ids].mean(dim=0) for ids in subwords])
        torch.testing.assert_close(weights[name][-2:], expected, rtol=0, atol=1e-5)
        torch.testing.assert_close(weights[name][:-2], old[name], rtol=0, atol=1e-5)
    assert "- new tokens: 2 (<zebra>, the quick fox)" in (tmp_path / "run" / "best" / "README.md").read_text()


def test_a_model_refuses_a_corpus_of_another_kind(parents: dict[str, Path], tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    with pytest.raises(RegardError, match="needs pairs of texts"):
        regard.tune(parents["translation"], text=files["book.txt"], out=tmp_path / "run")


@pytest.mark.parametrize(
    ("finetune", "changes", "message"),
    [
        ({"fresh_layers": True}, {}, "no layers are chosen"),
        ({"lora": {}, "layers": 1}, {}, "all frozen"),
        ({"lora": {}, "extra_layers": 1}, {}, "all frozen"),
        ({"lora": {}, "add_tokens": ["<a>"]}, {}, "would not be trained"),
        ({"lora": {}}, {"train.optimizer": {"kind": "muon"}}, "whole weight matrices"),
        ({"lora": {}}, {"parallel.tensor": 2}, "cannot be split among ranks"),
        ({}, {"tokenizer": {"kind": "byte"}}, "belong to the parent's tokens"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(
    parents: dict[str, Path], finetune: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        _make_run(parents["translation"], finetune, changes)


def test_a_wrong_parent_is_refused(parents: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="fewer than 3"):
        fit(_make_run(parents["translation"], {"layers": 3}), tmp_path / "deep")
    with pytest.raises(RegardError, match="not 00000000000"):
        fit(_make_run(parents["translation"], {"parent_sha256": "0" * 64}), tmp_path / "hash")
    wide = _make_run(parents["translation"], {}, {"model.d_model": 32})
    with pytest.raises(RegardError, match="The parent does not match the model"):
        fit(wide, tmp_path / "wide")


def test_tuning_decays_to_0_with_and_without_a_time(parents: dict[str, Path], tmp_path: Path) -> None:
    files = write_corpus(tmp_path / "corpus")
    sources = TrainOptions(source=[files["all.en"]], target=[files["all.de"]]).sources
    without, enough, short = (
        configure(sources, minutes=minutes, timer=lambda *_: 0.05, parent=parents["translation"]).run
        for minutes in (None, 1000.0, 0.1)
    )
    assert enough.train == without.train.model_copy(update={"minutes": 1000.0, "max_steps": without.train.steps})
    assert enough.validation == without.validation
    assert short.train.steps < without.train.steps
    assert [run.train.schedule.kind for run in (without, enough, short)] == ["linear"] * 3
