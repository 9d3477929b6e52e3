"""Capabilities of pipelines: the server checks for a capability, not for a pipeline class.

A capability is a protocol, so a pipeline from another package has it if it implements the methods.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from regard.config.model import DecoderOnlyConfig
from regard.tasks.pipeline import Pipeline
from regard.tasks.search import Beam
from regard.tasks.text_stream import TextStream
from regard.text.tokenizer_pair import TokenizerPair

Able = TypeVar("Able", covariant=True)


@runtime_checkable
class Translates(Protocol):
    """Translates texts."""

    def translate(self, texts: Any, /, *args: Any, **options: Any) -> Any:
        """Translate one text or several."""

    def stream(self, text: str, /, **options: Any) -> TextStream:
        """Translate a text and yield the translation as it is generated."""


@runtime_checkable
class Generates(Protocol):
    """Continues texts."""

    tokenizers: TokenizerPair
    settings: DecoderOnlyConfig

    def generate(self, prompts: Any, /, *args: Any, **options: Any) -> Any:
        """Continue one prompt or several."""

    def stream(self, prompt: str, max_new_tokens: int, /, **options: Any) -> TextStream:
        """Continue a prompt and yield the text as it is generated."""


@runtime_checkable
class Classifies(Protocol):
    """Classifies texts, images or audio clips."""

    labels: Sequence[str]

    def classify(self, items: Any, /) -> Any:
        """Classify one input or several."""


@runtime_checkable
class TagsWords(Protocol):
    """Tags the words of texts."""

    labels: Sequence[str]

    def tag(self, texts: Any, /) -> Any:
        """Tag one text or several."""


@runtime_checkable
class Embeds(Protocol):
    """Embeds texts."""

    @property
    def embedder(self) -> Pipeline:
        """The pipeline that embeds texts: this one, or another pipeline of the same model."""


@runtime_checkable
class Fills(Protocol):
    """Fills the gaps of texts."""

    def fill(self, texts: Any, /, *args: Any) -> Any:
        """Fill the gaps of one text or several."""


@runtime_checkable
class Transcribes(Protocol):
    """Transcribes audio clips."""

    def transcribe(self, audio: Any, /, *args: Any, **options: Any) -> Any:
        """Transcribe one audio clip or several."""

    def make_search(self, beam_size: int | None = None, *, n_best: int = 1) -> Beam:
        """Return the search with a beam of this size."""


@runtime_checkable
class Captions(Protocol):
    """Captions images."""

    def caption(self, images: Any, /, *args: Any, **options: Any) -> Any:
        """Caption one image or several."""

    def make_search(self, beam_size: int | None = None, *, n_best: int = 1) -> Beam:
        """Return the search with a beam of this size."""


@runtime_checkable
class GeneratesImages(Protocol):
    """Generates images."""

    def complete(self, images: Any, /, *args: Any, **options: Any) -> Any:
        """Keep the upper rows of images and sample the rest."""


@dataclass(frozen=True)
class Capability(Generic[Able]):
    """A capability that a server route needs."""

    name: str
    """Name in `/v1/models`; the server's web page selects its view by it."""
    protocols: tuple[type, ...]
    """Protocols; a pipeline needs one of them."""
    model: str
    """Description of such a model in messages."""
    hint: str | None = None
    """Hint with the route for such a model; None if the server has none."""
    reads_files: bool | None = None
    """Whether the input is a file; None if both are possible."""


TRANSLATES: Capability[Translates] = Capability("translate", (Translates,), "translation model", "Use /translate.")
GENERATES: Capability[Generates] = Capability("generate", (Generates,), "language model", "Use /v1/completions.")
CLASSIFIES_TEXTS: Capability[Pipeline] = Capability(
    "classify",
    (Classifies, TagsWords),
    "classification or tagging model",
    "Use /classify with {inputs}.",
    reads_files=False,
)
CLASSIFIES_FILES: Capability[Pipeline] = Capability(
    "classify",
    (Classifies,),
    "classification model for images or classification model for audio clips",
    "Use /classify with {inputs}.",
    reads_files=True,
)
TRANSCRIBES: Capability[Transcribes] = Capability(
    "transcribe", (Transcribes,), "transcription model", "Use /v1/audio/transcriptions."
)
CAPTIONS: Capability[Captions] = Capability("caption", (Captions,), "captioning model", "Use /caption.")
EMBEDS: Capability[Embeds] = Capability("embed", (Embeds,), "encoder", "Use /v1/embeddings.")
FILLS: Capability[Fills] = Capability("fill gaps", (Fills,), "masked language model")
GENERATES_IMAGES: Capability[GeneratesImages] = Capability(
    "generate images", (GeneratesImages,), "model that generates images"
)
CAPABILITIES: tuple[Capability[Any], ...] = (
    TRANSLATES,
    GENERATES,
    CLASSIFIES_TEXTS,
    CLASSIFIES_FILES,
    TRANSCRIBES,
    CAPTIONS,
    FILLS,
    GENERATES_IMAGES,
    EMBEDS,
)


def find_capabilities(pipeline: Pipeline) -> tuple[Capability[Any], ...]:
    """Return the capabilities of a pipeline, its own task first."""
    return tuple(
        capability
        for capability in CAPABILITIES
        if isinstance(pipeline, capability.protocols) and capability.reads_files in (None, pipeline.input.reads_files)
    )
