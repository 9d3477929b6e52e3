"""Long sentences: the translators of `translation` on Europarl, whose sentences are twice as long."""

from examples.before.options import Options
from examples.before.report import Report
from examples.before.translation import ATTENTION, FIXED, TRANSFORMER, Corpus, compare

EUROPARL = Corpus(
    "long_sentences",
    "Long sentences: Europarl by the length of the source",
    "100,000 pairs of Europarl en-de (cased, as they are), steps of 2,048 tokens; BLEU of 2,000 test pairs",
    ("europarl_deen/train", "europarl_deen/valid", "europarl_deen/test"),
    steps=1200,
    buckets=((1, 14), (15, 24), (25, 34), (35, 999)),
    pairs=100_000,
)


def run(options: Options) -> Report:
    """Train with and without attention, and a Transformer, for equal steps."""
    return compare(options, EUROPARL, (ATTENTION, FIXED, TRANSFORMER))
