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
        elif isinstance(node, ast.ImportFrom) and f"{node.module}." in {n[: n.rindex(".") + 1] for n in names}:
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
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) and is_own and node.name in local and node in tree.body:
            line = text.splitlines()[node.lineno - 1]
            start = line.index(node.name, node.col_offset + 4)
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
                re.fullmatch(r"[\w\[\], |.]+", node.value) and any(re.search(rf"\b{k}\b", node.value) for k in local)
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


# ------------------------------------------------------------------------------------------------ words
IDENTIFIERS = {
    # ranks
    "ProcessGroup": "DistributedContext", "decide": "broadcast", "arrange": "init_device_mesh",
    "leading": "run_rank_zero", "follow": "run_worker_rank", "only_main": "on_rank_zero", "can_tune": "can_autotune",
    # one meaning per word
    "UpdatePlan": "StepSchedule", "CorpusPlan": "CorpusRecipe", "UpdateStats": "StepStats", "Update": "StepBatches",
    "Updater": "StepRunner", "IdleUpdater": "IdleStepRunner", "Updated": "StepFinished", "UpdateTimer": "StepTimer",
    "make_updated": "make_step_finished", "make_idle_updater": "make_idle_step_runner", "updater": "step_runner",
    # exchange
    "to_ours": "to_regard", "to_theirs": "to_hf", "our_copies": "regard_copies", "their_copies": "hf_copies",
    "Origin": "Provenance", "read_origin": "read_provenance",
    # look
    "telling": "interest", "untold_cells": "ignored_cells", "Passage": "ReplayInput", "Reading": "ModelRun",
    "ReadOptions": "RunOptions",
    # serve
    "Guard": "SecurityMiddleware", "_Shortcut": "DirectRouteMiddleware", "_Observer": "AccessLogMiddleware",
    "answer_errors": "http_errors", "refuse_early": "is_queue_full",
    # doctor
    "TrainingVerdict": "TrainingCheckResult", "judge": "classify_language", "Diagnosis": "CorpusReport",
    "diagnosis": "corpus_report", "examine": "check_corpus", "quarantine": "rejected", "is_grave_leak": "is_severe_leak",
    # files and settings
    "_Described": "_DescribedTables", "seal": "write_manifest", "hide_backup": "backup_path",
    "is_leftover": "is_temporary", "Journal": "JsonlWriter", "NoJournal": "NullWriter", "spell": "format_option",
    "only_if": "enabled", "sink": "absorbing_token",
    "suppressed_first": "begin_suppress_tokens", "suppressed": "suppress_tokens", "normalise": "normalize", "placement": "norm_order",
    "tuning": "finetune", "what": "message", "fix": "hint", "accumulate": "gradient_accumulation",
    # audio
    "Sound": "AudioClip", "AnySound": "AnyAudio", "sound": "clip", "sounds": "audio", "as_sounds": "as_audio", "read_sound": "load_audio", "read_sounds": "read_audio",
    "SoundClassifier": "AudioClassifier",
}  # fmt: skip
KEEP_NAMES = {"_update_digest", "_update_paths", "updated", "_updated"}
NEW_TOKENS = (  # where `max_length` limits generated tokens
    "src/regard/pipeline", "src/regard/decode", "src/regard/serve", "src/regard/look", "src/regard/cli/look",
    "src/regard/cli/predict", "src/regard/cli/translate", "src/regard/cli/demo", "src/regard/cli/generate",
    "src/regard/cli/search_options", "src/regard/cli/evaluat", "src/regard/exchange/parity",
    "src/regard/exchange/ctranslate2", "src/regard/exchange/argos", "src/regard/exchange/onnx/runner",
    "src/regard/exchange/huggingface/verify", "src/regard/training/validate", "src/regard/training/distill",
    "src/regard/training/teachers", "tests/pipeline", "tests/decode", "tests/serve", "tests/look",
    "tests/models/test_module_changes", "tests/cli/test_tr", "tests/cli/test_look", "tests/cli/test_predict",
    "tests/cli/test_gen", "tests/load", "tests/training/test_captions", "tests/training/test_audio",
    "bench/decode", "bench/cache_growth", "bench/searches", "bench/serving", "bench/engine", "bench/look", "examples/",
)  # fmt: skip
NOT_IN = {
    "suppressed": ("src/regard/look", "tests/look"),
    "sink": ("src/regard/data", "tests/data"), "spell": ("examples",), "judge": ("examples", "tests/cli/test_serve"),
    "normalise": (), "fix": (), "what": ("tests/hostile",),
}  # fmt: skip
ATTRIBUTES = {"sound": "audio"}  # after a dot


