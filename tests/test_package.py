"""Importing `regard` does not import torch; its public names are loaded on first use and have types."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SNIPPET = """
import regard

translator = regard.load_translator("my-model", device="cpu")
reveal_type(translator.translate("Two dogs play."))
reveal_type(translator.translate(["Two dogs play."], n_best=3))
reveal_type(regard.load("my-model", task="translation").translate("Two dogs play.").text)

generator = regard.load_generator("my-lm")
reveal_type(generator.generate("Once upon a time", max_new_tokens=20))
reveal_type(regard.load("my-lm", task="causal_lm").generate(["Once"]))

fill_mask = regard.load_fill_mask("my-encoder")
reveal_type(fill_mask.fill("The ___ barks."))
reveal_type(regard.load("my-encoder", task="masked_lm").fill(["The ___ barks."]))

classifier = regard.load_classifier("my-classifier")
reveal_type(classifier.classify("A fine film.").label)
reveal_type(regard.load("my-tagger", task="tagging").tag("The dog barks"))

finished = regard.train("a.en", "a.de", out="my-model", minutes=5, listeners=[print])
reveal_type(finished.folder)
reveal_type(regard.resume("my-model", more=100).reason)
regard.train(nonsense=1)
"""
TYPES = [
    "Translation",
    "list[Translation]",
    "str",
    "GeneratedText",
    "list[GeneratedText]",
    "FilledText",
    "list[FilledText]",
    "str",
    "TaggedText",
    "Path",
    "Literal['finished'] | Literal['no improvement'] | Literal['stop requested'] | Literal['spike'] | "
    "Literal['divergence']",
]


def test_importing_regard_does_not_import_torch() -> None:
    script = "import sys, regard, regard.cli, regard.exchange.exportable; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "False\n"


def test_public_names_are_loaded_on_first_use() -> None:
    import regard

    for name in regard.__all__:
        assert getattr(regard, name).__name__.rpartition(".")[2] == name
    assert sorted(dir(regard)) == sorted([*regard.__all__, "__version__"])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = regard.nothing


USER_SCRIPT = str(Path(__file__).with_name("user_script.py"))  # has no type errors

# Without the packages that Regard imports, mypy takes two seconds instead of twenty.
QUICK_OPTIONS = ["--no-site-packages", "--ignore-missing-imports"]


@pytest.mark.parametrize("options", [QUICK_OPTIONS, pytest.param([], marks=pytest.mark.slow)])
def test_the_obvious_lines_of_each_family_have_types(options: list[str], tmp_path: Path) -> None:
    import regard

    (tmp_path / "mine.py").write_text(SNIPPET, encoding="utf-8")
    assert Path(regard.__path__[0], "py.typed").is_file()
    environment = {**os.environ, "MYPYPATH": str(Path(regard.__path__[0]).parent)}
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", *options, "mine.py", USER_SCRIPT]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    revealed = [line.rpartition('is "')[2].rstrip('"') for line in done.stdout.splitlines() if "Revealed" in line]
    for module in ("regard.tasks.results.", "regard.tasks.masked_lm.", "regard.tasks.text_classification."):
        revealed = [name.replace(module, "") for name in revealed]
    assert [name.replace("builtins.", "").replace("pathlib.", "") for name in revealed] == TYPES, done.stdout
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1, done.stdout
    assert 'Unexpected keyword argument "nonsense"' in errors[0] or "Missing named argument" in errors[0]


def test_a_release_has_absolute_links() -> None:
    """scripts/set_repository_url.py prepares README.md and pyproject.toml for a package index."""
    root = Path(__file__).parents[1]
    spec = spec_from_file_location("set_repository_url", root / "scripts" / "set_repository_url.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    url = "https://example.org/owner/regard"
    readme = script.make_links_absolute((root / "README.md").read_text(encoding="utf-8"), url)
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(links) > 10
    assert all(link.startswith("https://") for link in links)
    project = tomllib.loads(script.add_urls((root / "pyproject.toml").read_text(encoding="utf-8"), url))["project"]
    assert project["urls"]["Repository"] == url
    assert project["scripts"] == {"regard": "regard.cli:main"}


def test_torch_distributed_is_imported_by_the_files_that_the_rule_names() -> None:
    root = Path(__file__).parents[1]
    rules = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    message = rules["flake8-tidy-imports"]["banned-api"]["torch.distributed"]["msg"]
    named = {
        f"{package}/{name}.py"
        for package, names in re.findall(r"([\w/]+)/\{([\w,]+)\}\.py", message)
        for name in names.split(",")
    }
    package = root / "src" / "regard"
    importing = re.compile(r"^\s*(?:import|from) torch(?:\.distributed\b| import .*\bdistributed\b)", re.MULTILINE)
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if importing.search(path.read_text(encoding="utf-8"))
    }
    assert found == named
