"""Chat templates: Jinja templates that convert a conversation to a prompt.

Templates are untrusted: they run in a sandboxed process with limits (`regard.text.template_process`).

Like Hugging Face folders, a model folder may contain a `chat_template.jinja`. Fine-tuning and the server both render
prompts with it, so they use the same tokens. Special tokens written by the template are marked
(`regard.text.special_marks`) and encoded as special tokens; their names inside a message are ordinary text.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.files import read_regular_file
from regard.text.special_marks import MARK, SpecialMarks
from regard.text.specials import ROLES
from regard.text.template_process import PROCESS, TemplateError, TemplateLimitError, TemplateRefusal
from regard.text.tokenizer import Tokenizer

CHAT_TEMPLATE_FILE = "chat_template.jinja"
MAX_BYTES = 100_000


class ChatTemplate:
    """A compiled template. It has access only to the messages and the special token names (`bos_token`, ...).

    >>> template = ChatTemplate("{% for message in messages %}{{ message.role }}: {{ message.content }} {% endfor %}")
    >>> template.render([{"role": "user", "content": "Hi"}])
    'user: Hi '

    Args:
        text: The template.
        tokenizer: Provides the special tokens; None for a template without any.
        starts_with_bos: Whether the model adds bos to every text; bos is then removed from the start of the rendered
            text.

    Raises:
        RegardError: The text is not a valid template, or Jinja is not installed.
    """

    def __init__(self, text: str, tokenizer: Tokenizer | None = None, *, starts_with_bos: bool = True) -> None:
        import_optional("jinja2", "serve", "Chat templates")
        self.text = text
        self._marks = SpecialMarks([]) if tokenizer is None else tokenizer.special_marks
        self._variables: dict[str, Any] = {"add_generation_prompt": True, "tools": None, "documents": None}
        self._bos = ""
        if tokenizer is not None:
            names = {role: tokenizer.vocabulary[getattr(tokenizer.specials, role)] for role in ROLES}
            self._variables |= {f"{role}_token": name for role, name in names.items()}
            self._bos = MARK + names["bos"] if starts_with_bos else ""
        _render(text, None)

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the prompt of a conversation, up to the start of the response; special tokens are marked."""
        names = [(number, name) for number, message in enumerate(messages) for name in message]
        texts, break_mark = self._marks.protect(messages[number][name] for number, name in names)
        protected: list[dict[str, str]] = [{} for _ in messages]
        for (number, name), text in zip(names, texts, strict=True):
            protected[number][name] = text
        rendered = _render(self.text, {"messages": protected, **self._variables})
        return self._marks.mark(rendered, break_mark).removeprefix(self._bos)

    def render_prompt(self, prompt: str) -> str:
        """Return the prompt of a conversation that starts with one user message."""
        return self.render([{"role": "user", "content": prompt}])


def read_chat_template(path: Path) -> str:
    """Read a template file.

    Raises:
        RegardError: The file does not exist, is too large, or is not text.
    """
    try:
        return read_regular_file(path, MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = f"Use a Jinja file of at most {MAX_BYTES:,} bytes."
        raise RegardError("The chat template cannot be read.", location=str(path), hint=hint) from error


def find_chat_template(folder: Path) -> str | None:
    """Return the chat template of a model folder; None if it has none."""
    path = folder / CHAT_TEMPLATE_FILE
    return read_chat_template(path) if path.is_file() else None


def check_chat_template(text: str, location: str) -> None:
    """Raise an error if a text is too long, is not a template, or exceeds a limit with a short conversation.

    Raises:
        RegardError: The template is invalid, or Jinja is not installed.
    """
    import_optional("jinja2", "serve", "Chat templates")
    if (size := len(text.encode())) > MAX_BYTES:
        message = f"The chat template has {size:,} bytes; the limit is {MAX_BYTES:,}."
        raise RegardError(message, location=location, hint="Use a simpler template.")
    conversation = {"messages": [{"role": "user", "content": "Hello"}], "add_generation_prompt": True}
    for variables in (None, conversation):
        try:
            PROCESS.render(text, variables)
        except TemplateError as error:
            if variables is None or isinstance(error, TemplateLimitError):  # others may need other messages
                raise _make_error(error, location) from error


def _render(text: str, variables: Mapping[str, Any] | None) -> str:
    try:
        return PROCESS.render(text, variables)
    except TemplateError as error:
        raise _make_error(error) from error


def _make_error(error: TemplateError, location: str | None = None) -> RegardError:
    if isinstance(error, TemplateRefusal):
        return RegardError(f"The chat template rejected the messages: {error}", hint="Change the messages.")
    if isinstance(error, TemplateLimitError):
        return RegardError(f"The chat template was stopped: {error}.", location=location, hint="Simplify the template.")
    return RegardError(f"The chat template failed: {error}.", location=location, hint="Fix the template.")
