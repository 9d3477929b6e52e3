"""The page: nothing leaves its element, and its policy allows its own program only."""

import base64
import hashlib
import json
import re

import pytest

from regard.base.errors import RegardError
from regard.look.certainty import show_percent
from regard.look.document import to_json
from regard.look.page import make_description, make_page
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


def test_title_and_preview_name_input_and_output() -> None:
    document = make_document()
    document["text"], document["output"] = "Two\n dogs", "Zwei <Hunde>"
    page = make_page(document, SCRIPT)
    assert "<title>Two dogs → Zwei &lt;Hunde&gt; · Regard</title>" in page
    assert '<meta property="og:title" content="Two dogs → Zwei &lt;Hunde&gt; · Regard">' in page
    assert '<meta property="og:description" content="' in page
    document["output"] = ""
    assert "<title>Two dogs · Regard</title>" in make_page(document, SCRIPT)


def test_the_preview_says_first_how_sure_the_model_is() -> None:
    # web/test/gallery.test.mjs compares it with the headline of every page of the gallery.
    texts = [{"logprob": -0.5}, {"logprob": -1.5}]
    gaps = [{"probabilities": [0.994]}, {"probabilities": [0.005]}, {"probabilities": []}]
    assert make_description({"predictions": gaps[:1]}).startswith("99.4 % sure. See ")
    assert make_description({"predictions": gaps}).startswith("At least 0.50 % sure. See ")
    assert make_description({"predictions": gaps[2:]}).startswith("See ")
    target = {"predictions": [], "sequences": {"target": [{}, *texts]}}
    assert make_description(target).startswith("Probability 14 %, 37 % per token. See ")
    assert make_description({**target, "sampling": {"seed": 0}}).startswith("Sampled, 37 % per token on average. See ")
    target["sequences"]["target"].append({"logprob": None})  # type: ignore[index]
    assert make_description(target).startswith("Probability 0 %, 0 % per token. See ")
    assert [show_percent(value) for value in (0, 1e-5, 0.0012, 0.025, 0.125, 0.9951, 0.9996, 1)] == [
        *("0 %", "< 0.01 %", "0.12 %", "2.5 %", "13 %", "99.5 %", "100 %", "100 %")
    ]
    assert "See what" in make_page(make_document(), SCRIPT)


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
