"""Vocabulary sizes before the data is prepared, for estimates of parameters, memory and time."""

from pathlib import Path
from tempfile import TemporaryDirectory

from regard.config.codec import RUN_FILES
from regard.config.inputs import TokensConfig
from regard.config.model import AnyModelConfig
from regard.config.run import RunConfig
from regard.data.readers.text_files import is_url
from regard.data.shards.prepare import open_corpus
from regard.data.shards.remote import RemoteShards, download_tokenizers, has_corpus
from regard.text.tokenizer_pair import TokenizerPair


def read_prepared_tokenizers(location: str) -> TokenizerPair:
    """Read the tokenizers of a prepared corpus, a folder or a URL."""
    if not is_url(location):
        return TokenizerPair.load(Path(location))
    with TemporaryDirectory() as folder:
        return download_tokenizers(location.rstrip("/"), Path(folder) / "tokenizer")


def count_prepared_validation(location: str) -> int:
    """Return the number of validation samples in a prepared corpus (a folder or URL), or 0."""
    part = f"{location.rstrip('/')}/validation"
    if not is_url(location):
        return len(open_corpus(Path(part))) if Path(part).is_dir() else 0
    if not has_corpus(part):
        return 0
    with TemporaryDirectory() as cache:
        return len(RemoteShards(part, Path(cache)))


def list_vocabulary_sizes(model: AnyModelConfig, source: int, target: int) -> dict[str, int]:
    """Return the settings of a model's vocabularies, {"source.vocabulary": ...}, for tokenizers of these sizes."""
    sides = (("source", source), ("target", target), ("tokens", source))
    return {f"{name}.vocabulary": size for name, size in sides if isinstance(getattr(model, name, None), TokensConfig)}


def expect_vocabularies(run: RunConfig) -> RunConfig:
    """Return the run with the vocabulary sizes of its prepared corpus, or else those that its tokenizer asks for.

    Tokenizers without a size (characters, bytes, colors, those of a parent) leave the model as it is.
    """
    if run.data.prepared is not None and run.has_tokenizer:
        tokenizers = read_prepared_tokenizers(run.data.prepared)
        source, target = tokenizers.source.size, tokenizers.target.size
    elif (size := getattr(run.tokenizer, "vocabulary", None)) is not None:
        source = target = size
    else:
        return run
    sizes = list_vocabulary_sizes(run.model, source, target)
    return RUN_FILES.change(run, {f"model.{name}": size for name, size in sizes.items()})
