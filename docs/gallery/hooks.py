"""The sentence that introduces each page of the gallery, with numbers computed from the page's document."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from regard.base.blobs import decode_blob


class Break(NamedTuple):
    """What the head with the largest effect does to the output when it is switched off."""

    output: str
    before: str
    after: str


def find_break(document: Any) -> Break:
    """Return what the head with the largest effect changes."""
    ablation = document["ablation"]
    delta, name = min(
        (value, f"{group}.{layer}.{head}")
        for group, table in ablation["delta"].items()
        for layer, row in enumerate(table)
        for head, value in enumerate(row)
        if value is not None
    )
    baseline = ablation["baseline"]
    output = ablation["texts"].get(name) or ablation["predictions"][name][0]["labels"][0]
    return Break(output, percent(math.exp(baseline)), percent(math.exp(baseline + delta)))


def percent(probability: float) -> str:
    """Return a probability in percent with two digits.

    >>> [percent(0.103), percent(0.0031), percent(0.9999)]
    ['10 %', '0.31 %', '100 %']
    """
    return f"{float(f'{100 * probability:.2g}'):g} %"


def introduce_translator(document: Any) -> str:
    """State what one head does to a translation."""
    broken = find_break(document)
    return (
        f'"{document["text"]}" becomes "{document["output"]}" Without one head the model writes "{broken.output}": '
        f"the probability of the right translation falls from {broken.before} to {broken.after}."
    )


def introduce_shapes(document: Any) -> str:
    """State what one head does to a caption."""
    broken = find_break(document)
    return (
        f'The model sees "{document["output"]}" ({broken.before}). Without one head it sees "{broken.output}", and the '
        f"first caption has {broken.after}."
    )


def introduce_clip(document: Any) -> str:
    """State what one head does to a transcript."""
    broken = find_break(document)
    return f'Press Play: the model hears "{document["output"]}". Without one of its heads it hears "{broken.output}".'


def introduce_boot(document: Any) -> str:
    """State the label, its probability and the label without one head."""
    (prediction,), broken = document["predictions"], find_break(document)
    return (
        f"{prediction['labels'][0]}, {percent(prediction['probabilities'][0])} sure. Without one of its heads the "
        f"model sees a {broken.output.lower()}, and the probability of the first label is {broken.after}."
    )


def introduce_pronoun(document: Any) -> str:
    """State what "it" reads in both sentences, in the head with the largest effect."""
    read = [read_pronoun(document), read_pronoun(document["against"])]
    words = [document["text"].split()[-1], document["against"]["text"].split()[-1]]
    return (
        f'"It was too {words[0]}": the head that matters most reads "{read[0][0]}" ({percent(read[0][1])}). '
        f'"It was too {words[1]}": "{read[1][0]}" ({percent(read[1][1])}).'
    )


def read_pronoun(document: Any) -> tuple[str, float]:
    """Return the word that "it" reads most in the head with the largest effect, and the weight."""
    (group,) = document["attention"]
    layer, head = group["default_head"]
    tokens = [token["text"].strip() for token in document["sequences"]["source"]]
    weights = decode_blob(document["blobs"][group["maps"][f"{layer}.{head}"]])[tokens.index("it")]
    return tokens[int(weights.argmax())], float(weights.max())


def introduce_play(document: Any) -> str:
    """State how improbable the boldest of the sampled characters was."""
    sampling = document["sampling"]
    drawn = min(sampling["steps"], key=lambda step: step["logprob"] or 0.0)
    token = document["sequences"]["target"][drawn["position"]]["text"]
    probability = math.exp(drawn["logprob"] or 0.0)
    return (
        f'After "{document["text"]}" every character is drawn. The boldest draw: "{token}", at {percent(probability)}.'
    )


HOOKS: dict[str, Callable[[Any], str]] = {
    "translator": introduce_translator,
    "pronoun": introduce_pronoun,
    "boot": introduce_boot,
    "six": introduce_clip,
    "shapes": introduce_shapes,
    "shakespeare": introduce_play,
}
TITLES = {
    "translator": "One head breaks a translation",
    "pronoun": 'What does "it" refer to?',
    "boot": "A Vision Transformer looks at a boot",
    "six": "A spoken digit, with sound",
    "shapes": "Left and right change places",
    "shakespeare": "A play, drawn character by character",
}
