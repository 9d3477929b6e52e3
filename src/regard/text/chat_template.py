"""Chat templates: Jinja text that turns a conversation into a prompt. A template is data and runs in a sandbox.

A model folder may hold one as `chat_template.jinja`, as Hugging Face folders do: fine-tuning renders its prompts with
it, and the server its conversations, so that both use the same tokens. Special tokens that the template writes are
marked (`regard.text.special_marks`), and the tokenizer reads them as special tokens; in a message their names are text.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.files import read_regular_file
from regard.text.special_marks import MARK, SpecialMarks
from regard.text.specials import ROLES
from regard.text.tokenizer import Tokenizer

CHAT_TEMPLATE_FILE = "chat_template.jinja"
MAX_BYTES = 100_000


class ChatTemplate:
    """A compiled template. It reads the messages and the names of special tokens (`bos_token`, ...), nothing else.

    >>> template = ChatTemplate("{% for message in messages %}{{ message.role }}: {{ message.content }} {% endfor %}")
    >>> template.render([{"role": "user", "content": "Hi"}])
    'user: Hi '

    Args:
        text: The template.
        tokenizer: Has the special tokens; None for a template without any.
        starts_with_bos: The model adds bos to every text; a bos at the start of the rendered text is then left out.

    Raises:
        RegardError: The text is no template, or Jinja is not installed.
    """

    def __init__(self, text: str, tokenizer: Tokenizer | None = None, *, starts_with_bos: bool = True) -> None:
        jinja: Any = import_optional("jinja2.sandbox", "serve", "Chat templates")
        environment = jinja.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _refuse  # as in `transformers`
        environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
        self.text = text
        self._marks = SpecialMarks([]) if tokenizer is None else tokenizer.special_marks
        self._variables: dict[str, Any] = {"add_generation_prompt": True, "tools": None, "documents": None}
        self._bos = ""
        if tokenizer is not None:
            names = {role: tokenizer.vocabulary[getattr(tokenizer.specials, role)] for role in ROLES}
            self._variables |= {f"{role}_token": name for role, name in names.items()}
            self._bos = MARK + names["bos"] if starts_with_bos else ""
        try:
            self._template = environment.from_string(text)
        except Exception as error:
            raise _make_error(error) from error

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the prompt of a conversation, up to where the answer begins; special tokens are marked."""
        names = [(number, name) for number, message in enumerate(messages) for name in message]
        texts, break_mark = self._marks.protect(messages[number][name] for number, name in names)
        protected: list[dict[str, str]] = [{} for _ in messages]
        for (number, name), text in zip(names, texts, strict=True):
            protected[number][name] = text
        try:
            rendered = str(self._template.render(messages=protected, **self._variables))
        except Exception as error:
            raise _make_error(error) from error
        return self._marks.mark(rendered, break_mark).removeprefix(self._bos)

    def render_prompt(self, prompt: str) -> str:
        """Return the prompt of a conversation that begins with one message of the user."""
        return self.render([{"role": "user", "content": prompt}])


def read_chat_template(path: Path) -> str:
    """Read the text of a template from its file.

    Raises:
        RegardError: There is no such file, or it is too large or no text.
    """
    try:
        return read_regular_file(path, MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        fix = f"Name a Jinja file of at most {MAX_BYTES:,} bytes."
        raise RegardError("The chat template cannot be read.", where=str(path), fix=fix) from error


def find_chat_template(folder: Path) -> str | None:
    """Return the text of the template of a model folder; None if it has none."""
    path = folder / CHAT_TEMPLATE_FILE
    return read_chat_template(path) if path.is_file() else None


class _RefusedError(Exception):
    """A template refuses a conversation, for example one whose roles do not alternate."""


def _refuse(message: object) -> None:
    raise _RefusedError(str(message)[:200])


def _make_error(error: Exception) -> RegardError:
    if isinstance(error, _RefusedError):
        return RegardError(f"The chat template refuses the messages: {error}", fix="Change the messages.")
    return RegardError(f"The chat template fails: {type(error).__name__}.", fix="Correct the template.")
