"""Chat templates: Jinja text that turns a conversation into a prompt. A template is data and runs in a sandbox."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.base.errors import RegardError
from regard.base.extras import import_optional

if TYPE_CHECKING:
    from regard.serve.model import ServedModel

MAX_TEMPLATE_BYTES = 100_000


def read_template(path: Path) -> str:
    """Read a chat template."""
    if not path.is_file() or path.stat().st_size > MAX_TEMPLATE_BYTES:
        fix = f"Name a Jinja file of at most {MAX_TEMPLATE_BYTES:,} bytes."
        raise RegardError("The chat template cannot be read.", where=str(path), fix=fix)
    return path.read_text(encoding="utf-8")


def render_chat(model: "ServedModel", messages: Sequence[Mapping[str, str]]) -> str:
    """Return the prompt of a conversation.

    Raises:
        RegardError: The model has no template, or the template fails.
    """
    if model.chat_template is None:
        fix = "Use /v1/completions, or start the server with a template for this model."
        raise RegardError(f"The model '{model.name}' has no chat template.", fix=fix)
    return render_template(model.chat_template, messages)


def render_template(template: str, messages: Sequence[Mapping[str, str]]) -> str:
    """Render a template in a sandbox: it reads the messages and nothing else.

    >>> template = "{% for message in messages %}{{ message.role }}: {{ message.content }} {% endfor %}"
    >>> render_template(template, [{"role": "user", "content": "Hi"}])
    'user: Hi '
    """
    jinja: Any = import_optional("jinja2.sandbox", "serve", "Chat templates")
    environment = jinja.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    try:
        return str(environment.from_string(template).render(messages=messages, add_generation_prompt=True))
    except Exception as error:
        raise RegardError(f"The chat template fails: {type(error).__name__}.", fix="Correct the template.") from error
