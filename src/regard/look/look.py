"""`Look`: the recorded text, its document, and the requests of a live page.

    document                                     the document
    map?group=decoder.cross&layer=1&head=3       blob: the weights of one head
    row?group=...&layer=1&head=3&row=0           {"weights": [...]}, exact
    logits?position=7                            blob: log-probabilities of a sampling step
    continue?candidate=17                        {"continuation": ..., "vocabulary": ...}
    hypothesis?candidate=17                      {"hypothesis": ..., "blobs": ...}
    ablate?head=decoder.cross.1.3&head=...       {"text": ..., "delta": ..., "token_deltas": ..., "predictions": ...};
                                                 all these heads are off

`side=against` in a query means the second look of a comparison. `Look.answer` handles these requests,
`regard.look.session` those that look into another text; `regard.look.local` serves them.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any, cast

from regard.base.blobs import Blob, encode_f32, encode_sqrt
from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.base.formatting import pluralize
from regard.decode.protocol import Hypothesis
from regard.decode.trace import Trace
from regard.look.ablation import Ablator, Head
from regard.look.against import make_against
from regard.look.alignment import make_hypothesis
from regard.look.attention import GROUPS, attention_name, read_map
from regard.look.document import Continuation, Document, TokenInfo
from regard.look.local import Query, serve
from regard.look.page import make_page
from regard.look.record import LookRecord
from regard.look.search import continue_candidate
from regard.look.session import LookSession
from regard.look.tokens import describe_vocabulary
from regard.tasks.replay import ModelRun

NOTEBOOK_HEIGHT = 640  # pixels


@dataclass(frozen=True)
class Look:
    """A look into a model while it processed one text.

    look = regard.look_into("my-model", "Two dogs play.")
    look.save("dogs.html")      # one file, no network needed
    look.show()                 # a page in the browser, until Ctrl-C
    look.against("Two cats play.").save("cats.html")    # a comparison of two texts
    """

    document: Document
    run: ModelRun
    record: LookRecord
    look_again: "Callable[[str], Look] | None" = None
    """Look into another text with the same model and settings; None for images and audio clips."""
    other: "Look | None" = None
    """The look that this one is compared with."""

    def __repr__(self) -> str:
        model = self.document["model"]
        heads = sum(group["layers"] * group["heads"] for group in self.document["attention"])
        return f"Look({model['task']}, {pluralize(heads, 'head')}, {self.document['output'][:60]!r})"

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page as one self-contained file, which opens in any browser without a server or a network.

        Returns:
            The path.
        """
        path = Path(path)
        if path.is_dir() or not path.absolute().parent.is_dir():
            hint = "Name a file in a folder that exists, e.g. look.html."
            raise RegardError("This file cannot be written.", location=str(path), hint=hint)
        write_atomic(path, self.html().encode())
        return path

    def html(self, *, live: bool = False) -> str:
        """Return the page; a live page requests missing data from `regard.look.local`."""
        return make_page({**self.document, "live": live})

    def against(self, other: "Look | str") -> "Look":
        """Compare this look with another one; its page gets the view Compare.

        Args:
            other: A look, e.g. of another model, or another text for the same model.
        """
        if isinstance(other, str):
            if self.look_again is None:
                hint = "Pass a look: `look.against(regard.look_into(model, other_file))`."
                raise RegardError("This model reads files, not text.", hint=hint)
            other = self.look_again(other)
        document: Document = {**self.document, "against": make_against(other.document)}
        return replace(self, document=document, other=other)

    def show(self, port: int = 0) -> None:
        """Serve the page on this machine only and open it in a browser; stop with Ctrl-C.

        If no browser can be opened, a warning shows the URL.
        """
        with serve(LookSession(self), port) as server:
            if not server.open_browser():
                warnings.warn(f"No browser could be opened. The page is at {server.url}", stacklevel=2)
            server.wait()

    def _repr_html_(self) -> str:
        """Show the page in a notebook, isolated in a frame."""
        source = escape(self.html(), quote=True)
        return (
            f'<iframe srcdoc="{source}" sandbox="allow-scripts allow-downloads" '
            f'width="100%" height="{NOTEBOOK_HEIGHT}" style="border: 0" title="Look into a model"></iframe>'
        )

    def answer(self, name: str, query: Query) -> Mapping[str, Any] | None:
        """Return the response to a request of a live page; None if the request is unknown."""
        action = ACTIONS.get(name)
        look = self.other if query.get("side") == ["against"] else self
        return None if action is None or look is None else action(look, query)

    def map(self, group: str, layer: int, head: int) -> Blob:
        """Return the weights of one head as a blob."""
        self._check_head(group, layer, head)
        return encode_sqrt(read_map(self.record, group, layer, head))

    def row(self, group: str, layer: int, head: int, row: int) -> list[float]:
        """Return the exact weights of one row."""
        self._check_head(group, layer, head)
        name = attention_name(group, layer)
        rows = self.record.attention[name].query.size(2)
        if not 0 <= row < rows:
            raise RegardError(f"There is no row {row}.", hint=f"Use 0 to {rows - 1}.")
        return self.record.weights(name, [head], [row])[0, 0, 0].tolist()

    def logits(self, position: int) -> Blob:
        """Return the log-probabilities of a sampling step, by its place in the target."""
        generated = self.run.generated
        if generated is None or generated.sampling is None:
            raise RegardError("This text was not sampled.", hint="Look into a language model with Sampling.")
        steps, index = generated.sampling.rows[0], position - len(generated.generation.prompt)
        if not 0 <= index < len(steps):
            raise RegardError(f"No token was sampled at position {position}.", hint="Use a generated position.")
        return encode_f32(steps[index].logprobs)

    def continue_from(self, candidate: int) -> tuple[Continuation, dict[str, TokenInfo]]:
        """Force a candidate of the search, and return its continuation and the tokens in it."""
        generated = self.run.generated
        if generated is None or generated.trace is None:
            raise RegardError("This run has no search.", hint="Look into a model that generates, with Beam.")
        _check_candidate(generated.trace, candidate)
        continuation = continue_candidate(generated.generation, generated.trace, candidate)
        return continuation, describe_vocabulary(generated.generation.tokenizer, continuation["tokens"])

    def hypothesis(self, candidate: int) -> dict[str, Any]:
        """Return a finished candidate of the search with its cross-attention, and the blob that it names."""
        generated = self.run.generated
        if generated is None or generated.trace is None or not self.run.input.source:
            raise RegardError("There is no cross-attention.", hint="Look into a translation model.")
        _check_candidate(generated.trace, candidate)
        path = generated.trace.lineage(candidate)[1:]
        tokens, logprobs = [entry.token for entry in path], [entry.logprob for entry in path]
        blobs: dict[str, Blob] = {}
        eos = generated.generation.tokenizer.specials.eos
        hypothesis = Hypothesis(tuple(tokens), tuple(logprobs), path[-1].score, ended=tokens[-1] == eos)
        name = f"hypothesis.c{candidate}"
        return {
            "hypothesis": make_hypothesis(generated.generation, hypothesis, candidate, name, blobs),
            "blobs": blobs,
        }

    def without_heads(self, heads: list[Head]) -> dict[str, Any]:
        """Return the new output and the change of the old one's log-probability if these heads are off."""
        for head in heads:
            self._check_head(*head)
        return Ablator(self.run, self.record).combine(heads)

    def _check_head(self, group: str, layer: int, head: int) -> None:
        attention = self.record.attention.get(attention_name(group, layer)) if group in GROUPS else None
        if attention is None or not 0 <= head < attention.query.size(1):
            groups = ", ".join(group["name"] for group in self.document["attention"])
            raise RegardError(f"There is no head {group}.{layer}.{head}.", hint=f"Groups: {groups}.")


