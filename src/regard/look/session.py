"""The live page of a look: a reader enters another text, and the page shows it.

    look?text=...                                        {"document": ...}: look into another text
    blame?word=...                                       {"candidates": [...]} for a word of the output
    look?text=...&against=...&model=0&against_model=1    the same, compared with another text or model

The page sends these with POST, because a text may be longer than a URL. All other requests go to the current `Look`.
Only the current look is kept: a recording takes up to 512 MB. A page that still shows an earlier one is told to reload.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from regard.base.errors import RegardError
from regard.look.document import Document, Session
from regard.look.local import Query
from regard.look.page import make_page

if TYPE_CHECKING:
    from regard.look.look import Look

MAX_CHARACTERS = 5000  # of an entered text


class LookSession:
    """A live page: the current look, and the models that can look into other texts.

    Args:
        look: The first look; if it is compared with another model, the page offers both.
        blame: Returns the training samples that may have taught the first model a word; gets source, output and word.
    """

    def __init__(self, look: "Look", blame: Callable[[str, str, str], Mapping[str, Any]] | None = None) -> None:
        self._look, self._blame = look, blame
        self._number = 0
        self._models = [look]
        if look.other is not None and _model_of(look.other) != _model_of(look):
            self._models.append(look.other)

    def html(self, *, live: bool = False) -> str:
        """Return the page of the current look."""
        return make_page({**self._document(), "live": True} if live else self._look.document)

    def answer(self, name: str, query: Query) -> Mapping[str, Any] | None:
        """Return the response to a request of the page; None if the request is unknown."""
        if name == "look":
            self._replace(query)
            return {"document": {**self._document(), "live": True}}
        if name == "document":
            return {**self._document(), "live": True}
        if query.get("session", [str(self._number)]) != [str(self._number)]:
            raise RegardError("This page shows an earlier input.", hint="Reload the page.")
        if name == "blame" and self._blame is not None and self._has_blame:
            return self._blame(self._look.document["text"], self._look.document["output"], query["word"][0])
        return self._look.answer(name, query)

    @property
    def _has_blame(self) -> bool:
        return self._blame is not None and _model_of(self._look) == _model_of(self._models[0])

    def _replace(self, query: Query) -> None:
        text, against = (query.get(name, [""])[0] for name in ("text", "against"))
        model = self._read_model(query, "model", 0)
        against_model = self._read_model(query, "against_model", model)
        look = self._look_into(model, text)
        if against.strip() or against_model != model:
            look = look.against(self._look_into(against_model, against if against.strip() else text))
        self._look, self._number = look, self._number + 1

    def _read_model(self, query: Query, name: str, default: int) -> int:
        place = int(query.get(name, [str(default)])[0])
        if not 0 <= place < len(self._models):
            raise RegardError(f"There is no model {place}.", hint=f"Use 0 to {len(self._models) - 1}.")
        return place

    def _look_into(self, model: int, text: str) -> "Look":
        """Look into a text, unless the current look or the one that it is compared with did."""
        if not text.strip():
            raise RegardError("The text is empty.", hint="Enter a text.")
        if len(text) > MAX_CHARACTERS:
            message = f"The text has {len(text):,} characters; this page takes {MAX_CHARACTERS:,}."
            raise RegardError(message, hint="Use a shorter text.")
        for look in (self._look, self._look.other):
            if look is not None and look.document["text"] == text and _model_of(look) == _model_of(self._models[model]):
                return _make_single(look)
        look_again = self._models[model].look_again
        if look_again is None:
            raise RegardError("This model reads files, not text.", hint="Run `regard look` with another file.")
        return look_again(text)

    def _document(self) -> Document:
        """Return the current document, with what a reader can enter."""
        document = self._look.document
        if any(look.look_again is None for look in self._models):
            return document
        models = [_model_of(look) for look in self._models]
        model = models.index(_model_of(self._look))
        against_model = model if self._look.other is None else models.index(_model_of(self._look.other))
        session = Session(
            number=self._number,
            models=_name_models(self._models),
            model=model,
            against_model=against_model,
            max_characters=MAX_CHARACTERS,
            blame=self._has_blame,
        )
        return {**document, "session": session}


def _make_single(look: "Look") -> "Look":
    """Return a look without the one that it is compared with."""
    document = look.document.copy()
    document.pop("against", None)
    return replace(look, document=document, other=None)


def _model_of(look: "Look") -> str:
    return look.document["model"]["sha256"]


def _name_models(looks: list["Look"]) -> list[str]:
    """Return the models' names; letters tell apart those with the same name."""
    names = [look.document["model"]["name"] or "model" for look in looks]
    if len(set(names)) == len(names):
        return names
    return [f"{name} ({letter})" for name, letter in zip(names, "AB", strict=False)]
