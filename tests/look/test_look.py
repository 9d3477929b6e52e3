"""A look as a file and in a notebook."""

import re
from pathlib import Path

import pytest

from regard.base.errors import RegardError
from regard.look import look
from regard.look.look import ACTIONS, Look

pytestmark = pytest.mark.usefixtures("script")


def test_save_and_notebook(translation_look: Look, tmp_path: Path) -> None:
    path = translation_look.save(tmp_path / "look.html")
    assert path.read_text(encoding="utf-8") == translation_look.html()
    with pytest.raises(RegardError, match="cannot be written"):
        translation_look.save(tmp_path / "nowhere" / "look.html")
    frame = translation_look._repr_html_()
    assert frame.count("<") == 2
    assert 'width="100%"' in frame
    assert 'sandbox="allow-scripts allow-downloads"' in frame  # never allow-same-origin


def test_every_request_of_a_live_page_is_documented() -> None:
    assert look.__doc__ is not None
    assert set(re.findall(r"^    (\w+)", look.__doc__, re.MULTILINE)) == set(ACTIONS)
