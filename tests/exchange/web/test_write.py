"""The web page of an export."""

import json
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.exchange.web.write import check_tokenizer, find_runtime
from regard.text.tokenizer import Tokenizer
from tests.tasks.factories import make_tokenizer

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


def test_the_runtime_is_found_in_the_npm_package_or_its_dist(runtime: Path) -> None:
    assert find_runtime(runtime) == find_runtime(runtime / "dist") == runtime / "dist"


def test_a_tokenizer_that_the_page_does_not_implement_is_refused() -> None:
    document = json.loads(make_tokenizer().content)
    document["pre_tokenizer"] = {"type": "Whitespace"}
    with pytest.raises(RegardError, match="does not implement this tokenizer"):
        check_tokenizer(Tokenizer(json.dumps(document).encode()), location="here")
