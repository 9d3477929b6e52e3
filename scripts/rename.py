"""Convert a tree to the names of the field: modules, settings classes, identifiers, settings keys and options.

    python scripts/rename.py            # the whole tree; needs git, ruff and a clean working tree

Applying it to a tree that still has the old names is deterministic. It is deleted when nothing is left to convert.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path.cwd()
SKIP = (
    "deploy/ray_serve.py",
    "web/node_modules",
    "docs/gallery",
    "web/dist",
    "scripts/rename.py",
    "src/regard/look/static",
)

# ------------------------------------------------------------------------------------------------ modules
TRAIN = {
    "start": "api", "fit": "run", "engine": "step", "tune": "finetune", "parts": "splits",
    "distributed": "distributed.context", "parallel": "distributed.layout", "processes": "distributed.processes",
    "launch": "distributed.launcher", "start_ranks": "distributed.spawn", "worker": "distributed.rank",
    "rendezvous": "distributed.rendezvous",
    "checkpoint": "checkpoint.folder", "sharded_checkpoint": "checkpoint.sharded",
    "first_checkpoint": "checkpoint.initial", "progress": "checkpoint.progress", "average": "checkpoint.average",
    "auto.caption_plan": "recipes.captions", "auto.corpus_plan": "recipes.text",
    "auto.image_gpt_plan": "recipes.image_gpt", "auto.image_plan": "recipes.images",
    "auto.image_tuning_plan": "recipes.finetune_images", "auto.sound_plan": "recipes.audio",
    "auto.sound_tuning_plan": "recipes.finetune_audio", "auto.tuning_plan": "recipes.finetune",
    "auto.recipes": "recipes.sizes", "auto.configure": "recipes.configure",
    "auto.corpus_stats": "recipes.corpus_stats", "auto.hyperparameters": "recipes.hyperparameters",
    "auto.minutes": "recipes.minutes",
}  # fmt: skip
MODULES = {f"regard.train.{old}": f"regard.training.{new}" for old, new in TRAIN.items()} | {
    "regard.config.tuning": "regard.config.finetune",
    "regard.exchange.imported": "regard.exchange.importer",
    "regard.exchange.origin": "regard.exchange.provenance",
    "regard.exchange.huggingface.proof": "regard.exchange.huggingface.verify",
    "regard.data.batches.sounds": "regard.data.batches.audio",
    "regard.data.readers.sounds": "regard.data.readers.audio",
    "regard.pipeline.sound_classifier": "regard.pipeline.audio_classifier",
    "regard.pipeline.sound_input": "regard.pipeline.audio_input",
    "regard.look.reading": "regard.look.model_run",
    "regard.data.doctor.examine": "regard.data.doctor.check",
    "regard.text.codebook": "regard.data.codebook",
    "regard.text.k_means": "regard.data.k_means",
}
PACKAGES = {"regard.train.auto": "regard.training.recipes", "regard.train": "regard.training"}

# ------------------------------------------------------------------------------------------------ settings classes
KEEP = {"SettingsTable", "Setting", "SettingsFile", "ArchitectureRules", "_Described", "Verdict"}
SPECIAL = {
    "Frozen": "SettingsModel", "Consistent": "CheckedSettings", "Classes": "ClassificationHeadConfig",
    "Tags": "TaggingHeadConfig", "Pixels": "PatchHeadConfig", "Plain": "FeedForwardConfig", "Gated": "GLUConfig",
    "Model": "BaseModelConfig", "TokenizerSettings": "TokenizerConfig", "Normalise": "NormalizeConfig",
    "Tuning": "FinetuneConfig", "AdapterFile": "AdapterConfig", "ServeSettings": "ServeConfig",
    "Sounds": "AudioConfig", "Verdict": "Exportability",
    # unions
    "FeedForward": "AnyFeedForwardConfig", "Norm": "NormConfig", "Position": "PositionConfig", "Score": "ScoreConfig",
    "RecurrentMemory": "RecurrentMemoryConfig", "AnyStack": "AnyStackConfig", "AnyCrossStack": "AnyCrossStackConfig",
    "AnyHead": "AnyHeadConfig", "Initial": "InitialConfig", "Input": "InputConfig", "AnyModel": "AnyModelConfig",
    "Optimizer": "OptimizerConfig", "Schedule": "ScheduleConfig", "Spikes": "SpikesConfig",
    "AnySource": "AnySourceConfig", "AnyTokenizer": "AnyTokenizerConfig", "RunTokenizer": "RunTokenizerConfig",
}  # fmt: skip
SETTINGS_MODULES = ["parts", "inputs", "model", "training", "run", "sources", "tokenizers", "tuning", "exportable"]


def settings_classes() -> dict[str, dict[str, str]]:
    """Return, for each settings module, its old class names with the new ones, of the tree as it is."""
    names: dict[str, dict[str, str]] = {}
    for path in [*(f"config/{m}" for m in SETTINGS_MODULES), "serve/settings"]:
        file = ROOT / "src/regard" / f"{path}.py"
        if not file.exists():
            continue
        table = names.setdefault("regard." + path.replace("/", "."), {})
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and (node.name not in KEEP or node.name in SPECIAL):
                if not node.name.startswith("_") and not node.name.endswith("Config"):
                    table[node.name] = SPECIAL.get(node.name, f"{node.name}Config")
            if isinstance(node, ast.Assign) and isinstance(name := node.targets[0], ast.Name) and name.id in SPECIAL:
                table[name.id] = SPECIAL[name.id]
    everything = {old: new for table in names.values() for old, new in table.items()}
    for module in list(names):  # modules that export classes of others again
        if module.startswith("regard.config"):
            names[module] = {k: v for k, v in everything.items() if k not in ("Limits", "Queue", "Deadlines")}
    return names


class Edits:
    """Replacements in one text by (line, column) spans of `ast`."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self.items: set[tuple[int, int, int, int, str]] = set()

    def replace(self, node: ast.AST, new: str) -> None:
        self.items.add((node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, new))  # type: ignore

    def apply(self) -> str:
        for line, column, end_line, end_column, new in sorted(self.items, reverse=True):
            first = self.lines[line - 1].encode()
            last = self.lines[end_line - 1].encode()
            joined = first[:column] + new.encode() + last[end_column:]
            self.lines[line - 1 : end_line] = [joined.decode()]
            if end_line != line:  # keep the numbering of earlier lines
                self.lines[line:line] = []
        return "".join(self.lines)


