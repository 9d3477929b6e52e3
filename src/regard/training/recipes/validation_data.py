"""Choose the validation data: the user's, the prepared corpus's, or a held-out part of the training corpus."""

from math import log10

from regard.base.errors import RegardError
from regard.base.formatting import format_count, pluralize
from regard.tasks.recipes.corpus import CorpusRequest
from regard.tasks.recipes.text_rows import describe_size
from regard.training.vocabularies import count_prepared_validation

MIN_EXAMPLES = 50  # fewer examples cannot be split into training and validation
MIN_CHARACTERS = 2000  # minimum for running text


def choose_held_out(corpus: CorpusRequest, reasons: list[str]) -> float:
    """Choose the held-out share of the corpus, 0 if there is other validation data, and append the reason.

    Raises:
        RegardError: If the validation data is of a different kind, or the corpus is too small to split.
    """
    stats, validation = corpus.stats, corpus.validation_stats
    if corpus.prepared is not None:  # the run reads no text: other validation files are not used
        count = count_prepared_validation(corpus.prepared)
        amount = f"the {pluralize(count, 'sample')} that" if count else "none:"
        verb = "holds for it" if count else "has no validation part"
        reasons.append(f"Validation data: {amount} {corpus.prepared} {verb}.")
        return 0.0
    if validation is not None:
        if validation.content != stats.content:
            message = f"The validation corpus contains {validation.content}, but the training corpus {stats.content}."
            raise RegardError(message, hint="Give validation files of the same kind.")
        reasons.append(f"Validation data: {describe_size(validation)}, as given.")
        return 0.0
    if corpus.has_documents:
        share = _choose_share_of_text(stats.source.characters)
        amount, method = f"{format_count(share * stats.source.characters)} characters", "the end of the text"
    else:
        share = _choose_share_of_examples(corpus)
        equal = stats.content if stats.content in ("images", "audio") else "sources"
        amount = f"{format_count(share * stats.examples)} {stats.unit}s"
        method = f"chosen at random; equal {equal} stay in the same split"
    reasons.append(f"Validation data: about {amount} ({share:.2%}) are held out, {method}.")
    return share


def count_validation(corpus: CorpusRequest, held_out: float) -> int:
    """Return the number of validation examples."""
    if corpus.prepared is not None:
        return count_prepared_validation(corpus.prepared)
    validation = corpus.validation_stats
    return round(held_out * corpus.stats.examples) if validation is None else validation.examples


def _choose_share_of_text(characters: int) -> float:
    if characters < MIN_CHARACTERS:
        message = f"The text has {characters:,} characters, too few to hold some out for validation."
        raise RegardError(message, hint=f"Give at least {MIN_CHARACTERS:,}, better a hundred times as many.")
    return _round_share(500_000, characters, 0.1)


def _choose_share_of_examples(corpus: CorpusRequest) -> float:
    """Choose enough examples to compare models, at most 20 %."""
    stats = corpus.stats
    if stats.examples < MIN_EXAMPLES:
        verb = "is" if stats.examples == 1 else "are"
        pairs = "--validation-source and --validation-target, or " if stats.content == "pairs" else ""
        raise RegardError(
            f"{pluralize(stats.examples, stats.unit)} {verb} too few to hold some out for validation.",
            hint=f"Give at least {MIN_EXAMPLES}, or validation data: {pairs}--validation.",
        )
    target = 1000 if stats.examples < 1_000_000 else 2000
    return _round_share(target, stats.examples, 0.1 if stats.examples >= 200 else 0.2)


def _round_share(target: int, total: int, max_share: float) -> float:
    share = min(max_share, target / total)
    return round(share, 2 - int(log10(share)))
