"""Compare the languages that a source declares with its texts (by `lingua`) or with its file names."""

from collections.abc import Iterator, Sequence

from regard.config.sources import AnySourceConfig, LinesConfig
from regard.data.doctor.corpus_findings import CorpusFinding
from regard.data.doctor.detectors.lingua import detect_swap
from regard.data.readers.detect import detect_language


def find_swapped_languages(source: AnySourceConfig, sides: Sequence[Sequence[str]]) -> Iterator[CorpusFinding]:
    """Yield a finding if the declared languages of a source of pairs are swapped.

    Args:
        source: The source with its declared languages.
        sides: A sample of its sources and targets.
    """
    languages = source.languages
    if len(languages) != 2 or len(sides) != 2 or _base(languages[0]) == _base(languages[1]):
        return
    first, second = languages
    hint = f"Swap the two files, or declare the languages as {second} {first}."
    is_swapped = detect_swap(languages, sides)
    if is_swapped:
        message = f"The languages are swapped: the source is {second} and the target {first}, not {first} and {second}."
        yield CorpusFinding(f"{message} ({', '.join(source.paths)})", hint, is_grave=True)
    elif is_swapped is None and isinstance(source, LinesConfig) and source.target is not None:
        suffixes = (detect_language(source.source), detect_language(source.target))
        names = f"{source.source} and {source.target}"
        if [_base(suffix or "") for suffix in suffixes] == [_base(second), _base(first)]:
            message = f"The languages are swapped: the files {names} were declared to be {first} and {second}."
            yield CorpusFinding(message, hint, is_grave=True)
        else:
            for suffix, language, path in zip(suffixes, languages, (source.source, source.target), strict=True):
                if suffix and _base(suffix) != _base(language):
                    message = f"The file name {path} names the language {suffix}, but {language} was declared."
                    yield CorpusFinding(message, "Check the files and their languages.", is_grave=False)


def _base(language: str) -> str:
    """The language without its region, in lower case: pt-BR and pt_PT are pt."""
    return language.replace("_", "-").split("-")[0].lower()
