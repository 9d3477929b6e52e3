"""The page: nothing leaves its element, and its policy allows its own program only."""

import base64
import hashlib
import json
import re

import pytest

from regard.base.errors import RegardError
from regard.look.document import to_json
from regard.look.page import make_page
from tests.look.factories import SCRIPT
from tests.look.synthetic import HOSTILE, make_document


def test_hostile_tokens_stay_inside_their_strings() -> None:
    document = make_document(hostile=True)
    text = to_json(document)
    assert "<" not in text
    assert json.loads(text) == document
    texts = [token["text"].strip() for token in json.loads(text)["sequences"]["source"]]
    assert set(HOSTILE) <= set(texts)
    page = make_page(document, SCRIPT)
    assert page.count("<script") == 2
    assert page.lower().count("</script") == 2
    assert "<img" not in page
    start = page.index('id="document">') + len('id="document">')
    assert json.loads(page[start : page.index("</script>", start)]) == document


def test_a_title_cannot_leave_its_element() -> None:
    document = make_document()
    document["text"] = "</title><script>alert(1)</script>"
    page = make_page(document, SCRIPT)
    assert page.count("<script") == 2
    assert "&lt;/title&gt;" in page


def test_the_policy_allows_the_program_and_no_other() -> None:
    document = make_document()
    text = make_page(document, SCRIPT)
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in text
    assert "connect-src 'none'" in text
    assert "connect-src 'self'" in make_page({**document, "live": True}, SCRIPT)
    assert f"<script>{SCRIPT}</script>" in text
    assert not re.findall(r"https?://", text)
    for script in ("a = '</script>'", "a = '</SCRIPT '", "a = '<!--'"):
        with pytest.raises(RegardError, match="script element"):
            make_page(document, script)
