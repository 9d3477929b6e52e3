"""A task of another package: restore the punctuation and the capitals of a text.

Running text is enough: the task makes the pairs. An encoder-decoder learns them as it learns to translate.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from regard.config.task_spec import find_spec
from regard.data.example import Example
from regard.tasks.recipes.translation import TRANSLATION
from regard.tasks.translation.task import TranslationTask
from regard.text.sentences import split_sentences

SPEC = replace(
    find_spec("translation"),
    name="punctuation",
    implementation="regard_punctuation:PunctuationTask",
    recipe="regard_punctuation:RECIPE",
    test_options="--data TEST",
)
RECIPE = replace(TRANSLATION, learns_from=("text",))


def strip_punctuation(text: str) -> str:
    """Return the words of a text in lower case.

    >>> strip_punctuation("Well, is it?")
    'well is it'
    """
    return " ".join(re.findall(r"\w+", text.lower()))


class PunctuationTask(TranslationTask):
    """Translate words without punctuation into sentences."""

    def examples(self, example: Example) -> Iterable[Example]:
        """Make a pair of every sentence."""
        if example.target is not None:  # test data may be pairs already
            return (example,)
        sentences = (sentence for sentence, _ in split_sentences(example.source))
        pairs = (replace(example, source=strip_punctuation(text), target=text) for text in sentences)
        return (pair for pair in pairs if pair.source)
