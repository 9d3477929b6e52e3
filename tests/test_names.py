"""Old names that a class, function, module, setting, option or command must not bring back."""

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from scripts.check_classes import find_duplicates
from scripts.count_dispatch import HOME, count_sites, find_sites

from regard.config.reference import iter_tables
from regard.config.task_spec import SPECS

REPOSITORY = Path(__file__).parents[1]
SOURCE = REPOSITORY / "src" / "regard"
CLASSES = """
    Frozen Consistent Classes Tags Pixels Plain Gated ServeSettings TokenizerSettings Tuning AdapterFile
    ProcessGroup UpdatePlan CorpusPlan Update UpdateStats Updater Updated Origin Passage Reading Guard Diagnosis
    TrainingVerdict Verdict Journal NoJournal Sound SoundClassifier
""".split()  # noqa: SIM905 - one word per name
FUNCTIONS = """
    decide decide_patiently gather_patiently arrange leading follow to_ours to_theirs prove examine judge seal
    hide_backup is_leftover spell only_if answer_errors refuse_early is_grave_leak load_sound_classifier is_packed
""".split()  # noqa: SIM905 - one word per name
MODULES = """
    train auto start fit engine parallel start_ranks launch worker sharded_checkpoint first_checkpoint imported
    origin proof sounds sound_classifier sound_input reading examine tuning
""".split()  # noqa: SIM905 - one word per name
SETTINGS = """
    width placement clip peak keep every back accumulate deviation updates max_updates update_tokens suppressed
    suppressed_first tuning
""".split()  # noqa: SIM905 - one word per name
OPTIONS = ["updates", "update-tokens", "sounds", "into", "with", "max-length"]
TASKS = ("continue", "fill", "restore")


def find_definitions(code: str, keyword: str, names: Sequence[str]) -> list[str]:
    """Return those of the names that a class (keyword "class") or function ("def") has."""
    if not re.search(rf"\b{keyword}\s+({'|'.join(names)})\b", code):
        return []  # parsing all files takes seconds
    kinds = {"class": (ast.ClassDef,), "def": (ast.FunctionDef, ast.AsyncFunctionDef)}[keyword]
    return [node.name for node in ast.walk(ast.parse(code)) if isinstance(node, kinds) and node.name in names]


def test_old_class_and_function_names_are_gone() -> None:
    for path in SOURCE.rglob("*.py"):
        code = path.read_text(encoding="utf-8")
        assert find_definitions(code, "class", CLASSES) == [], path
        assert find_definitions(code, "def", FUNCTIONS) == [], path


def test_definitions_are_found_but_not_their_names_in_texts() -> None:
    code = "class A:\n    async def f(self): ...\n'class B, def g'\n"
    assert find_definitions(code, "class", ["A", "B"]) == ["A"]
    assert find_definitions(code, "def", ["f", "g"]) == ["f"]


def test_old_module_names_are_gone() -> None:
    stems = {path.stem for path in SOURCE.rglob("*.py")} | {path.name for path in SOURCE.rglob("*") if path.is_dir()}
    assert set(MODULES) & stems <= {"train"}  # cli/train.py is the command


def test_old_settings_and_tasks_are_gone() -> None:
    names = {setting.path.rpartition(".")[2] for table in iter_tables() for setting in table.settings}
    assert "d_model" in names
    assert names.isdisjoint(SETTINGS)
    tasks = set(SPECS)
    assert "causal_lm" in tasks
    assert tasks.isdisjoint(TASKS)


def test_old_options_are_named_nowhere() -> None:
    pattern = re.compile(rf"(?<![\w-])--({'|'.join(OPTIONS)})(?![\w-])")
    files = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md"), *SOURCE.rglob("*.py")]
    found = [path.name for path in files if pattern.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_class_name_is_defined_once() -> None:
    assert find_duplicates() == {}


def test_few_places_test_which_task_family_or_pipeline_they_have() -> None:
    counts, lines = count_sites()
    elsewhere = [line for line in lines if not line.startswith((*HOME, "tasks"))]
    assert counts["tasks"] <= 30
    assert len(elsewhere) <= 40, "\n".join(elsewhere)


def test_tests_of_kinds_are_counted() -> None:
    code = "isinstance(x, Translator); x.task == 'tagging'; x.kind in ('tags', 'b'); y == 'tags'"
    assert len(list(find_sites(ast.parse(code)))) == 3