def convert_classes(text: str, own: str, names: dict[str, dict[str, str]], where: str) -> str:
    """Rename settings classes in Python code, by what its imports bind."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    edits, local, aliases = Edits(text), dict(names.get(own, {})) if own in names else {}, {}
    is_own = bool(local)
    imported_elsewhere = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in names:
            for alias in node.names:
                new = names[node.module].get(alias.name)
                if new:
                    local[alias.asname or alias.name] = new
                    edits.replace(alias, new)
        elif isinstance(node, ast.ImportFrom) and node.module in ("regard.config", "regard.serve"):
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                if module in names:
                    aliases[alias.asname or alias.name] = (module, node)
        elif isinstance(node, ast.ImportFrom):
            imported_elsewhere |= {a.asname or a.name for a in node.names}
    if is_own:
        local = {k: v for k, v in local.items() if k not in imported_elsewhere}
    direct: dict[str, set[str]] = {}
    quoted, exported = set(), set()
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            exported |= {id(inner) for inner in ast.walk(node.value)}
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if (annotation := getattr(node, field, None)) is not None:
                quoted |= {id(inner) for inner in ast.walk(annotation)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in local:
            edits.replace(node, local[node.id])
        elif isinstance(node, ast.ClassDef) and is_own and node.name in local:
            line = text.splitlines()[node.lineno - 1]
            start = line.index(node.name, node.col_offset)
            edits.items.add((node.lineno, start, node.lineno, start + len(node.name), local[node.name]))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            module, _ = aliases[node.value.id]
            new = names[module].get(node.attr, node.attr)
            if node.value.id in ("settings_of", "config"):
                direct.setdefault(node.value.id, set()).add(new)
                edits.replace(node, new)
            elif new != node.attr:
                edits.items.add(
                    (node.end_lineno, node.end_col_offset - len(node.attr), node.end_lineno, node.end_col_offset, new)
                )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value in local
            and id(node) in exported
        ):
            edits.replace(node, f'"{local[node.value]}"')
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # annotations in quotes
            if (id(node) in quoted or "|" in node.value or "[" in node.value) and (
                re.fullmatch(r"[\w\[\], |.]+", node.value)
                and any(re.search(rf"\b{k}\b", node.value) for k in local if k[0].isupper())
            ):
                new = re.sub(r"\b\w+\b", lambda m: local.get(m[0], m[0]), node.value)
                edits.replace(node, f'"{new}"')
    for alias, used in direct.items():
        module, node = aliases[alias]
        edits.replace(node, f"from {module} import {', '.join(sorted(used))}")
    return edits.apply()


def convert_doctests(text: str, known: dict[str, str]) -> str:
    """Rename settings classes on the lines of doctests: imports, calls, and results."""
    pattern = re.compile(rf"\b({'|'.join(known)})\b(?=\(|, |$)")

    def convert(match: re.Match[str]) -> str:
        line = match[0]
        if re.search(r"import", line) and "regard.config" not in line and "regard.serve" not in line:
            return line
        return pattern.sub(lambda m: known[m[1]], line)

    return re.sub(r"^\s*(>>>|\.\.\.) .*$", convert, text, flags=re.M)


# ------------------------------------------------------------------------------------------------ modules in Python
def convert_module_imports(text: str) -> str:
    """Rewrite `from package import module` for modules that moved, and the uses of the names that it binds."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    edits, renamed = Edits(text), {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        lines, kept = [], []
        for alias in node.names:
            new = MODULES.get(f"{node.module}.{alias.name}")
            if new is None or alias.name == "examine":  # a function of this name, which the package exports
                kept.append(alias)
                continue
            package, name = new.rsplit(".", 1)
            if alias.asname is None and name != alias.name:
                renamed[alias.name] = name
            bound = f" as {alias.asname}" if alias.asname else ""
            lines.append(f"from {package} import {name}{bound}")
        if lines:
            if kept:
                names = ", ".join(a.name + (f" as {a.asname}" if a.asname else "") for a in kept)
                lines.append(f"from {node.module} import {names}")
            edits.replace(node, ("\n" + " " * node.col_offset).join(lines))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in renamed:
            edits.replace(node, renamed[node.id])
    return edits.apply()


