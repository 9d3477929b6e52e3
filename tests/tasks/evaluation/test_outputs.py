"""Outputs against references."""

from dataclasses import asdict

from regard.measure import bleu, ter, wer
from regard.tasks.evaluation.options import EvaluationData, EvaluationOptions
from regard.tasks.evaluation.outputs import OUTPUTS, TRANSLATIONS

HYPOTHESES, REFERENCES = ["Zwei Hunde spielen .", "Eine Katze ."], ["Zwei Hunde schlafen .", "Eine Katze ."]
PAIRS = EvaluationData("pairs", references=[(text,) for text in REFERENCES])
OPTIONS = EvaluationOptions(samples=20)


def test_translations_have_scores_and_breakdowns() -> None:
    sources = ["Two dogs play .", "A cat ."]
    data = EvaluationData("pairs", sources, references=PAIRS.references, train=["Zwei Katzen ."])
    evaluation = TRANSLATIONS.score(HYPOTHESES, data, OPTIONS)
    assert evaluation["texts"] == 2
    assert evaluation["scores"].keys() == {"bleu", "chrf", "ter", "exact_match", "wer"}
    for measure in (bleu, ter, wer):
        assert evaluation["scores"][measure.__name__] == asdict(measure(HYPOTHESES, REFERENCES))
    assert [bucket["texts"] for bucket in evaluation["by_length"]] == [2]
    assert [bucket["low"] for bucket in evaluation["by_frequency"]] == [0, 1]
    bare = TRANSLATIONS.score(HYPOTHESES, PAIRS, OPTIONS)
    assert (bare["by_length"], bare["by_frequency"]) == ([], [])


def test_translations_are_compared_by_three_metrics() -> None:
    comparisons = TRANSLATIONS.compare(HYPOTHESES, REFERENCES, PAIRS, OPTIONS)
    assert [comparison.metric for comparison in comparisons] == ["bleu", "chrf", "ter"]


def test_captions_and_transcripts_have_their_own_metrics() -> None:
    captions, speech = (EvaluationData(content, references=[("seven",)]) for content in ("captions", "speech"))
    captioned = OUTPUTS["captions"].score(["eleven"], captions, OPTIONS)
    assert (captioned["images"], captioned["scores"].keys()) == (1, {"bleu", "chrf", "exact_match"})
    transcribed = OUTPUTS["speech"].score(["eleven"], speech, OPTIONS)
    assert (transcribed["audio"], transcribed["scores"].keys()) == (1, {"cer", "wer", "exact_match"})
    assert transcribed["scores"]["cer"]["value"] == 40.0
