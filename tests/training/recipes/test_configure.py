"""Automatic configuration: the settings for a corpus, and the reason for every choice."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.base.errors import ConfigError, RegardError
from regard.config import codec
from regard.config.model import EncoderDecoderConfig
from regard.config.parts import attention_stack
from regard.config.sources import ConllConfig, DocumentsConfig, LinesConfig, TableConfig
from regard.config.tokenizers import ByteBpeConfig, CharacterLevelConfig
from regard.config.toml_file import to_dict
from regard.config.training import AdamConfig, CosineConfig, InverseSqrtConfig, LinearConfig
from regard.data.shards.prepare import open_corpus
from regard.training.recipes.configure import configure
from regard.training.vocabularies import expect_vocabularies
from tests.training.recipes.factories import find_reason, make_timer, translation_model

DATA = Path(__file__).parents[3] / "../shared/data"
NORMS = {"norm_order": "pre", "final_norm": True}  # the automatic choice for translation


def test_a_prepared_corpus_decides_vocabulary_and_validation_data(
    shards: Path, pairs: Callable[[int], LinesConfig]
) -> None:
    auto_run = configure(pairs(600), changes={"data.prepared": str(shards)})
    assert translation_model(auto_run).target_tokens.vocabulary == 400
    assert find_reason(auto_run, "Tokenizer").endswith("shards: 400 tokens.")
    assert not any(reason.startswith("Vocabulary") for reason in auto_run.reasons)
    count = len(open_corpus(shards / "validation"))
    assert auto_run.run.data.held_out == 0  # prepared shards cannot be split again
    assert auto_run.run.validation.sentences == count
    assert find_reason(auto_run, "Validation data").startswith(f"Validation data: the {count} samples")
    shutil.rmtree(shards / "validation")
    without = configure(pairs(600), changes={"data.prepared": str(shards)})
    assert find_reason(without, "Validation data").startswith("Validation data: none")


def test_an_unknown_setting_is_reported_before_the_corpus_is_read() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean 'train\.steps'"):
        configure(LinesConfig(source="nowhere.en", target="nowhere.de"), changes={"steps": 3})


def test_a_few_hundred_pairs(pairs: Callable[[int], LinesConfig]) -> None:
    auto_run = configure(pairs(600))
    run = auto_run.run
    assert run.model.family == "encoder_decoder"
    assert run.model.languages == ("en", "de")
    assert run.model.encoder.layers == 2
    assert run.tokenizer == ByteBpeConfig(vocabulary=1000)
    assert run.model.target_tokens.vocabulary == 1000
    assert run.model.encoder.dropout.sublayer == run.model.decoder.dropout.embedding == 0.3
    assert run.data.held_out == 0.1
    assert run.validation.metric == "chrf"
    assert run.validation.sentences == 60
    assert run.train.label_smoothing == 0.1
    assert run.train.average == 10
    assert run.train.save_every == run.validation.every_steps
    assert isinstance(run.train.schedule, InverseSqrtConfig)
    assert run.train.schedule.warmup <= run.train.steps / 4
    assert auto_run.reasons[0].startswith("600 pairs: preset mini (")
    assert codec.RUN_FILES.parse(to_dict(run)) == run


def test_every_choice_has_a_sentence_with_its_figure(pairs: Callable[[int], LinesConfig]) -> None:
    auto_run = configure(pairs(600))
    run = auto_run.run
    assert isinstance(run.train.schedule, InverseSqrtConfig)
    assert f"{run.train.steps:,} of {run.train.step_tokens:,} tokens" in find_reason(auto_run, "Steps:")
    assert f"{run.train.schedule.warmup:,} steps" in find_reason(auto_run, "Learning rate:")
    assert f"({run.data.held_out:.2%})" in find_reason(auto_run, "Validation data:")
    assert "1,000 tokens" in find_reason(auto_run, "Vocabulary:")
    assert "0.3" in find_reason(auto_run, "Dropout:")
    assert "0.1" in find_reason(auto_run, "Label smoothing:")
    assert "last 10 checkpoints" in find_reason(auto_run, "Checkpoint averaging:")
    validations = find_reason(auto_run, "Validation:")
    assert f"every {run.validation.every_steps:,} steps" in validations
    assert f"{run.validation.sentences} translations" in validations
    assert f"{run.validation.patience} validations without improvement" in validations
    assert all(line.endswith(".") for line in auto_run.reasons)


def test_a_book(book: DocumentsConfig) -> None:
    auto_run = configure(book)
    run = auto_run.run
    assert run.model.family == "decoder_only"
    assert run.model.task == "causal_lm"
    assert isinstance(run.tokenizer, CharacterLevelConfig)
    assert run.model.tokens.vocabulary == len(set("The quick brown fox.\n")) + 7
    assert isinstance(run.train.schedule, CosineConfig)
    assert run.train.schedule.lr == 1e-3
    assert run.data.held_out == 0.1
    assert run.data.max_length <= run.data.batch_tokens
    assert run.validation.metric == "loss"
    assert "the end of the text" in find_reason(auto_run, "Validation data:")


def test_labels_and_tags(tmp_path: Path) -> None:
    lines = "".join(f"sentence {n}\t{n % 3}\n" for n in range(300))
    (tmp_path / "a.tsv").write_text(lines, encoding="utf-8")
    run = configure(TableConfig(path=str(tmp_path / "a.tsv"), label=2)).run
    assert run.model.family == "encoder_only"
    assert run.model.task == "text_classification"
    assert run.model.head.kind == "classes"
    assert run.model.head.labels == ("0", "1", "2")
    assert run.validation.metric == "accuracy"
    assert isinstance(run.train.schedule, LinearConfig)
    (tmp_path / "a.conll").write_text("dogs NOUN\nrun VERB\n\n" * 100, encoding="utf-8")
    run = configure(ConllConfig(path=str(tmp_path / "a.conll"))).run
    assert run.model.task == "tagging"
    assert run.model.head.kind == "tags"
    assert run.model.head.labels == ("NOUN", "VERB")


@pytest.mark.parametrize(
    ("rows", "metric", "reason"),
    [
        (
            ["the\tO", "old\tO", "Ann\tB-PER", "Lee\tI-PER"],
            "f1",
            "entity F1, because 50 % of the words are outside entities",
        ),
        (["the\tD", "old\tA", "red\tA", "dog\tA"], "f1", "macro F1, because 75 % of the labels are 'A'"),
        (["the\tD", "old\tA", "red\tA", "dog\tN"], "accuracy", "; accuracy selects the best model."),
    ],
)
def test_f1_selects_the_model_where_accuracy_misleads(
    tmp_path: Path, rows: list[str], metric: str, reason: str
) -> None:
    (tmp_path / "tags.conll").write_text("\n\n".join("\n".join(rows) for _ in range(60)) + "\n")
    auto_run = configure(ConllConfig(path=str(tmp_path / "tags.conll"), word=1, tag=2))
    assert auto_run.run.validation.metric == metric
    assert reason in find_reason(auto_run, "Validation:")
    assert auto_run.run.validation.patience == 0


def test_labels_keep_their_dropout_if_most_of_the_epochs_fit(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"a sentence of some words {n}\t{n % 2}\n" for n in range(5000)))
    source = TableConfig(path=str(tmp_path / "a.tsv"), label=2)
    full_run = configure(source).run
    seconds = 60.0 / full_run.train.steps  # the whole run takes a minute
    dropouts = []
    for minutes in (0.8, 0.2):
        run = configure(source, minutes=minutes, timer=make_timer(seconds)).run
        assert run.model.family == "encoder_only"
        dropouts.append(run.model.encoder.dropout.sublayer)
    assert dropouts == [0.3, 0.1]


def test_one_label_teaches_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\t1\n" * 100, encoding="utf-8")
    with pytest.raises(RegardError, match="same label, '1'"):
        configure(TableConfig(path=str(tmp_path / "a.tsv"), label=2))


def test_a_preset_brings_its_learning_rate_and_the_corpus_the_rest(pairs: Callable[[int], LinesConfig]) -> None:
    auto_run = configure(pairs(600), preset="base")
    assert translation_model(auto_run).d_model == 512
    assert isinstance(auto_run.run.train.schedule, InverseSqrtConfig)
    assert auto_run.run.train.schedule.lr == 7e-4
    assert auto_run.run.train.step_tokens == 24576
    assert auto_run.run.tokenizer == ByteBpeConfig(vocabulary=1000)
    for stack in map(attention_stack, (translation_model(auto_run).encoder, translation_model(auto_run).decoder)):
        assert stack.dropout.sublayer == stack.dropout.embedding == 0.3  # the preset has 0.1
        assert (stack.norm_order, stack.final_norm) == ("pre", True)  # the preset has post-norm, as in 2017
    assert "as you requested; the default for this corpus is mini" in auto_run.reasons[0]


@pytest.mark.parametrize("is_fast", [False, True])
def test_bfloat16_is_chosen_where_it_is_faster(
    is_fast: bool, pairs: Callable[[int], LinesConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices: list[str] = []

    def fake_prefers_bfloat16(name: str) -> bool:
        devices.append(name)
        return is_fast

    monkeypatch.setattr("regard.training.device.prefers_bfloat16", fake_prefers_bfloat16)
    auto_run = configure(pairs(600))
    assert auto_run.run.train.precision == ("bfloat16" if is_fast else "float32")
    assert any("bfloat16" in line for line in auto_run.reasons) == is_fast
    for device in ({"device.name": "cpu"}, {"device": {"name": "cpu"}}):
        auto_run = configure(pairs(600), changes={"train.precision": "float32", **device})
        assert auto_run.run.train.precision == "float32"
        assert not any("bfloat16" in line for line in auto_run.reasons)
    assert devices == ["auto", "cpu", "cpu"]


def test_a_reader_fills_running_text(book: DocumentsConfig) -> None:
    run = configure(book, preset="encoder-small").run
    assert run.model.family == "encoder_only"
    assert run.model.task == "masked_lm"


@pytest.mark.parametrize(
    ("preset", "message"),
    [("gpt2", "continues a text, but this corpus contains pairs"), ("lm-small", "continues a text")],
)
def test_a_preset_of_another_kind_is_refused(pairs: Callable[[int], LinesConfig], preset: str, message: str) -> None:
    with pytest.raises(RegardError, match=message) as caught:
        configure(pairs(60), preset=preset)
    assert "mini" in str(caught.value.hint)
    assert "gpt2" not in str(caught.value.hint)


def test_changes_have_the_last_word(pairs: Callable[[int], LinesConfig]) -> None:
    run = configure(
        pairs(600), changes={"train.max_grad_norm": 0.5, "model.encoder.layers": 3, "tokenizer.kind": "character"}
    ).run
    assert run.train.max_grad_norm == 0.5
    assert run.model.family == "encoder_decoder"
    assert run.model.encoder.layers == 3
    assert run.tokenizer.kind == "character"
    with pytest.raises(ConfigError, match="Did you mean 'max_grad_norm'"):
        configure(pairs(600), changes={"train.max_grad_nom": 0.5})
    with pytest.raises(ConfigError, match=r"train\.steps: is 'many'"):
        configure(pairs(600), changes={"train.steps": "many"})


def test_own_validation_data(pairs: Callable[[int], LinesConfig], book: DocumentsConfig) -> None:
    corpus = pairs(20)
    auto_run = configure(corpus, validation=[corpus])
    assert auto_run.run.data.held_out == 0
    assert auto_run.run.data.validation == (corpus,)
    assert find_reason(auto_run, "Validation data:") == "Validation data: 20 pairs, as given."
    with pytest.raises(RegardError, match="validation corpus contains text, but the training corpus pairs"):
        configure(corpus, validation=[book])


def test_too_little_to_hold_any_out(pairs: Callable[[int], LinesConfig], tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="49 pairs are too few"):
        configure(pairs(49))
    assert configure(pairs(50)).run.data.held_out == 0.2
    (tmp_path / "short.txt").write_text("A short story.\n", encoding="utf-8")
    with pytest.raises(RegardError, match="14 characters, too few"):
        configure(DocumentsConfig(path=str(tmp_path / "short.txt")))


def test_steps_of_a_size_that_was_asked_for_are_not_made_smaller(pairs: Callable[[int], LinesConfig]) -> None:
    corpus = pairs(600)
    assert configure(corpus, minutes=1, timer=make_timer(5.0)).run.train.step_tokens < 2048 * 2
    auto_run = configure(corpus, minutes=4, timer=make_timer(5.0), changes={"train.step_tokens": 8192})
    assert (auto_run.run.train.step_tokens, auto_run.run.train.steps) == (8192, 10)  # 216 of 240 seconds, 20 each


def test_short_run_states_its_share_of_an_epoch_and_why_dropout_is_low(pairs: Callable[[int], LinesConfig]) -> None:
    auto_run = configure(pairs(3_000), minutes=1, timer=make_timer(5.0))
    assert re.search(r"about [\d.]+ % of one epoch", find_reason(auto_run, "Steps:"))
    assert find_reason(auto_run, "Dropout:") == (
        "Dropout: 0.1, because the run makes few epochs; the default for this corpus is 0.3."
    )
    text = configure(pairs(3_000)).reasons
    assert "Dropout: 0.3, because the run makes many epochs over little text." in text


def test_steps_are_made_smaller_only_where_they_would_be_few(pairs: Callable[[int], LinesConfig]) -> None:
    corpus = pairs(4_000)
    full_run = configure(corpus).run.train
    assert full_run.step_tokens == 4096
    seconds = 2 * 0.5 * full_run.steps  # seconds of the whole run
    most_steps = configure(corpus, minutes=0.7 * seconds / 60, timer=make_timer(0.5)).run.train
    assert most_steps.step_tokens == 4096
    assert most_steps.steps == pytest.approx(0.7 * full_run.steps, rel=0.03)
    fewer_steps = configure(corpus, minutes=0.3 * seconds / 60, timer=make_timer(0.5)).run.train
    assert fewer_steps.step_tokens == 2048
    assert fewer_steps.steps == pytest.approx(0.6 * full_run.steps, rel=0.05)


def test_validation_on_much_text_takes_time(tmp_path: Path) -> None:
    line = "The quick brown fox jumps over the lazy dog and runs.\n"
    for name, lines in (("book", 20_000), ("small", 20), ("large", 20_000)):
        (tmp_path / f"{name}.txt").write_text(line * lines, encoding="utf-8")
    book, small, large = (DocumentsConfig(path=str(tmp_path / f"{name}.txt")) for name in ("book", "small", "large"))
    runs = [configure(book, validation=[source], minutes=20, timer=make_timer(0.5)) for source in (small, large)]
    most_steps, fewer_steps = (auto_run.run.train for auto_run in runs)
    assert runs[0].run.validation.max_tokens is None
    assert runs[1].run.validation.max_tokens == pytest.approx(3 * 120 / 12 * 2048 * 2, rel=0.05)  # of 1,080,000
    assert "on a fixed random sample, with its sampling error" in find_reason(runs[1], "Validation:")
    assert most_steps.steps * most_steps.step_tokens / 2048 / 2 == pytest.approx(1200, rel=0.01)
    validation_seconds = (
        12 * len(line) * 20_000 / 3 / 2048 / 2
    )  # seconds: twelve validations, each a third of the cost of training on the same tokens
    assert validation_seconds > 0.5 * 1200
    assert (most_steps.steps - fewer_steps.steps) * most_steps.step_tokens / 2048 / 2 == pytest.approx(
        0.1 * 1200, rel=0.02
    )  # so they score a sample


def test_subwords_may_be_requested_where_characters_would_be_chosen(book: DocumentsConfig) -> None:
    default, auto_run = configure(book), configure(book, changes={"tokenizer.vocabulary": 600})
    assert isinstance(default.run.tokenizer, CharacterLevelConfig)
    assert auto_run.run.tokenizer == ByteBpeConfig(vocabulary=600)
    assert find_reason(auto_run, "Vocabulary") == "Vocabulary: set by you (tokenizer.vocabulary)."


def test_steps_that_are_too_small_for_a_batch_are_refused(pairs: Callable[[int], LinesConfig]) -> None:
    with pytest.raises(ConfigError, match="less than one batch"):
        configure(pairs(600), changes={"train.step_tokens": 300})
    changes = {"train.step_tokens": 300, "data.batch_tokens": 300, "data.max_length": 100}
    assert configure(pairs(600), changes=changes).run.gradient_accumulation == 1


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared corpora are not here")
def test_multi30k_gets_the_recipe_of_wu_et_al() -> None:
    files = [str(DATA / f"multi30k/train.{language}.gz") for language in ("en", "de")]
    auto_run = configure(LinesConfig(source=files[0], target=files[1]))
    run = auto_run.run
    norms = {f"{stack}.{name}": value for stack in ("encoder", "decoder") for name, value in NORMS.items()}
    assert run.model == codec.preset("tiny", norms)  # with its vocabulary of 10,000
    with_preset = configure(LinesConfig(source=files[0], target=files[1]), preset="tiny")
    assert with_preset.run.model == run.model  # an explicit preset sets the size only: it also trains with pre-norm
    assert run.train.optimizer == AdamConfig(betas=(0.9, 0.98))
    assert run.train.schedule == InverseSqrtConfig(lr=5e-3, warmup=2000)
    assert (run.train.label_smoothing, run.train.step_tokens, run.train.average) == (0.1, 8192, 10)
    assert 7000 <= run.train.steps <= 9500
    assert 900 <= run.data.held_out * 29_000 <= 1100
    assert auto_run.reasons[0].startswith("29,000 pairs: preset tiny (2.6 million parameters), because")


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared corpora are not here")
def test_shakespeare_gets_characters() -> None:
    run = configure(DocumentsConfig(path=str(DATA / "tinyshakespeare/input.txt.gz"))).run
    assert isinstance(run.tokenizer, CharacterLevelConfig)
    assert run.model.family == "decoder_only"
    assert (run.model.tokens.vocabulary, run.model.d_model, run.data.max_length) == (72, 128, 256)
    assert run.data.held_out == 0.1
    assert isinstance(run.train.schedule, CosineConfig)


def test_less_than_an_epoch_is_warned_of_with_a_smaller_model(pairs: Callable[[int], LinesConfig]) -> None:
    corpus = pairs(12_000)
    assert not any("Warning" in reason for reason in configure(corpus, minutes=20, timer=make_timer(0.5)).reasons)
    warning = configure(corpus, minutes=20, timer=make_timer(14.0), preset="tiny").reasons[-1]
    assert re.search(r"sees about \d+% of the corpus; --preset mini would make about [\d.]+ epochs", warning)
    hopeless = configure(corpus, minutes=1, timer=make_timer(30.0), preset="mini").reasons[-1]
    assert re.search(r"no smaller preset would see all of it; one epoch takes about [\d,]+ minutes", hopeless)


def test_teachers_change_dropout_and_epochs_of_a_timed_run_too(pairs: Callable[[int], LinesConfig]) -> None:
    corpus, changes = pairs(8_000), {"distillation.teachers": ["one", "two", "three"]}
    timed, free = (
        configure(corpus, minutes=minutes, timer=make_timer(0.01), changes=changes).run for minutes in (900, None)
    )
    assert timed.model == free.model
    assert timed.train.steps == free.train.steps


def test_costs_count_the_vocabulary_that_the_run_will_have(shards: Path, pairs: Callable[[int], LinesConfig]) -> None:
    run = configure(pairs(600)).run  # a vocabulary of 1,000
    prepared = {"data.prepared": str(shards), "data.held_out": 0.0}
    for changes, size in (({"tokenizer.vocabulary": 700}, 700), (prepared, 400)):
        model = expect_vocabularies(codec.RUN_FILES.change(run, changes)).model
        assert isinstance(model, EncoderDecoderConfig)
        assert model.target_tokens.vocabulary == size