def convert_paths(text: str) -> str:
    """Rewrite dotted names and paths of modules that moved."""
    for old, new in sorted(MODULES.items(), key=lambda item: -len(item[0])):
        text = re.sub(rf"\b{re.escape(old)}\b(?!\()", new, text)
        path_old, path_new = old.replace(".", "/"), new.replace(".", "/")
        text = re.sub(rf"\b{path_old}\.py\b", f"{path_new}.py", text)
        short_old, short_new = path_old.removeprefix("regard/"), path_new.removeprefix("regard/")
        text = re.sub(rf"(?<![\w/]){short_old}\.py\b", f"{short_new}.py", text)
        test_old, test_new = test_path(old), test_path(new)
        text = re.sub(rf"\b{re.escape(test_old)}\b", test_new, text)
        dotted_old, dotted_new = (p.removesuffix(".py").replace("/", ".") for p in (test_old, test_new))
        text = re.sub(rf"\b{re.escape(dotted_old)}\b", dotted_new, text)
    text = re.sub(r"\bregard\.train\.auto\b", "regard.training.recipes", text)
    text = re.sub(r"\bregard\.train\.(?=[a-z_])", "regard.training.", text)
    text = re.sub(r"\bfrom regard\.train import\b", "from regard.training import", text)
    text = re.sub(r"\bregard/train/auto\b", "regard/training/recipes", text)
    text = re.sub(r"\bregard/train/", "regard/training/", text)
    text = re.sub(r"(?<![\w/.-])train/auto/", "training/recipes/", text)
    text = re.sub(r"(?<![\w/.-])train/(?=\w+\.py)", "training/", text)
    text = text.replace('"train.start"', '"training.api"')
    text = re.sub(r"\btests/train\b(?=[/` ])", "tests/training", text)
    text = re.sub(r"\btests\.train\b", "tests.training", text)
    return text


