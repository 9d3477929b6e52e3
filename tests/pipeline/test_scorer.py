"""Log-probabilities of given texts: what the model itself says, whatever the batches and windows."""

import math
from pathlib import Path

import pytest
import torch

from regard.base.errors import DamagedError, RegardError
from regard.config import codec
from regard.measure.calibration import fit_temperature
from regard.models.build import build
from regard.pipeline.forced import windows_of
from regard.pipeline.scorer import Scorer
from regard.pipeline.temperature import FILE, read_temperature, write_temperature
from regard.pipeline.translator import Translator
from regard.pipeline.writer import Writer
from regard.store.model_folder import read_model, write_model
from regard.store.weights import get_weights
from tests.pipeline.made import (
    TEXTS,
    tokenizer,
    translating_model,
    translator_settings,
    vocabularies,
    writer_settings,
    writing_model,
)

SOURCES, TARGETS = [TEXTS[0], "two men", TEXTS[1], ""], [TEXTS[2], "", "Zwei", TEXTS[3]]
CLOSE = 1e-4


def translating(**options: float) -> Scorer:
    settings = translator_settings()
    return Scorer(translating_model(settings), vocabularies(), settings, **options)


def writing(**changes: object) -> Scorer:
    settings = writer_settings(**changes)
    return Scorer(writing_model(settings), vocabularies(), settings)


def by_hand(scorer: Scorer, source: list[int], text: str) -> torch.Tensor:
    """Log-probabilities (T, V), one text at a time."""
    specials = tokenizer().specials
    reads = torch.tensor([[specials.bos, *tokenizer().encode_ids([text])[0]]])
    with torch.no_grad():
        if source:
            logits = scorer.model(torch.tensor([source]), reads)
        else:
            logits = scorer.model(reads)  # type: ignore[call-arg]
    return (logits[0] / scorer.temperature).log_softmax(dim=-1)


@pytest.mark.parametrize("batch_tokens", [1, 40, 4096])
@pytest.mark.parametrize("temperature", [1.0, 1.7])
def test_pairs_have_the_model_s_own_probabilities(batch_tokens: int, temperature: float) -> None:
    scorer = translating(temperature=temperature)
    told: list[int] = []
    found = scorer.score(TARGETS, SOURCES, batch_tokens=batch_tokens, report=told.append)
    assert sum(told) == len(TARGETS)
    end = tokenizer().specials.eos
    for one, source, target in zip(found, SOURCES, TARGETS, strict=True):
        logs = by_hand(scorer, [*tokenizer().encode_ids([source])[0], end], target)
        assert one.text == target
        assert one.tokens == (*tokenizer().encode_ids([target])[0], end)
        own = logs.gather(1, torch.tensor(one.tokens)[:, None])[:, 0]
        assert one.logs == pytest.approx(own.tolist(), abs=CLOSE)
        assert one.best == pytest.approx(logs.max(dim=1).values.tolist(), abs=CLOSE)
        assert one.right == tuple((logs.argmax(dim=1) == torch.tensor(one.tokens)).tolist())
        assert one.total == pytest.approx(float(own.sum()), abs=1e-3)
        assert one.size == len(target.encode())


def test_few_logits_at_once_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = translating().score(TARGETS, SOURCES)
    monkeypatch.setattr("regard.pipeline.scorer.CELLS", 3 * tokenizer().size)
    for one, other in zip(translating().score(TARGETS, SOURCES), found, strict=True):
        assert one.logs == pytest.approx(other.logs, abs=CLOSE)


def test_texts_have_the_model_s_own_probabilities() -> None:
    scorer = writing()
    for one in scorer.score(TEXTS, batch_tokens=60):
        logs = by_hand(scorer, [], one.text)
        assert one.logs == pytest.approx(logs.gather(1, torch.tensor(one.tokens)[:, None])[:, 0].tolist(), abs=CLOSE)


