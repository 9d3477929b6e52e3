"""Chat templates are data: they render in a sandbox, and files that are no templates are refused."""

from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.text.chat_template import CHAT_TEMPLATE_FILE, MAX_BYTES, ChatTemplate, find_chat_template

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{ 6 * 7 }}"}]


def test_a_template_renders_a_conversation() -> None:
    text = "{% for message in messages %}\n{{ message.role }}: {{ message.content }}\n{% endfor %}\n"
    text += "{% if add_generation_prompt %}\nassistant:{% endif %}"
    rendered = ChatTemplate(text).render(MESSAGES)
    assert rendered == "system: Be brief.\nuser: {{ 6 * 7 }}\nassistant:"  # messages are not templates


@pytest.mark.parametrize(
    "text", ["{% for %}", "{{ messages.append(1) }}", "{{ ''.__class__.__mro__ }}{{ messages[9].content }}"]
)
def test_a_template_that_fails_is_an_error(text: str) -> None:
    with pytest.raises(RegardError, match="The chat template fails"):
        ChatTemplate(text).render(MESSAGES)


def test_the_template_of_a_folder(tmp_path: Path) -> None:
    assert find_chat_template(tmp_path) is None
    path = tmp_path / CHAT_TEMPLATE_FILE
    path.write_text("{{ messages[0].content }}", encoding="utf-8")
    assert find_chat_template(tmp_path) == "{{ messages[0].content }}"
    for content in (b"\xff\xfe", b"a" * (MAX_BYTES + 1)):
        path.write_bytes(content)
        with pytest.raises(RegardError, match=r"cannot be read|the limit is"):
            find_chat_template(tmp_path)
