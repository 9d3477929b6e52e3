"""Chat templates: Jinja text that turns a conversation into a prompt.

A template is data: it runs in a sandbox, in a process with limits (`regard.text.template_process`).

A model folder may hold one as `chat_template.jinja`, as Hugging Face folders do: fine-tuning renders its prompts with
it, and the server its conversations, so that both use the same tokens. Special tokens that the template writes are
marked (`regard.text.special_marks`), and the tokenizer reads them as special tokens; in a message their names are text.
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
        """Return the prompt of a conversation, up to where the answer begins; special tokens are marked."""
        names = [(number, name) for number, message in enumerate(messages) for name in message]
        texts, break_mark = self._marks.protect(messages[number][name] for number, name in names)
        protected: list[dict[str, str]] = [{} for _ in messages]
        for (number, name), text in zip(names, texts, strict=True):
            protected[number][name] = text
        rendered = _render(self.text, {"messages": protected, **self._variables})
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
        hint = f"Name a Jinja file of at most {MAX_BYTES:,} bytes."
        raise RegardError("The chat template cannot be read.", location=str(path), hint=hint) from error


def find_chat_template(folder: Path) -> str | None:
    """Return the text of the template of a model folder; None if it has none."""
    path = folder / CHAT_TEMPLATE_FILE
    return read_chat_template(path) if path.is_file() else None


def check_chat_template(text: str, location: str) -> None:
    """Refuse a text that is too long, is no template, or exceeds a limit with a short conversation.

    Raises:
        RegardError: The text is no such template, or Jinja is not installed.
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
        return RegardError(f"The chat template refuses the messages: {error}", hint="Change the messages.")
    if isinstance(error, TemplateLimitError):
        return RegardError(f"The chat template is stopped: {error}.", location=location, hint="Use a simpler template.")
    return RegardError(f"The chat template fails: {error}.", location=location, hint="Correct the template.")
