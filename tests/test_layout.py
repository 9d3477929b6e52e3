"""Tests mirror the source: the tests of decode/beam.py are in tests/decode/test_beam.py.

A test file of several modules is in `CROSS_CUTTING`, with what it tests. Modules do not import each other in a circle.
"""

import re
from pathlib import Path

from scripts.check_circles import find_circle, find_faults, read_python_imports, read_typescript_imports

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src/regard"
TEST_IMPORT = re.compile(
    r"^ *(?:(?:from|import) tests[\w.]*\.test_\w+|from tests[\w.]* import .*\btest_\w+).*", re.MULTILINE
)
CROSS_CUTTING_FOLDERS = {
    "examples": "the programs and run files of examples/",
    "faults": "kills, full disks and damaged files during training",
    "fuzz": "mutated files of every format",
    "hostile": "files that attack the reader",
    "load": "a server under load",
    "matrix": "properties of every model family and option",
    "mutants": "small defects that a test must find",
}
CROSS_CUTTING = {
    "test_names.py": "old names that must not come back, and class names that are defined twice",
    "cli/test_first_run.py": "from files to an output with the first commands of the README",
    "cli/test_mistakes.py": "likely mistakes with every command",
    "cli/test_recurrent.py": "every command with a recurrent model",
    "cli/test_refusals.py": "wrong paths of every command, without importing torch",
    "data/doctor/test_planted_defects.py": "planted defects and how many of them the check finds",
    "data/readers/test_defects.py": "the same defects in every format",
    "data/readers/test_round_trip.py": "the same examples in every format",
    "documents/test_round_trip.py": "files of every format with an identity model",
    "decode/test_networks.py": "every search on real networks",
    "decode/test_oracle.py": "every search compared with exhaustive search",
    "exchange/test_claims.py": "claims of exportability compared with the parity cases",
    "exchange/test_decoding.py": "the same outputs as transformers for every architecture",
    "exchange/test_torch_nn.py": "the same numbers as the stacks of torch.nn",
    "lectures/test_make_model.py": "the preset `lecture` compared with the lecture's code",
    "lectures/test_notebooks.py": "docs/lectures/notebooks",
    "lectures/test_numbers.py": "numbers of the slides, computed by Regard's attention",
    "lectures/test_parameters.py": "numbers of parameters that the slides state",
    "lectures/test_recurrent.py": "attention over recurrent states, step by step",
    "exchange/test_presets.py": "presets compared with the published models",
    "exchange/test_transformers_parity.py": "the same numbers as transformers for every architecture",
    "look/test_gallery.py": "the gallery of the documentation",
    "models/test_module_changes.py": "changed modules change every task",
    "tasks/test_path.py": "the files that one text passes through",
    "tasks/test_rows.py": "rows of every task of text",
    "plugin/test_plugins.py": "tasks of two other packages",
    "serve/test_adapters.py": "adapters in every protocol",
    "serve/test_attacks.py": "attacks on a running server",
    "serve/test_deploy.py": "the files of deploy/",
    "serve/test_hostile.py": "hostile clients of a running server",
    "serve/test_nginx.py": "the server behind nginx",
    "serve/test_operations.py": "many clients of a running server",
    "test_bench_all.py": "the list of benchmarks",
    "test_fetch_corpora.py": "the corpora of the benchmarks",
    "test_bench_marian.py": "the benchmark against Marian",
    "test_contributing.py": "CONTRIBUTING.md",
    "test_docs.py": "the code blocks of the documentation",
    "test_layout.py": "this file",
    "test_lectures.py": "docs/lectures/coverage.md",
    "test_package.py": "imports, types and the release",
    "test_notebooks.py": "docs/notebooks",
    "test_portable.py": "commands with the limits of Windows",
    "test_release.py": "the files of a release: package, dependencies, community files",
    "plan/test_large_models.py": "bench/plan.py and its table in docs/guides/plan.md",
    "test_results.py": "the committed results",
    "test_site.py": "the website that scripts/build_site.py builds",
    "test_workflows.py": ".github/workflows",
    "test_sample_sentences.py": "scripts/sample_sentences.py",
    "text/test_tokenizer_json.py": "the file of every kind of tokenizer",
    "training/distributed/test_recipes.py": "the Slurm recipe of docs/guides/distributed.md, and deploy/jobset.yaml",
    "training/test_captions.py": "captions from files to a model",
    "training/test_image_gpt.py": "pixels from files to a generator",
    "training/test_images.py": "images from files to a model",
    "training/test_masking.py": "masking settings from a run file to the rows",
    "training/test_media.py": "what holds for runs on images and on audio",
    "training/test_ranks.py": "several ranks train like one",
    "training/test_run_state.py": "run folders in every state",
    "training/test_audio.py": "audio from files to a model",
    "training/test_stops.py": "stops at every place leave no trace",
    "training/test_teacher_forcing.py": "docs/lectures/teacher-forcing.md",
    "training/test_tune_imported.py": "imported models are tuned",
    "training/test_word2vec.py": "word2vec from a run file to neighbors",
}


def find_test_files() -> list[str]:
    return sorted(path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py"))


def find_mirrored_files() -> set[str]:
    modules = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return {(module.parent / f"test_{module.name}").as_posix() for module in modules}


def test_test_file_mirrors_a_module_or_is_listed() -> None:
    mirrored = find_mirrored_files()
    strangers = [
        name
        for name in find_test_files()
        if name not in mirrored and name not in CROSS_CUTTING and name.split("/")[0] not in CROSS_CUTTING_FOLDERS
    ]
    assert strangers == [], "name each after the module that it tests, or say in CROSS_CUTTING what it tests"


def test_cross_cutting_files_exist_and_mirror_no_module() -> None:
    assert set(CROSS_CUTTING) <= set(find_test_files()) - find_mirrored_files()
    assert all((TESTS / folder).is_dir() and not (SOURCE / folder).exists() for folder in CROSS_CUTTING_FOLDERS)


def test_test_modules_import_no_test_module() -> None:
    found = [
        f"{path.relative_to(TESTS)}: {line}"
        for path in TESTS.rglob("*.py")
        for line in TEST_IMPORT.findall(path.read_text(encoding="utf-8"))
        if path.stem not in line  # a test may start a process that imports the test's own module
    ]
    assert found == [], "move what both need to a factory module or a fixture"


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert find_faults() == []


def test_check_circles_finds_imports_in_functions_but_not_for_type_checkers(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/__init__.py").write_text("")
    (tmp_path / "p/a.py").write_text("from p import b\n")
    (tmp_path / "p/b.py").write_text("if TYPE_CHECKING:\n    from p.a import x\n")
    assert find_circle(read_python_imports(tmp_path)) == []
    (tmp_path / "p/b.py").write_text("def f():\n    from p.a import x\n")
    assert find_circle(read_python_imports(tmp_path)) in (["p.a", "p.b", "p.a"], ["p.b", "p.a", "p.b"])


def test_check_circles_reads_typescript(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "a.ts").write_text('import {\n  b,\n} from "./run/b.ts";\nimport "other";\n')
    (tmp_path / "run/b.ts").write_text('export type { a } from "../a.ts";\n')
    assert read_typescript_imports(tmp_path) == {"a.ts": {"run/b.ts"}, "run/b.ts": {"a.ts"}}
