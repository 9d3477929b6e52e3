"""The process that renders chat templates."""

from regard.text.chat_template import ChatTemplate
from regard.text.template_process import PROCESS


def test_template_process_forked_child_uses_its_own_process() -> None:
    template = ChatTemplate("{{ messages[0].content }}")
    parent = PROCESS._process
    PROCESS.forget()
    assert template.render([{"role": "system", "content": "Be brief."}]) == "Be brief."
    assert PROCESS._process is not parent
    PROCESS.close()
    PROCESS._process = parent