def test_path(module: str) -> str:
    parts = module.removeprefix("regard.").split(".")
    return "/".join(["tests", *parts[:-1], f"test_{parts[-1]}.py"])


def move(old: Path, new: Path) -> None:
    if not old.exists():
        return
    new.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "mv", old, new], check=True)


def move_modules() -> None:
    pending = []
    for old, new in MODULES.items():
        source = ROOT / "src" / (old.replace(".", "/") + ".py")
        pending.append((source, ROOT / "src" / (new.replace(".", "/") + ".py")))
        pending.append((ROOT / test_path(old), ROOT / test_path(new)))
    # Two steps, because some new names are old names of other modules.
    staged = [(old.with_suffix(".moving"), new) for old, new in pending if old.exists()]
    for old, _ in pending:
        move(old, old.with_suffix(".moving"))
    for old, new in staged:
        move(old, new)
    for top in ("src/regard", "tests"):
        folder = ROOT / top / "train"
        for file in sorted(folder.rglob("*")) if folder.exists() else []:
            if file.is_file() and "__pycache__" not in file.parts:
                rest = file.relative_to(folder).as_posix()
                rest = re.sub(r"^auto/", "recipes/", rest)
                move(file, ROOT / top / "training" / rest)
    for package, words in (
        ("training/checkpoint", "Checkpoints: what a run saves, and what it averages, publishes and resumes from."),
        ("training/distributed", "Several ranks that train one model: launching them, sharing the model, collectives."),
    ):
        init = ROOT / "src/regard" / package / "__init__.py"
        if (init.parent).exists() and not init.exists():
            init.write_text(f'"""{words}"""\n')
        tests = ROOT / "tests" / package / "__init__.py"
        if tests.parent.exists() and not tests.exists():
            tests.write_text(f'"""Tests of `regard.{package.replace("/", ".")}`."""\n')


# ------------------------------------------------------------------------------------------------ the tree
def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    return [Path(n) for n in names.stdout.splitlines() if not n.startswith(SKIP) and Path(n).is_file()]


def python_blocks(text: str, convert) -> str:
    """Apply a conversion to the Python blocks of a Markdown page."""
    return re.sub(r"(```python\n)(.*?)(```)", lambda m: m[1] + convert(m[2]) + m[3], text, flags=re.S)


def main() -> int:
    names = settings_classes()
    stages = sys.argv[1:] or ["classes", "modules", "words"]
    if "classes" in stages:
        for path in tracked():
            if path.suffix not in (".py", ".md"):
                continue
            text = path.read_text()
            own = ".".join(path.with_suffix("").parts[1:]) if path.parts[0] == "src" else ""
            if path.suffix == ".py":
                new = convert_classes(text, own, names, str(path))
            else:
                new = python_blocks(text, lambda code: convert_classes(code, "", names, str(path)))
            if not str(path).startswith(("src/regard/nn/", "src/regard/models/", "src/regard/decode/", "docs/core")):
                new = convert_doctests(new, names["regard.config.run"])
            if new != text:
                path.write_text(new)
    if "modules" in stages:
        move_modules()
        for path in tracked():
            if path.suffix in (".png", ".gz", ".safetensors", ".zst", ".wav"):
                continue
            try:
                text = path.read_text()
            except UnicodeDecodeError:
                continue
            new = convert_module_imports(text) if path.suffix == ".py" else text
            if path.suffix == ".md":
                new = python_blocks(text, convert_module_imports)
            new = convert_paths(new)
            if new != text:
                path.write_text(new)
    subprocess.run(
        [sys.executable, "-m", "ruff", "check", "-q", "--select", "I,F401,RUF022", "--fix", "--unsafe-fixes", "."],
        check=False,
    )
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", "."], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
