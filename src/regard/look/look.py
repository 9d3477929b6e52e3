"""`Look`: the recorded text, its document, and what a live page may still ask for."""

import warnings
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.files import write_atomic
from regard.base.formatting import pluralize
from regard.decode.protocol import Hypothesis
from regard.look.ablation import Head, count_heads, switch_off
from regard.look.alignment import make_hypothesis
from regard.look.attention import GROUPS, attention_name, read_map
from regard.look.document import Blob, Continuation, Document, TokenInfo, encode_f32, encode_sqrt
from regard.look.model_run import ModelRun
from regard.look.page import make_page
from regard.look.record import LookRecord
from regard.look.search import continue_candidate
from regard.look.tokens import describe_vocabulary

NOTEBOOK_HEIGHT = 640  # pixels


@dataclass(frozen=True)
class Look:
    """A look into a model while it processed one text.

    look = regard.look_into("my-model", "Two dogs play.")
    look.save("dogs.html")      # one file, no network needed
    look.show()                 # a page in the browser, until Ctrl-C
    """

    document: Document
    reading: ModelRun
    record: LookRecord

    def __repr__(self) -> str:
        model = self.document["model"]
        heads = sum(group["layers"] * group["heads"] for group in self.document["attention"])
        return f"Look({model['task']}, {pluralize(heads, 'head')}, {self.document['output'][:60]!r})"

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page with everything in it: it opens in any browser, without a server or a network.

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
        """Return the page; a live one asks the server of `regard.look.local` for what the document leaves out."""
        return make_page({**self.document, "live": live})

    def show(self, port: int = 0) -> None:
        """Serve the page on this machine only and open it in a browser; ends with Ctrl-C.

        Where no browser can be opened, a warning names the address.
        """
        from regard.look.local import serve  # it imports this module

        with serve(self, port) as server:
            if not server.open_browser():
                warnings.warn(f"No browser could be opened. The page is at {server.url}", stacklevel=2)
            server.wait()

    def _repr_html_(self) -> str:
        """Show the page in a notebook, isolated in a frame."""
        source = escape(self.html(), quote=True)
        return (
            f'<iframe srcdoc="{source}" sandbox="allow-scripts allow-downloads" '
            f'd_model="100%" height="{NOTEBOOK_HEIGHT}" style="border: 0" title="Look into a model"></iframe>'
        )

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
        generation, generated = self.reading.generation, self.reading.generated
        if generation is None or generated is None or generated.sampling is None:
            raise RegardError("This text was not sampled.", hint="Look into a language model with Sampling.")
        steps, index = generated.sampling.rows[0], position - len(generation.input.prompt)
        if not 0 <= index < len(steps):
            raise RegardError(f"No token was sampled at position {position}.", hint="Use a generated position.")
        return encode_f32(steps[index].logprobs)

    def continue_from(self, candidate: int) -> tuple[Continuation, dict[str, TokenInfo]]:
        """Force a candidate of the search, and return where it leads with the tokens that it mentions."""
        generation, generated = self.reading.generation, self.reading.generated
        if generation is None or generated is None or generated.trace is None:
            raise RegardError("There was no search.", hint="Look into a model that generates, with Beam.")
        if not 0 < candidate < len(generated.trace.candidates):
            raise RegardError(f"There is no candidate {candidate}.", hint="Use a number of the search, not the root.")
        continuation = continue_candidate(generation, generated.trace, candidate)
        return continuation, describe_vocabulary(generation.tokenizer, continuation["tokens"])

    def hypothesis(self, candidate: int) -> dict[str, Any]:
        """Return a finished candidate of the search with its cross-attention, and the blob that it names."""
        generation, generated = self.reading.generation, self.reading.generated
        if generation is None or generated is None or generated.trace is None or not self.reading.passage.source:
            raise RegardError("There is no cross-attention.", hint="Look into a translation model.")
        if not 0 < candidate < len(generated.trace.candidates):
            raise RegardError(f"There is no candidate {candidate}.", hint="Use a number of the search, not the root.")
        path = generated.trace.lineage(candidate)[1:]
        tokens, logprobs = [entry.token for entry in path], [entry.logprob for entry in path]
        blobs: dict[str, Blob] = {}
        eos = generation.tokenizer.specials.eos
        hypothesis = Hypothesis(tuple(tokens), tuple(logprobs), path[-1].score, ended=tokens[-1] == eos)
        return {
            "hypothesis": make_hypothesis(generation, hypothesis, candidate, f"hypothesis.c{candidate}", blobs),
            "blobs": blobs,
        }

    def without_heads(self, heads: list[Head]) -> dict[str, Any]:
        """Return the new output and the change of the old one's log-probability if these heads are off."""
        for head in heads:
            self._check_head(*head)
        record = switch_off(heads, count_heads(self.record))
        result: dict[str, Any] = {}
        if self.reading.passage.labels:
            before, after = (float(self.reading.passage.replay(part).sum()) for part in (None, record))
            result["delta"] = after - before
        if self.reading.generation is not None:
            generated = self.reading.generation.run(record)
            result["text"] = self.reading.generation.decode(generated.hypotheses[0])
        return result

    def _check_head(self, group: str, layer: int, head: int) -> None:
        attention = self.record.attention.get(attention_name(group, layer)) if group in GROUPS else None
        if attention is None or not 0 <= head < attention.query.size(1):
            groups = ", ".join(group["name"] for group in self.document["attention"])
            raise RegardError(f"There is no head {group}.{layer}.{head}.", hint=f"Groups: {groups}.")
