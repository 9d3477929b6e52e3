"""`regard model settings`: docs/reference/settings.md is what the command prints."""

from pathlib import Path

from tests.commands import run_command

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def run_settings(*arguments: str) -> str:
    done = run_command("model", "settings", *arguments)
    assert done.code == 0, done.errors
    return done.output


def test_the_page_is_what_the_command_prints() -> None:
    hint = "write it again: regard model settings --markdown > docs/reference/settings.md"
    assert PAGE.read_text(encoding="utf-8") == run_settings("--markdown"), hint


def test_a_part_is_shown() -> None:
    shown = run_settings("train.schedule")
    assert '[train.schedule]  kind = "linear"' in shown
    assert "lr (required)" in shown
    assert "max_grad_norm" not in shown
    assert "max_grad_norm = 1.0" in run_settings("train.max_grad_norm")
    assert "[device]" in run_settings()


def test_an_unknown_setting_suggests_a_similar_one() -> None:
    done = run_command("model", "settings", "train.max_grad_nrom")
    assert done.code == 1
    assert "There is no setting 'train.max_grad_nrom'." in done.errors
    assert "'train.max_grad_norm'" in done.errors