QUALIFIED = {  # classes and functions of one module, followed through imports
    "regard.plan.layouts": {"Candidate": "LayoutCandidate"},
    "regard.pipeline.fill_mask": {"Candidate": "FillCandidate"},
    "regard.decode.trace": {"Candidate": "TraceCandidate", "SamplingStep": "SamplingTraceStep"},
    "regard.exchange.mapping": {"Chunk": "TensorChunk", "Rule": "MappingRule"},
    "regard.data.shards.prepare": {"Chunk": "ShardChunk"},
    "regard.look.document": {
        "Hypothesis": "HypothesisJson", "Sampling": "SamplingJson", "SamplingStep": "SamplingStepJson",
        "Search": "SearchJson",
    },
    "regard.look.statistics": {"Layout": "GroupRows"},
    "regard.training.distributed.layout": {"Layout": "ParallelLayout"},
    "regard.text.ngrams": {"Order": "NgramOrder"},
    "regard.nn.scores": {"Score": "ScoreFunction"},
    "regard.training.api": {"Plan": "RunPreview", "make_plan": "preview_run"},
    "regard.decode.diverse": {"_Group": "_BeamGroup"},
    "regard.decode.beam": {"_Search": "_BeamState"},
    "regard.training.distill": {"_Group": "_SourceGroup"},
    "regard.serve.openai": {"_Job": "_CompletionJob"},
    "regard.serve.libretranslate": {"_Job": "_TranslationJob"},
    "regard.serve.state": {"check": "validate"},
    "regard.exchange.gguf.format": {"_Parser": "_GgufParser"},
    "regard.data.readers.jsonl": {"_Parser": "_JsonParser"},
    "regard.exchange.ctranslate2": {"_Writer": "_SpecWriter"},
    "regard.training.checkpoint.sharded": {"_Writer": "_ShardWriter"},
    "regard.look.model_run": {"read_text": "run_text"},
    "regard.exchange.huggingface.verify": {"prove": "verify_export"},
}  # fmt: skip
MICRO = (
    "src/regard/training/step",
    "src/regard/training/trainer",
    "src/regard/training/run",
    "tests/training/test_step",
    "src/regard/training/checkpoint/progress",
    "tests/training/test_trainer",
    "src/regard/store/run_folder",
    "tests/store/test_run_folder",
)
SPLITS = ("src/regard/training/splits", "src/regard/training/data")
BATCHES = (
    "src/regard/data/batches/",
    "tests/data/batches/",
    "src/regard/training/batches",
    "src/regard/training/trainer",
    "bench/",
)
BY_PATH = [
    ("parts", "micro_batches", MICRO), ("_read_parts", "_read_micro_batches", MICRO),
    ("batch_parts", "batch_rows", MICRO),
    ("parts", "splits", SPLITS), ("_write_parts", "_write_splits", SPLITS), ("PartExamples", "SplitExamples", ("src", "tests")),
    ("is_packed", "packs_sequences", ("src/regard/training/recipes",)), ("is_packed", "has_packed_weights", ("src", "tests", "bench")),
    ("packed", "packs_sequences", BATCHES),
]  # fmt: skip


