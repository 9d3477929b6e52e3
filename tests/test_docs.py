"""Every docstring example runs, and so does every code block of README and docs.

The `python` blocks of a page run one after another in one namespace. A `console` block is a session: each
`$ regard ...` line runs, and the lines after it must be its output ("..." stands for anything). tests/pages.py checks
`bash`, `toml` and `text` blocks.
"""

import doctest
import importlib
import importlib.util
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard
from regard.text.chat_template import ChatTemplate
from tests.commands import parse_command_line, run_command_line
from tests.pages import PageServer, check_commands, check_log, check_settings, make_fixtures, read_blocks

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
MAX_README_WORDS = 350  # before its table of links: a minute of reading
MAX_NOT_RUN = 16  # blocks after `<!-- not run: reason -->`: long training, other programs, models of the examples
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


@pytest.fixture
def server() -> Iterator[PageServer]:
    """The server that `regard serve` of a page starts; it ends with the page."""
    server = PageServer()
    yield server
    server.stop()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks(
    page: Path, fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PageServer
) -> None:
    names: dict[str, object] = {"__name__": "page"}
    (tmp_path / "regard-demo").symlink_to(fixtures / "regard-demo")  # Python blocks use the model of `regard demo`
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
                check_commands(block, fixtures, monkeypatch, server)
            case "text" if "$ " in block.code:
                check_commands(block, fixtures, monkeypatch, server)
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
    assert len(blocks) >= 120


def check_session(code: str) -> None:
    for entry in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, expected = entry.partition("\n")
        done = run_command_line(command)
        rules = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        printed = done.output + done.errors
        assert doctest.OutputChecker().check_output(expected, printed, rules), printed


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent.name in ("start", "coming-from") or page.name == "evaluate.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_inline_commands_have_real_options(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    for command in re.findall(r"`(regard \w[^`]* [^`]*)`", text):
        if "..." not in command:
            parse_command_line(command)


def test_readme_is_read_in_a_minute() -> None:
    text, heading, _ = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Where to go next\n")
    assert heading
    words = [word for word in text.split() if re.search(r"\w", word)]  # not the bars of tables
    assert len(words) <= MAX_README_WORDS


def test_glossary_names_exist() -> None:
    """Each row of the glossary names a file that contains the first of our terms."""
    rows = [
        line.split(" | ")
        for line in (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8").splitlines()
    ]
    rows = [row for row in rows if len(row) == 3 and ".py`" in row[2]]
    assert len(rows) >= 60
    for *_, ours, location in rows:
        source = (ROOT / "src" / "regard" / location.strip(" `|")).read_text(encoding="utf-8")
        for name in re.findall(r"`([A-Za-z_.]+)[`(]", ours)[:1]:
            assert name.rpartition(".")[2] in source, (name, location)


def test_docs_index_links_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("**/*.md"):
        if page.name != "index.md":
            assert f"]({page.relative_to(ROOT / 'docs')})" in index, page


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_exist(page: Path) -> None:
    for link, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        target = (page.parent / link) if link else page
        assert target.exists(), f"{page.name}: no file {link}"
        if anchor and target.suffix == ".md":
            assert anchor in read_anchors(target), f"{page.name}: no heading #{anchor} in {target.name}"


def read_anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["commands", "python"])
def test_generated_reference_is_up_to_date(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("write_reference", ROOT / "scripts" / "write_reference.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    getattr(script, f"print_{name}")()
    page = ROOT / "docs" / "reference" / f"{name}.md"
    hint = f"write it again: python scripts/write_reference.py {name} > docs/reference/{name}.md"
    assert capsys.readouterr().out == page.read_text(encoding="utf-8"), hint


def test_a_task_is_added_in_fewer_than_80_lines() -> None:
    blocks = [
        block.code for block in read_blocks(ROOT / "docs" / "extending" / "task.md") if block.language == "python"
    ]
    assert sum(bool(line.strip()) for code in blocks for line in code.splitlines()) < 80
