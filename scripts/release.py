"""Build the files of a release, and the two committed files that list the dependencies.

    python scripts/release.py constraints         # write constraints.txt; needs uv and the network
    python scripts/release.py licenses            # write docs/reference/licenses.md; needs all extras
    python scripts/release.py build               # dist/: sdist and wheel; needs hatchling
    python scripts/release.py environment FOLDER  # a virtual environment: constraints.txt and the wheel of dist/
    python scripts/release.py sbom FOLDER         # dist/: CycloneDX file of that environment; needs cyclonedx-bom
    python scripts/release.py checksums           # dist/SHA256SUMS

constraints.txt has a sha256 for every file of every dependency. PyTorch is not in it, nor are the GPU libraries that
PyTorch brings: its CPU and CUDA builds have different files, so it is installed first.
"""

import hashlib
import json
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Set
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
TORCH = "2.13.0"
EXTRAS = ("serve", "ctranslate2", "formats", "images", "audio", "hub")  # of the container, too
PLATFORM_PACKAGES = re.compile(r"(torch|triton|nvidia-|cuda-)")  # installed with PyTorch
HEADER = f"""\
# Versions of the dependencies, with the sha256 of their files. Written by: python scripts/release.py constraints
#   pip install torch=={TORCH}    # or another build of it
#   pip install --require-hashes --no-deps -r constraints.txt
#   pip install --no-deps regard-0.1.0-py3-none-any.whl
# It covers Python 3.11 to 3.14 on Linux, macOS and Windows, and these extras: {", ".join(EXTRAS)}.
"""
PACKAGE = re.compile(r"^[\w.-]+==.*?(?=^[\w.-]+==|\Z)", re.MULTILINE | re.DOTALL)
LICENSE_NAMES = {  # what packages write in their metadata: the SPDX identifier
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
MIT_GRANT = "Permission is hereby granted, free of charge, to any person obtaining a copy"
LICENSES_PAGE = """\
# Licenses

Regard has the license Apache-2.0. `python scripts/release.py licenses FOLDER` writes this page.

## Files in the package

| files | origin | license |
|---|---|---|
| `assets/demo/*.gz` | sentence pairs of tatoeba.org, by manythings.org/anki | CC BY 2.0 (France) |
| `exchange/argos/sentences.onnx` | written by `scripts/make_argos_sentences.py` | Apache-2.0 |
| `*/static` | built from `web/`, without code of others | Apache-2.0 |
| `assets/lectures` | trained on generated sentences | Apache-2.0 |

## Dependencies

The packages that Regard and its extras install on Linux with Python {python}, except `dev` and `bench`, without the GPU
libraries of PyTorch's CUDA build.

| package | version | license |
|---|---|---|
"""


def main() -> None:
    """Run one step."""
    match sys.argv[1:]:
        case ["constraints"]:
            write_constraints()
        case ["environment", folder]:
            make_environment(Path(folder))
        case ["licenses"]:
            write_licenses()
        case ["build"]:
            build()
        case ["sbom", folder]:
            write_sbom(Path(folder))
        case ["checksums"]:
            write_checksums()
        case _:
            sys.exit(__doc__)


def write_constraints() -> None:
    """Resolve the dependencies for all platforms and write constraints.txt."""
    command = ["uv", "pip", "compile", "pyproject.toml", "--universal", "--python-version", "3.11", "--no-header"]
    command += ["--generate-hashes", "--no-annotate", "--quiet", "--constraint", "-"]
    command += [argument for extra in EXTRAS for argument in ("--extra", extra)]
    text = run(command, f"torch=={TORCH}\n")
    kept = [package for package in PACKAGE.findall(text) if not PLATFORM_PACKAGES.match(package)]
    (ROOT / "constraints.txt").write_text(HEADER + "".join(kept), encoding="utf-8", newline="\n")


def make_environment(folder: Path) -> None:
    """Install the wheel of dist/ with the dependencies of constraints.txt."""
    run([sys.executable, "-m", "venv", str(folder)])
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    run([*pip, f"torch=={TORCH}"])
    run([*pip, "--require-hashes", "--no-deps", "-r", "constraints.txt"])
    run([*pip, "--no-deps", str(find_wheel())])


def write_licenses() -> None:
    """Write the page of licenses from the metadata of the installed packages."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    lines = []
    for name in sorted(find_dependencies("regard", extras.keys() - {"dev", "bench"})):
        metadata: dict[str, Any] = distribution(name).metadata.json
        terms = choose_license(metadata) or read_license(distribution(name))
        lines.append(f"| {name} | {metadata['version'].partition('+')[0]} | {terms} |")
    page = LICENSES_PAGE.format(python=".".join(platform.python_version_tuple()[:2])) + "\n".join(lines) + "\n"
    (ROOT / "docs" / "reference" / "licenses.md").write_text(page, encoding="utf-8", newline="\n")


def find_dependencies(package: str, extras: Set[str]) -> set[str]:
    """Return the installed packages that a package needs, directly or not."""
    found: set[str] = set()
    waiting = [(package, frozenset(extras))]
    while waiting:
        name, chosen = waiting.pop()
        for text in distribution(name).requires or []:
            requirement = Requirement(text)
            if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in {"", *chosen}):
                continue
            needed = canonicalize_name(requirement.name)
            if needed not in found:
                found.add(needed)
                waiting.append((needed, frozenset(requirement.extras)))
    return found


def choose_license(metadata: Mapping[str, Any]) -> str:
    """Return the SPDX expression of a package: as it states it, else from its classifiers, else from its license field.

    >>> choose_license({"license": "MIT", "classifier": ["License :: OSI Approved :: Apache Software License"]})
    'Apache-2.0'
    """
    if expression := metadata.get("license_expression"):
        return str(expression)
    names = [line.rpartition(" :: ")[2] for line in metadata.get("classifier", []) if line.startswith("License ::")]
    names = [name for name in names if name != "OSI Approved"]
    text = metadata.get("license", "").strip()
    if not names and text and len(text) < 60:
        names = [text]
    return " AND ".join(sorted({LICENSE_NAMES.get(name, name) for name in names}))


def read_license(package: Distribution) -> str:
    """Return the license of a package that names none in its metadata, from the text of its license file."""
    texts = [path.read_text() for path in package.files or () if "license" in path.name.lower()]
    if any(MIT_GRANT in " ".join(text.split()) for text in texts):
        return "MIT"
    sys.exit(f"{package.metadata['Name']} names no license. Look at its files and extend LICENSE_NAMES.")


def build() -> None:
    """Build sdist and wheel in dist/."""
    for target in ("sdist", "wheel"):
        run([sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(DIST)])
    for path in sorted(DIST.glob("regard-*")):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


def write_sbom(folder: Path) -> None:
    """Write the bill of materials of an environment."""
    out = DIST / f"{find_wheel().name.removesuffix('-py3-none-any.whl')}.cdx.json"
    command = [sys.executable, "-m", "cyclonedx_py", "environment", str(folder / "bin" / "python")]
    command += ["--pyproject", "pyproject.toml", "--mc-type", "library", "--output-reproducible", "-o", str(out)]
    run(command)
    components = json.loads(out.read_text(encoding="utf-8"))["components"]
    print(f"{out.name}: {len(components)} components")


def write_checksums() -> None:
    """Write the sha256 of every file in dist/, in the format of `sha256sum`."""
    paths = [path for path in sorted(DIST.iterdir()) if path.name != "SHA256SUMS" and not path.name.startswith(".")]
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths]
    (DIST / "SHA256SUMS").write_text("".join(lines), encoding="utf-8", newline="\n")
    print("".join(lines), end="")


def find_wheel() -> Path:
    """Return the wheel in dist/ of the version of this checkout."""
    name = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]
    wheels = sorted(DIST.glob(f"{name}-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"Expected one wheel in {DIST}, found {len(wheels)}. Run: python scripts/release.py build")
    return wheels[0]


def run(command: list[str], text: str | None = None) -> str:
    """Run a command in the repository and return what it prints."""
    done = subprocess.run(command, cwd=ROOT, input=text, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    return done.stdout


if __name__ == "__main__":
    main()
