"""Model cards of exports."""

from pathlib import Path

import pytest

from regard.exchange.export import ExportOptions, export_model
from tests.exchange.folders import write_case

pytestmark = pytest.mark.usefixtures("one_short_text")


def test_card_has_front_matter(tmp_path: Path) -> None:
    write_case("pegasus-gelu", tmp_path / "ours")
    folder, report = export_model(tmp_path / "ours", "huggingface", options=ExportOptions(license="cc-by-4.0"))
    card = (folder / "README.md").read_text(encoding="utf-8")
    front_matter = card.split("---\n")[1].splitlines()
    assert front_matter[:4] == ["language:", '- "en"', '- "de"', 'license: "cc-by-4.0"']
    assert "pipeline_tag: translation" in front_matter
    assert "positions has 1024 rows" in report.notes[0]
