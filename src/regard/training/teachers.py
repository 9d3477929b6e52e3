"""Teachers for distillation: translators that are checked first and loaded only when needed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.base.errors import RegardError
from regard.base.files import MANIFEST, sha256
from regard.config import codec
from regard.config.model import AnyModelConfig, EncoderDecoderConfig
from regard.config.run import DistillationConfig
from regard.config.sources import AnySourceConfig
from regard.store.export_folder import CTRANSLATE2, Engine, find_export, hash_of_weights
from regard.store.model_path import MODEL, find_model
from regard.tasks.load import load
from regard.tasks.translation.ensemble import EnsembleTranslator
from regard.tasks.translation.translator import Translator


@dataclass(frozen=True)
class Teacher:
    """A model that translates the training sources."""

    folder: str
    """The folder as given by the user."""
    path: Path
    """The model folder: the same, or `best/` of a run folder."""
    settings: EncoderDecoderConfig

    @cached_property
    def weights_sha256(self) -> str:
        """The sha256 of the weights."""
        return hash_of_weights(self.path)

    @property
    def identity(self) -> list[str]:
        """The sha256 of everything that affects its translations: weights, architecture, tokenizers."""
        files = [path for path in sorted(self.path.glob("*.json")) if path.name != MANIFEST]
        return [self.weights_sha256, *(sha256(path) for path in (self.path / MODEL, *files))]


def find_teachers(folders: Iterable[str], sources: Sequence[AnySourceConfig]) -> list[Teacher]:
    """Find the teachers' model folders and check their languages, without reading weights.

    Raises:
        RegardError: If a folder has no model, or its task or languages do not match.
    """
    teachers: list[Teacher] = []
    for folder in folders:
        path = find_model(Path(folder))
        if path.resolve() in (teacher.path.resolve() for teacher in teachers):
            hint = "Give each teacher once; train another teacher with a different --seed."
            raise RegardError("This teacher was given twice.", location=folder, hint=hint)
        settings = _check_settings(codec.MODEL_FILES.load(path / MODEL), sources, location=folder)
        teachers.append(Teacher(folder, path, settings))
    return teachers


def choose_engine(teachers: Sequence[Teacher], device: str) -> Engine:
    """Return the engine of a group: CTranslate2 for a single exported teacher on the CPU, else PyTorch."""
    is_exported = len(teachers) == 1 and device == "cpu" and find_export(teachers[0].path, "auto") is not None
    return CTRANSLATE2 if is_exported else "torch"


def load_translator(teachers: Sequence[Teacher], device: str) -> Translator:
    """Load one teacher, or several as an ensemble whose probabilities are averaged."""
    engine: Engine = "torch" if choose_engine(teachers, device) == "torch" else "auto"
    members = [load(teacher.path, device, engine=engine) for teacher in teachers]
    translators = [member for member in members if isinstance(member, Translator)]  # `find_teachers` checked the task
    return translators[0] if len(translators) == 1 else EnsembleTranslator(translators)


def group_teachers(teachers: Sequence[Teacher], settings: DistillationConfig) -> list[list[Teacher]]:
    """Return the teacher groups: every teacher alone, or all as an ensemble."""
    return [list(teachers)] if settings.combine == "ensemble" else [[teacher] for teacher in teachers]


def _check_settings(
    settings: AnyModelConfig, sources: Sequence[AnySourceConfig], *, location: str
) -> EncoderDecoderConfig:
    if not isinstance(settings, EncoderDecoderConfig) or settings.task != "translation":
        raise RegardError(
            f"This model cannot be a teacher: its task is '{settings.task}', not translation.",
            location=location,
            hint="Give an encoder-decoder that was trained on pairs.",
        )
    for source in sources:
        if not _covers(settings.languages, source.languages):
            languages, corpus_languages = (" to ".join(names) for names in (settings.languages, source.languages))
            raise RegardError(
                f"The teacher translates {languages}, but the corpus is {corpus_languages}.",
                location=location,
                hint="Use a teacher for the same languages; --languages sets the corpus languages.",
            )
    return settings


def _covers(languages: Sequence[str], pair: Sequence[str]) -> bool:
    """Whether a model with these languages translates this pair; unknown languages are accepted.

    >>> _covers(("en", "de"), ("en", "de")), _covers(("de", "en"), ("en", "de")), _covers((), ("en", "de"))
    (True, False, True)
    """
    if len(languages) < 2 or len(pair) < 2:
        return True
    return tuple(languages) == tuple(pair) if len(languages) == 2 else set(pair) <= set(languages)