def test_every_token_counts_once_where_it_sees_the_most() -> None:
    scorer = writing()
    text = " ".join(TEXTS)
    ids = tokenizer().encode_ids([text])[0]
    whole = [tokenizer().specials.bos, *ids, tokenizer().specials.eos]
    for size in (2, 5, 8, len(whole) - 1, len(whole)):
        rows = windows_of([text, "two"], vocabularies(), writer_settings(), size)
        counted = [label for row in rows if row.text == 0 for label in row.new]
        assert counted == whole[1:]
        assert all(len(row.reads) == len(row.labels) <= size for row in rows)
        assert all(row.seen == size - size // 2 for row in rows[1:] if row.text == 0)
    (found,) = scorer.score([text], window=8)
    logs = _rows_by_hand(scorer, whole[4:12])  # the second window reads tokens 4 to 11
    assert found.logs[8:12] == pytest.approx([float(logs[place, whole[place + 5]]) for place in range(4, 8)], abs=CLOSE)
    assert scorer.score([text], window=len(whole))[0].logs == pytest.approx(scorer.score([text])[0].logs, abs=CLOSE)


def _rows_by_hand(scorer: Scorer, reads: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return scorer.model(torch.tensor([reads]))[0].log_softmax(dim=-1)  # type: ignore[call-arg]


def test_the_curve_is_the_slope_and_bend_of_the_surprise() -> None:
    scorer = translating()
    settings = translator_settings()
    found = Translator(translating_model(settings), vocabularies(), settings).translate(SOURCES[:3], longest=9)
    targets = [one.text for one in found] + TARGETS[3:]  # some that it likes and some that it does not
    curve = scorer.curve(targets, SOURCES)

    def surprise(b: float) -> float:
        scorer.temperature = 1 / b
        return -sum(one.total for one in scorer.score(targets, SOURCES))

    for b in (0.5, 1.0, 1.4):
        slope, bend = curve(b)
        step = 0.02
        low, middle, high = surprise(b - step), surprise(b), surprise(b + step)
        assert slope == pytest.approx((high - low) / (2 * step), rel=2e-3)
        assert bend == pytest.approx((high - 2 * middle + low) / step**2, rel=5e-2)
    best = fit_temperature(curve)
    assert surprise(1 / best) < min(surprise(1.1 / best), surprise(0.9 / best))


def test_tags_of_languages_stand_before_the_source() -> None:
    settings = translator_settings(**{"source.vocabulary": tokenizer("en", "de").size}, languages=["en", "de"])
    scorer = Scorer(translating_model(settings), vocabularies("en", "de"), settings)
    (row,) = scorer.rows(["Zwei"], ["two"])
    specials = tokenizer("en", "de").specials
    assert row.source[0] == specials.language_id("de")
    assert scorer.rows(["Zwei"], ["two"], into="en")[0].source[0] == specials.language_id("en")
    assert scorer.rows(["Zwei"], ["two"], into=["en"])[0].source[0] == specials.language_id("en")
    with pytest.raises(RegardError, match="2 languages for 1 texts"):
        scorer.rows(["Zwei"], ["two"], into=["en", "de"])
    many = Scorer(scorer.model, scorer.vocabularies, settings.model_copy(update={"languages": ()}))
    with pytest.raises(RegardError, match="knows several languages"):
        many.rows(["Zwei"], ["two"])


def test_a_model_in_training_is_left_as_it_was() -> None:
    scorer = translating()
    quiet = scorer.score(TARGETS, SOURCES)
    scorer.model.train()
    assert scorer.score(TARGETS, SOURCES) == quiet
    assert all(module.training for module in scorer.model.modules())


def test_what_cannot_be_scored_is_refused() -> None:
    scorer = translating()
    for arguments, told in (
        ((TARGETS, None), "4 texts have no sources"),
        ((TARGETS, SOURCES[:3]), "4 texts have 3 sources"),
        (("text", SOURCES), "a list is expected"),
        (([], []), "nothing to score"),
    ):
        with pytest.raises(RegardError, match=told):
            scorer.score(*arguments)
    with pytest.raises(RegardError, match="reads no sources"):
        writing().score(TARGETS, SOURCES)
    few = writing(**{"decoder.position": {"kind": "learned", "length": 8}})
    assert len(few.rows(["two men are outside near many bushes"])) > 1
    for window in (1, 9):
        with pytest.raises(RegardError, match=f"window cannot have {window} tokens"):
            few.score(["two"], window=window)
    learned = {"kind": "learned", "length": 8}
    for side, told in (("encoder", "source of pair 1"), ("decoder", "text of pair 2")):
        settings = translator_settings(**{f"{side}.position": learned})
        limited = Scorer(translating_model(settings), vocabularies(), settings)
        with pytest.raises(RegardError, match=told):
            limited.score(["two", TEXTS[2]], [TEXTS[0], "two"])
    with pytest.raises(RegardError, match="no temperature of 0"):
        translating(temperature=0.0)
    restoring = translator_settings(task="restore")
    with pytest.raises(RegardError, match="task 'restore'"):
        Scorer(translating_model(restoring), vocabularies(), restoring)
    next(scorer.model.parameters()).data.fill_(math.nan)
    with pytest.raises(RegardError, match="not numbers"):
        scorer.score(TARGETS, SOURCES)


def test_a_folder_and_its_temperature(tmp_path: Path) -> None:
    settings = translator_settings()
    model = translating_model(settings)
    write_model(tmp_path / "m", settings, vocabularies(), get_weights(model), "card")
    plain = Scorer.load(tmp_path / "m")
    assert plain.temperature == 1.0
    assert plain.score(TARGETS, SOURCES) == Scorer.of(Translator(model, vocabularies(), settings)).score(
        TARGETS, SOURCES
    )
    write_temperature(tmp_path / "m", tmp_path / "new", 1.25, tokens=99)
    assert Scorer.load(tmp_path / "new").temperature == 1.25
    assert read_model(tmp_path / "new").settings == settings  # sealed again
    write_temperature(tmp_path / "new", tmp_path / "newer", 0.75, tokens=99)  # another one takes its place
    assert Scorer.load(tmp_path / "newer").temperature == 0.75
    with pytest.raises(RegardError, match="exists already"):
        write_temperature(tmp_path / "m", tmp_path / "new", 2.0, tokens=1)
    for wrong in ("{}", "[]", "warm", '{"temperature": "1"}', '{"temperature": 0.0}', '{"temperature": NaN}'):
        (tmp_path / FILE).write_text(wrong, encoding="utf-8")
        with pytest.raises(DamagedError, match="temperature"):
            read_temperature(tmp_path)
    (tmp_path / "new" / FILE).write_text('{"temperature": 9.0}', encoding="utf-8")
    with pytest.raises(DamagedError, match="not what its manifest says"):
        Scorer.load(tmp_path / "new")


def test_a_reader_has_no_texts_to_score(tmp_path: Path) -> None:
    small = {"width": 32, "encoder.layers": 1, "encoder.attention.heads": 4, "encoder.feedforward.hidden": 32}
    settings = codec.preset("bert", small | {"source.vocabulary": tokenizer().size})
    write_model(tmp_path / "m", settings, vocabularies(), get_weights(build(settings, seed=1)), "card")
    with pytest.raises(RegardError, match="'encoder_only' gives no text a probability"):
        Scorer.load(tmp_path / "m")
    written = Scorer.of(Writer(writing_model(writer_settings()), vocabularies(), writer_settings()), temperature=2.0)
    assert written.temperature == 2.0