def convert_name(name: str, before: str, after: str, path: str, context: str = "", line: str = "") -> str:
    """Return the new name of an identifier."""
    if name in KEEP_NAMES or name.startswith("__"):
        return name
    if name == "update" and (after == "(" or context == "model_copy"):
        return name
    if name == "accumulate" and ((after == "(" and "config/run" not in path) or "itertools" in line):
        return name
    if name == "where":
        keeps = (before in (".", "def") and after == "(") or (after == "=" and "np." in line)
        return name if keeps else "location"
    if name == "ProcessGroup" and before == ".":
        return name
    if name == "sound" and ((before in ("(", ",") and after == "=") or (after == ":" and path.endswith("/example.py"))):
        return "audio"
    if before == "." and name in ATTRIBUTES:
        return ATTRIBUTES[name]
    if name == "packed" and ("cutting" in path or (before != "." and after not in ("=", ":", "("))):
        return name
    for old, new, paths in BY_PATH:
        if name == old and path.startswith(paths):
            return new
    if (
        name == "parameters"
        and after != "("
        and (
            (before == "." and context in ("pipeline", "theirs", "ours"))
            or (path.startswith("src/regard/pipeline/") and context == "self")
        )
    ):
        return "num_parameters"
    if name == "parameters" and before == "def" and path.startswith("src/regard/pipeline/"):
        return "num_parameters"
    if name == "plan" and after == "(" and (context == "order" or "batches/order" in path):
        return "plan_window"
    if name == "max_length":
        return (
            "max_new_tokens"
            if path.startswith(NEW_TOKENS) and "Field(" not in line and "embedder" not in path and context != "data"
            else name
        )
    if name in IDENTIFIERS and not path.startswith(NOT_IN.get(name) or ("-",)):
        return IDENTIFIERS[name]
    if name.startswith("test_"):
        return convert_prose_name(name)
    if path.startswith(("src/regard/nn", "src/regard/models", "src/regard/decode", "tests/nn", "tests/models")):
        return name
    new = re.sub(r"(?<![a-z])updates(?![a-z])", "steps", name)
    new = re.sub(r"(?<![a-z])update(?![a-z])", "step", new)
    new = re.sub(r"UPDATES", "STEPS", new)
    new = re.sub(r"UPDATE", "STEP", new)
    new = re.sub(r"(?<![a-z])sounds?(?=_|$)", "audio", new)
    new = re.sub(r"SOUNDS?(?=_|$)", "AUDIO", new)
    new = re.sub(r"Sounds?(?=[A-Z]|$)", "Audio", new)
    return new


def convert_prose_name(name: str) -> str:
    new = re.sub(r"_an_update(?=_|$)", "_a_step", name)
    new = re.sub(r"_updates(?=_|$)", "_steps", new)
    new = re.sub(r"_update(?=_|$)", "_step", new)
    new = re.sub(r"_a_sound(?=_|$)", "_an_audio_clip", new)
    new = re.sub(r"_sounds(?=_|$)", "_audio", new)
    return re.sub(r"_sound(?=_|$)", "_audio", new)


# ------------------------------------------------------------------------------------------------ settings keys
KEYS = {
    "width": "d_model", "placement": "norm_order", "clip": "max_grad_norm", "peak": "lr", "keep": "keep_checkpoints",
    "every": "every_steps", "back": "rewind_steps", "accumulate": "gradient_accumulation", "deviation": "std",
    "updates": "steps", "max_updates": "max_steps", "update_tokens": "step_tokens", "suppressed": "suppress_tokens",
    "suppressed_first": "begin_suppress_tokens", "suppressed": "suppress_tokens", "normalise": "normalize", "colours": "colors", "tuning": "finetune",
}  # fmt: skip
TASKS = {"continue": "causal_lm", "fill": "masked_lm", "restore": "span_corruption"}
PARENTS = r"(?:model|train|validation|data|tokenizer|tuning|encoder|decoder|source|target|schedule|spikes|generation|settings|run)"
DOTTED = {  # key: tables that have it
    "width": "model", "placement": "(?:encoder|decoder)", "clip": "train", "peak": "schedule", "keep": "train",
    "every": "validation", "back": "spikes", "accumulate": "train", "deviation": "(?:source|prefix)",
    "updates": "train", "max_updates": "train", "update_tokens": "train", "normalise": "tokenizer",
    "colours": "tokenizer", "hidden": "feedforward", "suppressed": "generation", "suppressed_first": "generation",
}  # fmt: skip
OPTIONS = {
    "--updates": "--steps", "--max-updates": "--max-steps", "--update-tokens": "--step-tokens", "--sounds": "--audio",
    "--into": "--target-language", "--with": "--ensemble", "--max-length": "--max-new-tokens",
}  # fmt: skip
FEEDFORWARD = re.compile(r"(feedforward\"?\s*[=:]\s*\{[^}]*?)\bhidden\b(\"?\s*[=:])")


