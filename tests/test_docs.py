"""Every docstring example runs, and so does every code block of README and docs.

The `python` blocks of a page run one after another in one namespace. A `console` block is a session: each
`$ regard ...` line runs, and the lines after it must be its output ("..." stands for anything). tests/pages.py checks
`bash`, `toml` and `text` blocks.
"""

import doctest
import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest

import regard
from regard.text.chat_template import ChatTemplate
from tests.commands import run_command_line
from tests.pages import check_commands, check_log, check_settings, make_fixtures, read_blocks

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
MAX_NOT_RUN = 54  # blocks after `<!-- not run: reason -->`: long training, other programs, models of the examples
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(regard.__path__, "regard.") if "__main__" not in module.name
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files and models that commands in `bash` and `text` blocks name."""
    folder = tmp_path_factory.mktemp("pages")
    make_fixtures(folder)
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks(page: Path, fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {"__name__": "page"}
    for block in read_blocks(page):
        monkeypatch.chdir(tmp_path)
        match block.language:
            case "python" if block.reason:
                compile(block.code, page.name, "exec")
            case "python" if ">>>" in block.code:
                examples = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page), 0)
                runner = doctest.DocTestRunner()
                runner.run(examples, clear_globs=False)
                names |= examples.globs
                assert runner.summarize(verbose=False).failed == 0
            case "python":
                exec(compile(block.code, page.name, "exec"), names)  # noqa: S102 - our own pages
            case "console":
                check_session(block.code)
            case "toml":
                check_settings(block.code)
            case "bash":
                check_commands(block, fixtures, monkeypatch)
            case "text" if "$ " in block.code:
                check_commands(block, fixtures, monkeypatch)
            case "text":
                check_log(block.code)  # or other output
            case "json":
                json.loads(block.code)
            case "jinja":
                assert "Hello" in ChatTemplate(block.code).render_prompt("Hello")
            case "js":
                assert block.reason, f"{page.name}: nothing runs JavaScript here; say why it is not run"
            case _:
                pytest.fail(f"{page.name}: no check for `{block.language}` blocks")


def test_few_blocks_are_not_run() -> None:
    """Each of them has its reason; run a new block instead of raising the limit."""
    blocks = [block for page in PAGES for block in read_blocks(page)]
    reasons = [block.reason for block in blocks if block.reason]
    assert len(reasons) <= MAX_NOT_RUN, f"{len(reasons)} of {len(blocks)} blocks are not run"
    assert len(blocks) >= 200


def check_session(code: str) -> None:
    for entry in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, expected = entry.partition("\n")
        done = run_command_line(command)
        rules = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        printed = done.output + done.errors
        assert doctest.OutputChecker().check_output(expected, printed, rules), printed


def test_glossary_names_exist() -> None:
    """Each row of the glossary names a file that contains the first of our terms."""
    rows = [line.split(" | ") for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if len(row) == 4 and ".py`" in row[3]]
    assert len(rows) >= 60
    for *_, ours, location in rows:
        source = (ROOT / "src" / "regard" / location.strip(" `|")).read_text(encoding="utf-8")
        for name in re.findall(r"`([A-Za-z_.]+)[`(]", ours)[:1]:
            assert name.rpartition(".")[2] in source, (name, location)


def test_the_index_lists_every_page() -> None:
    """docs/index.md links every page, and every link of README.md and docs/index.md exists."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("**/*.md"):
        if page.name != "index.md":
            assert f"]({page.relative_to(ROOT / 'docs')})" in index, page
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), (page.name, link)


def test_a_task_is_added_in_fewer_than_80_lines() -> None:
    blocks = [block.code for block in read_blocks(ROOT / "docs" / "adding-a-task.md") if block.language == "python"]
    assert sum(bool(line.strip()) for code in blocks for line in code.splitlines()) < 80
