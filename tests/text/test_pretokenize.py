"""Long texts, cut where words end."""

import json
from random import Random

import pytest

from regard.config.tokenizers import AnyTokenizerConfig
from regard.text import pretokenize
from regard.text.learn import learn
from tests.text.factories import KINDS, TEXT


@pytest.mark.parametrize("settings", KINDS.values(), ids=list(KINDS))
def test_a_long_text_is_read_in_parts_and_gives_the_same_file(
    settings: AnyTokenizerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gaps = [" ", " ", " ", "  ", "\n", "\n\n", " \n ", "\t", "\u00a0"]
    random = Random(1)
    text = "".join(line + random.choice(gaps) for line in TEXT * 3)
    whole = learn([text], settings)
    ids = whole.encode_ids([text, TEXT[0]])
    monkeypatch.setattr(pretokenize, "LONG_TEXT", 7)
    gap = pretokenize.read_gap(json.loads(whole.content))
    assert (gap is None) == bool(settings.specials.extra)  # an extra token may hold a space
    assert gap is None or len(list(pretokenize.split_long_text(text, gap))) > 50
    assert learn([text], settings) == whole
    assert whole.encode_ids([text, TEXT[0]]) == ids