def convert_keys(text: str) -> str:
    """Rename settings keys where text has the form of TOML, a dotted path or an option."""
    for old, parents in DOTTED.items():
        new = KEYS.get(old, "d_ff")
        text = re.sub(rf"(?<![\w])({parents}(?:\.\*|\.\d+)?\.){old}(?![\w(.])", rf"\g<1>{new}", text)
        text = re.sub(rf"(?<![\w])({parents}(?:\.\*|\.\d+)?\.){old}(?=\.\s|\.$|\.`)", rf"\g<1>{new}", text)
    for old, new in KEYS.items():
        if old == "tuning":
            continue
        text = re.sub(
            rf"(^\s*|[{{,]\s*|--set [\"']?|`|[\"'])\b{old}\b(\s*=\s*(?=[\d\"'\[{{tf]))",
            rf"\g<1>{new}\g<2>",
            text,
            flags=re.M,
        )
    text = FEEDFORWARD.sub(r"\1d_ff\2", text)
    text = re.sub(r"\.placement\b", ".norm_order", text)
    text = re.sub(r"(\[[\w.]*feedforward\]\n(?:[^\[\n]*\n)*?\s*)hidden(\s*=)", r"\1d_ff\2", text)
    text = re.sub(r"\[tuning(?=[\].])", "[finetune", text)
    text = re.sub(
        r"(?<![\w.])tuning\.(?=(?:parent|parent_sha256|layers|extra_layers|fresh_layers|freeze_embeddings|layer_decay|lora|add_tokens|chat_template)\b)",
        "finetune.",
        text,
    )
    text = re.sub(r"(?<![\w.])tuning(\s*=\s*\{)", r"finetune\1", text)
    for old, new in TASKS.items():
        text = re.sub(rf"(\btask(?: is|s)?(?:\\\")?[\s=:]*[\"'`]){old}([\"'`])", rf"\g<1>{new}\g<2>", text)
        text = re.sub(rf"(\btask=){old}\b", rf"\g<1>{new}", text)
        text = re.sub(rf"(`){old}(`)", rf"\g<1>{new}\g<2>", text)
        text = re.sub(rf"('){old}(')", rf"\g<1>{new}\g<2>", text)
    text = re.sub(r"(kind\s*=\s*[\"'])sounds([\"'])", r"\1audio\2", text)
    for old, new in OPTIONS.items():
        text = re.sub(rf"(?<![\w-]){old}(?![\w-])", new, text)
    return (
        text.replace("sound-encoder", "audio-encoder")
        .replace("docs/sound.md", "docs/audio.md")
        .replace("(sound.md", "(audio.md")
    )


VERB_AFTER = r"(?! (?:the|it|its|them|all|both|weights|every|a|an|this|and (?:install|checks))\b)"


def convert_prose(text: str) -> str:
    """Write `step` for an optimizer step and `audio` for sounds, in sentences."""
    text = re.sub(r"\b([Aa])n update\b", r"\1 step", text)
    text = re.sub(r"(?<!never )(?<!it )(?<!that )(?<!which )(?<!optimizer )\bupdates\b" + VERB_AFTER, "steps", text)
    text = re.sub(
        r"(?<!apt-get )(?<!to )(?<!must )(?<!not )(?<!can )(?<!will )(?<![.\w-])\bupdate\b(?![\w(-])" + VERB_AFTER,
        "step",
        text,
    )
    text = re.sub(r"\bUpdates\b" + VERB_AFTER, "Steps", text)
    text = re.sub(r"\bUpdate (?=[\d{N])", "Step ", text)
    text = re.sub(r"\b([Aa]) sound\b(?! (?:proof|file))", r"\1n audio clip", text)
    text = re.sub(r"\b([Aa]) sound file", r"\1n audio file", text)
    text = re.sub(r"\bsound files?\b", lambda m: m[0].replace("sound", "audio"), text)
    text = re.sub(r"\bSound files?\b", lambda m: m[0].replace("Sound", "Audio"), text)
    text = re.sub(r"\bsounds\b(?! (?:like|as if))", "audio clips", text)
    text = re.sub(r"\bSounds\b", "Audio clips", text)
    text = re.sub(r"(?<![-\w.])sound\b(?![-\w.(]|\")", "audio clip", text)
    return text


