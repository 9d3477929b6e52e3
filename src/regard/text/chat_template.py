"""Chat templates: Jinja text that turns a conversation into a prompt. A template is data and runs in a sandbox.

A model folder may hold one as `chat_template.jinja`, as Hugging Face folders do: fine-tuning renders its prompts with
it, and the server its conversations, so that both use the same words. The rendered prompt is ordinary text: special
tokens of the tokenizer are not found in it, but the tokens that a user added are (`Tokenizer.add_tokens`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.base.errors import RegardError
from regard.base.extras import import_optional
from regard.base.files import read_regular_file

CHAT_TEMPLATE_FILE = "chat_template.jinja"
MAX_BYTES = 100_000


class ChatTemplate:
    """A compiled template. It reads the messages and nothing else.

    >>> template = ChatTemplate("{% for message in messages %}{{ message.role }}: {{ message.content }} {% endfor %}")
    >>> template.render([{"role": "user", "content": "Hi"}])
    'user: Hi '

    Args:
        text: The template.

    Raises:
        RegardError: The text is no template, or Jinja is not installed.
    """

    def __init__(self, text: str) -> None:
        jinja: Any = import_optional("jinja2.sandbox", "serve", "Chat templates")
        environment = jinja.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
        )
        self.text = text
        try:
            self._template = environment.from_string(text)
        except Exception as error:
            raise _make_error(error) from error

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the prompt of a conversation, up to where the answer begins."""
        try:
            return str(self._template.render(messages=messages, add_generation_prompt=True))
        except Exception as error:
            raise _make_error(error) from error

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


def _make_error(error: Exception) -> RegardError:
    return RegardError(f"The chat template fails: {type(error).__name__}.", fix="Correct the template.")
