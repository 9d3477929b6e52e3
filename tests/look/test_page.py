"""The page: nothing leaves its element, and its policy allows its own program only."""

import json

from regard.look.document import to_json
from regard.look.page import make_page
from tests.look.synthetic import HOSTILE, make_document

SCRIPT = "document.title = 'drawn'"


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
