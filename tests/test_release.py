"""The wheel and the sdist contain what they need, and the committed lists of dependencies are complete."""

import doctest
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from scripts import release

from regard.base.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
MAX_WHEEL, MAX_SDIST = 2_600_000, 7_000_000  # bytes


def read_source_files() -> set[str]:
    source = ROOT / "src"
    paths = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(source).as_posix() for path in paths if path.suffix != ".pyc"}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    for target in ("sdist", "wheel"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)  # noqa: S603
    return folder


def test_wheel_contains_exactly_the_package(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if name.startswith("regard/")} == read_source_files()
    assert {name.partition("/")[2] for name in names if not name.startswith("regard/")} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
    }
    assert {"regard/py.typed", "regard/look/static/app.js"} <= set(names)  # types, and pages that need no Node
    assert wheel.stat().st_size < MAX_WHEEL


def test_sdist_contains_the_repository(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("src/regard", "tests", "docs", "examples", "web", "scripts", "deploy", "bench"):
        files = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).glob("*.py")}
        assert files <= names, folder
        assert any(name.startswith(f"{folder}/") for name in names), folder
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "constraints.txt"} <= names
    assert {f"src/{name}" for name in read_source_files()} <= names
    assert not any("node_modules" in name for name in names)
    assert sdist.stat().st_size < MAX_SDIST


def test_constraints_have_a_hash_for_every_package_but_pytorch() -> None:
    packages = release.PACKAGE.findall(CONSTRAINTS)
    names = {canonicalize_name(package.partition("==")[0]) for package in packages}
    assert len(names) >= 40
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", package) for package in packages)
    assert not any(release.PLATFORM_PACKAGES.match(name) for name in names)
    assert "://" not in CONSTRAINTS  # no address of an index


def test_constraints_satisfy_every_requirement() -> None:
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", CONSTRAINTS, re.MULTILINE):
        versions.setdefault(canonicalize_name(name), []).append(version)
    extras = PROJECT["optional-dependencies"]
    requirements = [*PROJECT["dependencies"], *(text for extra in release.EXTRAS for text in extras[extra])]
    for requirement in map(Requirement, requirements):
        if requirement.name != "torch":
            pinned = versions[canonicalize_name(requirement.name)]
            assert all(requirement.specifier.contains(version) for version in pinned), requirement


def test_licenses_page_lists_every_pinned_package() -> None:
    page = (ROOT / "docs" / "reference" / "licenses.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w.-]+) \| [^|]+ \| ([^|]+) \|$", page, re.MULTILINE))
    skipped = {"httpx2-jsfetch"}  # of another platform
    pinned = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", CONSTRAINTS, re.MULTILINE)}
    assert (pinned | {"torch"}) - skipped <= rows.keys()
    assert not [name for name, terms in rows.items() if re.search(r"\bA?GPL", terms)]


def test_release_script_examples() -> None:
    assert doctest.testmod(release).failed == 0


def test_citation_has_the_version_of_the_package() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