EXACT = KEYS | TASKS | {"hidden": None, "sounds": "audio", "sound": "audio", "update": "step"}
EXACT_SKIP = {
    "width": ("src/regard/measure/calibration", "src/regard/data/shards", "tests/data/shards", "tests/faults", "tests/hostile/shards", "src/regard/look/positions", "tests/look/test_positions", "tests/lectures/test_look"),
    "back": ("tests/exchange", "tests/training/test_finetune"), "clip": ("examples/whisper",), "keep": ("tests/data",),
    "continue": ("src/regard/look/local", "tests/look/test_local", "src/regard/look/build"), "peak": ("bench/plan",), "suppressed": ("src/regard/look", "tests/look", "src/regard/exchange/onnx", "tests/exchange/onnx"),
}  # fmt: skip


def convert_python(text: str, path: str) -> str:
    """Rename identifiers, and keys and words in strings and comments."""
    import io
    import tokenize

    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return convert_prose(convert_keys(text))
    lines, edits = text.splitlines(keepends=True), []
    for index, token in enumerate(tokens):
        old = token.string
        if token.type == tokenize.NAME:
            after = tokens[index + 1].string if index + 1 < len(tokens) else ""
            earlier = [
                t.string for t in tokens[max(0, index - 4) : index] if t.type not in (tokenize.NL, tokenize.COMMENT)
            ]
            context = earlier[-2] if len(earlier) > 1 else ""
            new = convert_name(old, tokens[index - 1].string if index else "", after, path, context, token.line)
        elif token.type == tokenize.STRING:
            body = old.strip("rbfRBF").strip("\"'")
            if path.startswith(NEW_TOKENS) and "embedder" not in path:
                old = re.sub(r"\bmax_length\b", "max_new_tokens", old)
            skip = EXACT_SKIP.get(body, ())
            if body in EXACT and EXACT[body] and not path.startswith(tuple(skip) or ("-",)):
                new = old.replace(body, EXACT[body])
            elif body in EXACT:
                new = old
            else:
                if re.match(r"[rb]*f", old[:3], re.I):
                    new = convert_f_string(old, path)
                else:
                    new = convert_prose(convert_keys(old))
                if re.fullmatch(r"regard(\.\w+)+", body):  # a patched name
                    head, tail = body.rsplit(".", 1)
                    new = old.replace(body, f"{head}.{convert_name(tail, '', '', path)}")
                if re.fullmatch(r"[\w\[\], |.]+", body) and re.search(r"[|\[]", body):  # an annotation in quotes
                    new = old.replace(body, convert_inner(body, path))
                if re.fullmatch(r"[A-Za-z_]\w*", body) and (
                    path.endswith("__init__.py") or (body in IDENTIFIERS and body[0].isupper())
                ):
                    new = old.replace(body, convert_name(body, "", "", path))
                if ">>>" in new:
                    new = re.sub(
                        r"^(\s*(?:>>>|\.\.\.) )(.*)$", lambda m: m[1] + convert_inner(m[2], path), new, flags=re.M
                    )
                new = re.sub(
                    r"`([A-Za-z_][\w.]*)(\(.*?\))?`",
                    lambda m: "`" + convert_inner(m[1], path) + (m[2] or "") + "`",
                    new,
                )
        elif token.type == tokenize.COMMENT:
            new = convert_prose(convert_keys(old))
            new = re.sub(
                r"`([A-Za-z_][\w.]*)(\(.*?\))?`", lambda m: "`" + convert_inner(m[1], path) + (m[2] or "") + "`", new
            )
        else:
            continue
        if new != token.string:
            edits.append((token.start, token.end, new))
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    for (l1, c1), (l2, c2), new in reversed(edits):
        text = text[: offsets[l1 - 1] + c1] + new + text[offsets[l2 - 1] + c2 :]
    text = re.sub(r'("kind": "(?:plain|gated)", )"hidden"', r'\1"d_ff"', text)
    text = re.sub(r'(feedforward(?:"\])? \| \{)"hidden"', r'\1"d_ff"', text)
    return FEEDFORWARD.sub(r"\1d_ff\2", text)


