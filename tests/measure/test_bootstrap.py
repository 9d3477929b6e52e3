"""The paired bootstrap: sacreBLEU's numbers, and an interval of the difference."""

import random
from collections.abc import Sequence

import pytest
from sacrebleu.significance import PairedTest

from regard.base.errors import RegardError
from regard.measure.bootstrap import METRICS, paired_bootstrap

WORDS = tuple("abcdefghijklmnop")


def make_corpus(seed: int, error_rates: Sequence[float], count: int = 60) -> tuple[list[str], ...]:
    """References, and systems that get a share of the words wrong."""
    rng = random.Random(seed)
    references = [[rng.choice(WORDS) for _ in range(rng.randrange(5, 12))] for _ in range(count)]
    systems = [
        [" ".join(rng.choice(WORDS) if rng.random() < error_rate else word for word in words) for words in references]
        for error_rate in error_rates
    ]
    return [" ".join(words) for words in references], *systems


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_the_p_value_is_sacrebleu_s(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    references, one, other = make_corpus(1, (0.3, 0.25))
    found = paired_bootstrap(one, other, references, metric, samples=300)
    test = PairedTest([("one", one), ("other", other)], {"m": METRICS[metric]()}, [references], "bs", n_samples=300)
    _, results = test()
    first, second = next(value for name, value in results.items() if name != "System")
    assert found.baseline == pytest.approx(first.score)  # type: ignore[union-attr]
    assert found.candidate == pytest.approx(second.score)  # type: ignore[union-attr]
    assert found.p == pytest.approx(second.p_value)  # type: ignore[union-attr]
    assert 0 < found.p < 1
    assert found.difference == found.candidate - found.baseline
    assert found.low < found.difference < found.high


def test_a_large_difference_is_clear_and_none_is_not() -> None:
    references, good, bad, same = make_corpus(2, (0.1, 0.6, 0.1))
    worse = paired_bootstrap(good, bad, references, samples=200)
    assert worse.is_significant
    assert worse.high < 0 > worse.difference
    alike = paired_bootstrap(good, same, references, samples=200)
    assert not alike.is_significant
    assert alike.low < 0 < alike.high
    itself = paired_bootstrap(good, good, references, samples=50)
    assert (itself.difference, itself.low, itself.high, itself.p) == (0.0, 0.0, 0.0, 1.0)


def test_two_texts_prove_nothing() -> None:
    references = ["Zwei Hunde spielen im Schnee.", "Ein Mann schläft."]
    ours = ["Zwei Hunde spielen draußen im Schnee.", "Ein Mann schläft."]
    found = paired_bootstrap(ours, references, references, "chrf")
    assert found.p < 0.05
    assert found.low == 0 < found.high
    assert not found.is_significant


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    references, one, other = make_corpus(3, (0.3, 0.25))
    found = paired_bootstrap(one, other, references, samples=50, seed=4)
    monkeypatch.setenv("SACREBLEU_SEED", "99")
    assert paired_bootstrap(one, other, references, samples=50, seed=4) == found
    assert paired_bootstrap(one, other, references, samples=50, seed=5).low != found.low
    assert found.signature.endswith("|bs:50|seed:4")


def test_what_cannot_be_compared_is_refused() -> None:
    references, one, other = make_corpus(4, (0.3, 0.25), count=5)
    with pytest.raises(RegardError, match=r"texts \(4\) .* references \(5\)"):
        paired_bootstrap(one, other[:4], references)
    with pytest.raises(RegardError, match=r"texts \(4\) .* references \(5\)"):
        paired_bootstrap(one[:4], other, references)
    with pytest.raises(RegardError, match="by 'rouge'"):
        paired_bootstrap(one, other, references, "rouge")
    with pytest.raises(RegardError, match="0 samples"):
        paired_bootstrap(one, other, references, samples=0)
