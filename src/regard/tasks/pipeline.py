"""Base class of pipelines, and a decorator for methods that take one or several inputs."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Protocol, Self, TypeVar, cast, overload

from regard.base.arguments import check_type
from regard.base.errors import RegardError
from regard.config.model import AnyModelConfig
from regard.tasks.evaluation.evaluable import Evaluable
from regard.tasks.requests import DEFAULT_OPTIONS, BatchOptions, ModelRequest, ReplayOptions
from regard.tasks.search import Search
from regard.text.tokenizer_pair import TokenizerPair

if TYPE_CHECKING:
    import torch

    from regard.lora import AdapterSet
    from regard.models.build import AnyModel
    from regard.store.model_folder import StoredModel
    from regard.tasks.inputs.adapter import InputAdapter
    from regard.tasks.replay import ModelRun
    from regard.tasks.translation.quality import Quality

Given = TypeVar("Given")
Item = TypeVar("Item", contravariant=True)
Result = TypeVar("Result")
Options = ParamSpec("Options")


class Pipeline(Evaluable):
    """Base class of pipelines: a model with its preprocessing and postprocessing."""

    model: "AnyModel"
    tokenizers: TokenizerPair  # except for image and audio classifiers
    settings: AnyModelConfig
    kind: ClassVar[str]
    """The kind of model, e.g. "translation model"."""
    command: ClassVar[str] = "predict"
    """The command that runs the model."""
    item_types: ClassVar[tuple[type, ...]] = (str,)
    """Types of a single input; any other type is a list of inputs."""
    temperature: float = 1.0
    """Softmax temperature, fitted for calibrated probabilities; set by the server."""
    reads_sentences: ClassVar[bool] = False
    """Whether the server splits texts into sentences, each with its own token limit."""
    loader: ClassVar[str] = "load"
    """The function of `regard` that loads this kind of pipeline."""
    engine_name: str = "torch"
    """The engine that runs the model, as in `load`."""
    view: ClassVar[str | None] = None
    """Task that the pipeline serves regardless of the model's task, or None."""

    @classmethod
    def from_stored(cls, stored: "StoredModel") -> Self:
        """Return the pipeline of a stored model."""
        return cls(stored.model, stored.tokenizers, stored.settings)  # type: ignore[call-arg]

    @cached_property
    def input(self) -> "InputAdapter[Any]":
        """The model's input adapter."""
        from regard.tasks.inputs.text import TextInput  # imports numpy, which translation does not need

        return TextInput(self.tokenizers)

    @property
    def in_torch(self) -> Self:
        """The PyTorch pipeline; other engines keep one for `look`."""
        return self

    @property
    def device(self) -> "torch.device":
        """Device of the model's parameters."""
        return next(self.model.parameters()).device

    @cached_property
    def adapters(self) -> "AdapterSet":
        """The model's LoRA adapters; select one with `with pipeline.adapters.active(name):`."""
        from regard.lora import AdapterSet  # needs PyTorch, which runs adapters

        return AdapterSet(self.model)

    @cached_property
    def quality(self) -> "Quality | None":
        """The quality estimate for translations in the model folder, if there is one."""
        return None

    @property
    def num_parameters(self) -> int:
        """Number of model parameters; shared parameters count once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def prepared(self) -> AbstractContextManager[None]:
        """Return a context in which several calls share their preparation; empty unless the model decodes."""
        return nullcontext()

    def replay(self, text: str, options: ReplayOptions = DEFAULT_OPTIONS) -> "ModelRun":  # noqa: ARG002
        """Run the model on a text, or on an image or audio file, in a recordable way.

        Raises:
            RegardError: The model does not support `look`, or cannot read the input.
        """
        raise RegardError(f"`look` does not support a {self.kind}.", location=text, hint="See docs/guides/look.md.")

    @property
    def target_languages(self) -> tuple[str, ...]:
        """The target languages of a multilingual translation model; empty if there is no choice."""
        return ()

    @property
    def has_packed_weights(self) -> bool:
        """Whether running searches and streams read only a packed copy of the weights."""
        return False

    @property
    def vocabulary_sizes(self) -> dict[str, int]:
        """Vocabulary size of each side with a tokenizer."""
        return {"source": self.tokenizers.source.size, "target": self.tokenizers.target.size}

    def warm_up(self) -> None:
        """Run the model once for each kind of server request, so that the first request is not slow."""

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        """Return a request with its size; raises `RegardError` for an unreadable input."""
        return replace(request, size=self.input.count_vectors(request.item))

    def count_rows(self, request: ModelRequest, options: BatchOptions) -> int:  # noqa: ARG002
        """Return the number of batch rows that a request needs."""
        return options.search.rows_per_text

    def run(self, requests: Sequence[ModelRequest], options: BatchOptions) -> Sequence[Any]:  # noqa: ARG002
        """Process a batch of requests; called by the server.

        Raises:
            RegardError: The pipeline does not support requests, or not these.
        """
        raise RegardError(f"A {self.kind} cannot be served.", hint=f"Use `regard {self.command}`.")

    def __repr__(self) -> str:
        parts = [
            self.settings.family,
            f"{self.num_parameters:,} parameters",
            self._describe_input(),
            *(["-".join(self.settings.languages)] if self.settings.languages else []),
            *self._describe(),
            f"device {self.device}",
        ]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _describe_input(self) -> str:
        """Describe the model's input."""
        return self.input.summary

    def _describe(self) -> list[str]:
        """Return further parts of the repr."""
        return []


class OneOrMany(Protocol[Item, Options, Result]):
    """A bound method that returns one result for one input, and a list of results for a list of inputs."""

    @overload
    def __call__(self, items: Item, /, *args: Options.args, **kwargs: Options.kwargs) -> Result: ...
    @overload
    def __call__(self, items: Sequence[Item], /, *args: Options.args, **kwargs: Options.kwargs) -> list[Result]: ...


class OneOrManyMethod(Protocol[Item, Options, Result]):
    """Descriptor of such a method."""

    def __get__(self, pipeline: Any, owner: type | None = None, /) -> OneOrMany[Item, Options, Result]:
        """Bind the method to a pipeline."""


def one_or_many(
    method: Callable[Concatenate[Any, Sequence[Given], Options], list[Result]],
) -> OneOrManyMethod[Given, Options, Result]:
    """Let a pipeline method that takes a list of inputs also take a single input and return a single result."""
    _, name, *others = signature(method).parameters

    @wraps(method)
    def call(pipeline: Pipeline, *args: Any, **options: Any) -> Any:
        items, *rest = args or (options.pop(name),)
        is_single = isinstance(items, pipeline.item_types)
        if not is_single:
            check_type(name, items, Iterable, "one input or a list of inputs")
            items = list(items)
            for item in items if pipeline.item_types == (str,) else ():
                check_type(name, item, str, "one text or a list of texts")
        search = dict(zip(others, rest, strict=False)).get("search", options.get("search"))
        check_type("search", search, Search | None, "a search such as regard.Beam(beam_size=1)")
        results = method(pipeline, [items] if is_single else items, *rest, **options)
        return results[0] if is_single else results

    return cast("OneOrManyMethod[Given, Options, Result]", call)