def convert_f_string(text: str, path: str) -> str:
    """Convert the words of a format string, and the names in its braces."""
    result, literal, index = [], "", 0
    while index < len(text):
        if text[index] == "{" and text[index : index + 2] != "{{":
            depth, end = 0, index
            while True:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
                if not depth:
                    break
            result += [convert_prose(convert_keys(literal)), convert_inner(text[index:end], path)]
            literal, index = "", end
        elif text[index : index + 2] in ("{{", "}}"):
            literal, index = literal + text[index : index + 2], index + 2
        else:
            literal, index = literal + text[index], index + 1
    return "".join([*result, convert_prose(convert_keys(literal))])


def convert_inner(code: str, path: str) -> str:
    def replace_name(match: re.Match[str]) -> str:
        before = code[match.start() - 1] if match.start() else ""
        after = code[match.end()] if match.end() < len(code) else ""
        return convert_name(match[0], before, after, path)

    return re.sub(r"[A-Za-z_]\w*", replace_name, code)


def convert_markdown(text: str, path: str) -> str:
    pieces = re.split(r"(```python\n.*?```)", text, flags=re.S)
    for index, piece in enumerate(pieces):
        if piece.startswith("```python"):
            code = piece.removeprefix("```python\n").removesuffix("```")
            if ">>>" in code:
                code = re.sub(
                    r"^(\s*(?:>>>|\.\.\.) )(.*)$",
                    lambda m: m[1] + convert_python(m[2], path),
                    convert_prose(convert_keys(code)),
                    flags=re.M,
                )
                pieces[index] = "```python\n" + code + "```"
            else:
                pieces[index] = "```python\n" + convert_python(code, path) + "```"
        else:
            piece = convert_prose(convert_keys(piece))
            pieces[index] = re.sub(
                r"`([A-Za-z_][\w.]*)(\(.*?\))?`", lambda m: "`" + convert_inner(m[1], path) + (m[2] or "") + "`", piece
            )
    return "".join(pieces)


def convert_words() -> None:
    for old, new in (
        ("docs/sound.md", "docs/audio.md"),
        ("src/regard/config/presets/sound-encoder.toml", "src/regard/config/presets/audio-encoder.toml"),
        ("tests/hostile/sounds.py", "tests/hostile/audio.py"),
        ("tests/training/test_sounds.py", "tests/training/test_audio.py"),
    ):
        move(ROOT / old, ROOT / new)
    for path in tracked():
        if path.suffix == ".ts" and str(path).startswith(("web/serve/", "web/views/beam")):
            text = path.read_text()
            new = text.replace('"sound"', '"audio"').replace('"max_length"', '"max_new_tokens"')
            new = convert_prose(new) if "serve" in str(path) else new
            path.write_text(new)
        if str(path) in ("CHANGELOG.md",) or path.suffix not in (".py", ".md", ".toml", ".sh", ".yaml", ""):
            continue
        if path.suffix == "" and path.name not in ("run", "check"):
            continue
        if path.name in ("pyproject.toml", "results.toml"):
            continue
        text = path.read_text()
        if path.suffix == ".py":
            own = ".".join(path.with_suffix("").parts[1:]) if path.parts[0] == "src" else ""
            new = convert_python(convert_classes(text, own, QUALIFIED, str(path)), str(path))
        elif path.suffix == ".md":
            new = convert_markdown(text, str(path))
        else:
            new = convert_prose(convert_keys(text)) if path.suffix == ".toml" else convert_keys(text)
        if new != text:
            path.write_text(new)


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
    if "words" in stages:
        convert_words()
    subprocess.run(
        [sys.executable, "-m", "ruff", "check", "-q", "--select", "I,F401,RUF022", "--fix", "--unsafe-fixes", "."],
        check=False,
    )
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", "."], check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
