"""`regard model settings`: docs/settings.md is what the command prints."""

from pathlib import Path

from tests.commands import run_command

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def run_settings(*arguments: str) -> str:
    done = run_command("model", "settings", *arguments)
    assert done.code == 0, done.errors
    return done.output


def test_the_page_is_what_the_command_prints() -> None:
    fix = "write it again: regard model settings --markdown > docs/settings.md"
    assert PAGE.read_text(encoding="utf-8") == run_settings("--markdown"), fix


def test_a_part_is_shown() -> None:
    shown = run_settings("train.schedule")
    assert '[train.schedule]  kind = "linear"' in shown
    assert "peak (required)" in shown
    assert "clip" not in shown
    assert "clip = 1.0" in run_settings("train.clip")
    assert "[device]" in run_settings()


def test_an_unknown_setting_suggests_a_similar_one() -> None:
    done = run_command("model", "settings", "train.clpi")
    assert done.code == 1
    assert "There is no setting 'train.clpi'." in done.errors
    assert "'train.clip'" in done.errors