def _check_candidate(trace: Trace, candidate: int) -> None:
    if not 0 < candidate < len(trace.candidates):
        raise RegardError(f"There is no candidate {candidate}.", hint="Use a number of the search, not the root.")


def _read_head(query: Query) -> Head:
    return cast("Head", (query["group"][0], int(query["layer"][0]), int(query["head"][0])))


def _parse_head(text: str) -> Head:
    group, layer, head = text.rsplit(".", 2)
    return cast("Head", (group, int(layer), int(head)))


def _continue(look: Look, query: Query) -> dict[str, Any]:
    continuation, vocabulary = look.continue_from(int(query["candidate"][0]))
    return {"continuation": continuation, "vocabulary": vocabulary}


ACTIONS: dict[str, Callable[[Look, Query], Mapping[str, Any]]] = {
    "document": lambda look, _: {**look.document, "live": True},
    "map": lambda look, query: look.map(*_read_head(query)),
    "row": lambda look, query: {"weights": look.row(*_read_head(query), int(query["row"][0]))},
    "logits": lambda look, query: look.logits(int(query["position"][0])),
    "continue": _continue,
    "hypothesis": lambda look, query: look.hypothesis(int(query["candidate"][0])),
    "ablate": lambda look, query: look.without_heads([_parse_head(text) for text in query["head"]]),
}
