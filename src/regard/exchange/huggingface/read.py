"""Read a Hugging Face folder as a Regard model: config, safetensors and tokenizer. Pickles are never opened."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.base.errors import RegardError
from regard.base.progress import track
from regard.config.codec import MODEL_FILES
from regard.config.inputs import TokensConfig
from regard.config.model import AnyModelConfig, DecoderOnlyConfig, EncoderDecoderConfig
from regard.exchange.foreign_folder import ForeignFolder
from regard.exchange.huggingface.architectures import ARCHITECTURES, AnyArchitecture
from regard.exchange.huggingface.config_reader import ConfigReader
from regard.exchange.huggingface.tokenizer_reader import ForeignTokenizer, Inserted, rewrite
from regard.exchange.huggingface.tokenizer_writer import TOKENIZER_CONFIG, TOKENIZER_FILE
from regard.exchange.huggingface.write import CONFIG, GENERATION_CONFIG, OUR_SETTINGS, TARGET_FOLDER
from regard.exchange.imported_model import ImportedModel
from regard.exchange.mapping import to_hf, to_regard
from regard.exchange.provenance import Provenance
from regard.models.build import build
from regard.store.model_path import WEIGHTS
from regard.store.size_check import check_fits_memory
from regard.store.weight_files import INDEX
from regard.store.weights import describe_mismatch, get_weights
from regard.text.chat_template import CHAT_TEMPLATE_FILE, read_chat_template
from regard.text.specials import ROLES
from regard.text.tokenizer_pair import TokenizerPair

SPECIAL_TOKENS_MAP = "special_tokens_map.json"
SYNONYMS = {"BertForPreTraining": "BertForMaskedLM"}  # their next-sentence head is dropped
POOLING = "1_Pooling/config.json"  # of sentence-transformers
POOLING_MODES = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_lasttoken": "last",
}
MAX_SHARDS = 1_000
SHARD = re.compile(r"[\w.-]{1,200}\.safetensors", re.ASCII)
Json = dict[str, Any]


@dataclass(frozen=True)
class _Folder:
    """A folder and its small files."""

    files: ForeignFolder
    config: Json
    generation: Json
    tokenizer_config: Json
    special_tokens: Json

    @classmethod
    def read(cls, path: Path) -> "_Folder":
        files, names = ForeignFolder(path), (GENERATION_CONFIG, TOKENIZER_CONFIG, SPECIAL_TOKENS_MAP)
        return cls(files, _read_object(files, CONFIG), *(_read_optional(files, name) for name in names))


def read_folder(path: Path) -> ImportedModel:
    """Read a Hugging Face folder.

    Raises:
        RegardError: The architecture, a setting or the tokenizer is not supported, a file is damaged, or the weights
            are a pickle.
    """
    folder = _Folder.read(path)
    config = ConfigReader(folder.config, str(path / CONFIG))
    architecture = find_architecture(config)
    tensors = read_weights(folder.files)
    generation = ConfigReader(folder.config | folder.generation, str(path / GENERATION_CONFIG))
    settings = read_settings(config, architecture, tensors, generation)
    max_positions = _read_max_positions(config, architecture, settings)
    weights = convert_tensors(architecture, settings, tensors, max_positions, location=str(path))
    settings, tokenizers = _read_tokenizers(folder, settings)
    dtype = str(next(iter(tensors.values())).dtype).removeprefix("torch.") if tensors else "float32"
    origin = Provenance("huggingface", architecture.name, dtype, max_positions)
    card, pooling, template = _read_card(folder.files), _read_pooling(folder.files), _read_chat_template(folder)
    return ImportedModel(settings, tokenizers, weights, origin, card, pooling, template)


def _read_chat_template(folder: _Folder) -> str | None:
    """Read the chat template: a file, or in older folders a text in the tokenizer's config."""
    text = folder.tokenizer_config.get("chat_template")
    path = folder.files.find(CHAT_TEMPLATE_FILE)
    template = text if path is None else read_chat_template(path)
    return template if isinstance(template, str) and template else None


def read_settings(
    config: ConfigReader,
    architecture: AnyArchitecture,
    tensors: Mapping[str, Tensor],
    generation: ConfigReader | None = None,
) -> AnyModelConfig:
    """Return the settings of a model from its configs; the tensors fill in what the configs leave open."""
    table = architecture.read_config(config, tensors) | _read_our_settings(config)
    if generation is not None and (search := architecture.read_generation(generation)) is not None:
        table["generation"] = search
    return MODEL_FILES.parse(table, location=config.location)


def find_architecture(config: ConfigReader) -> AnyArchitecture:
    """Return the architecture that a config names."""
    names = config.config.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    name = SYNONYMS.get(name, name) if isinstance(name, str) else None
    if name not in ARCHITECTURES:
        raise config.error(
            f"The architecture {str(name)[:60]!r} is not supported.", f"Use: {', '.join(ARCHITECTURES)}."
        )
    architecture = ARCHITECTURES[name]
    if config.config.get("model_type") != architecture.model_type:
        raise config.error(f"'model_type' is not '{architecture.model_type}', as {name} requires.")
    return architecture


def read_weights(files: ForeignFolder) -> dict[str, Tensor]:
    """Read the tensors of a folder: one safetensors file, or several with an index."""
    if files.find(WEIGHTS) is not None:
        return files.read_tensors(WEIGHTS)
    if files.find(INDEX) is None:
        patterns = ("*.bin", "*.pt", "*.h5", "*.msgpack")
        pickles = sorted(file.name for pattern in patterns for file in files.path.glob(pattern))
        message = f"The folder has no {WEIGHTS}" + (f", only {', '.join(pickles[:3])}." if pickles else ".")
        hint = "Get the weights as safetensors: loading other formats may execute code."
        raise RegardError(message, location=str(files.path), hint=hint)
    shards = _read_object(files, INDEX).get("weight_map")
    names = sorted({str(name) for name in shards.values()}) if isinstance(shards, dict) else []
    if not names or len(names) > MAX_SHARDS or not all(map(SHARD.fullmatch, names)):
        hint = "Restore an intact copy."
        message = "'weight_map' must name safetensors files of this folder."
        raise RegardError(message, location=str(files.path / INDEX), hint=hint)
    tensors: dict[str, Tensor] = {}
    for name in track(names, "reading the weights"):
        tensors |= files.read_tensors(name)
    return tensors


def convert_tensors(
    architecture: AnyArchitecture,
    settings: AnyModelConfig,
    tensors: Mapping[str, Tensor],
    max_positions: int,
    *,
    location: str,
) -> dict[str, Tensor]:
    """Return our parameters in float32; names, shapes, dtypes and values are checked."""
    check_fits_memory(settings, location=location)
    weight_map = architecture.make_weight_map(settings, max_positions)
    with torch.device("meta"):
        parameters = get_weights(build(settings))
    expected = to_hf(weight_map, parameters)  # their names and shapes
    stored = {_rename_norm(name): tensor for name, tensor in tensors.items()}
    common = expected.keys() & stored.keys()
    # Shapes come first: a tensor that is larger than the config says is never read.
    shapes = {name: expected[name].shape for name in common}
    _raise_mismatch(describe_mismatch(shapes, {name: stored[name] for name in common}), location)
    stored |= {name: stored[name].float() for name in common if stored[name].is_floating_point()}
    ours = to_regard(weight_map, stored, location=location)
    weights = {name: tensor for name, tensor in ours.items() if name in parameters}  # without copies of tied ones
    shapes = {name: parameter.shape for name, parameter in parameters.items()}
    faults = (f"{name} {fault}" for name, tensor in weights.items() if (fault := _describe_fault(tensor)))
    _raise_mismatch(describe_mismatch(shapes, weights, faults), location)
    return weights


def _raise_mismatch(mismatch: str, location: str) -> None:
    if mismatch:
        hint = "Use intact weights that belong to this config."
        raise RegardError(f"The weights do not match the config: {mismatch}.", location=location, hint=hint)


def _describe_fault(tensor: Tensor) -> str:
    """Describe why a tensor is not a valid weight; empty if it is valid."""
    if not tensor.is_floating_point():
        return f"has the dtype {str(tensor.dtype).removeprefix('torch.')}, not a floating-point one"
    bounds = torch.stack(torch.aminmax(tensor))  # one pass; NaN propagates
    return "" if bounds.isfinite().all() else "has NaN or infinite values"


def _rename_norm(name: str) -> str:
    """Return the new name of the parameters of a norm; older BERT files, and those of ESM, have gamma and beta."""
    for old, new in ((".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias")):
        name = name.removesuffix(old) + new if name.endswith(old) else name
    return name


def _read_our_settings(config: ConfigReader) -> Json:
    """Read the settings of Regard in a config that Regard exported."""
    ours = config.table(OUR_SETTINGS).config
    return {name: ours[name] for name in ("languages", "max_length_ratio") if name in ours}


def _read_max_positions(config: ConfigReader, architecture: AnyArchitecture, settings: AnyModelConfig) -> int:
    stack: Any = getattr(settings, "encoder", None) or getattr(settings, "decoder", None)
    return stack.max_positions or config.integer(*architecture.positions)


def _read_tokenizers(folder: _Folder, settings: AnyModelConfig) -> tuple[AnyModelConfig, TokenizerPair]:
    """Read the tokenizers; the template of a language model says whether its texts begin with bos."""
    tokens: Any = getattr(settings, "source", None) or getattr(settings, "tokens", None)
    if not isinstance(tokens, TokensConfig):  # of a model that reads audio clips
        tokens = getattr(settings, "target", None)
    source = _read_tokenizer(folder, "", tokens.vocabulary, settings)
    if isinstance(settings, DecoderOnlyConfig):
        settings = settings.model_copy(update={"starts_with_bos": bool(source.inserted.before)})
    _check_template(source, settings, location=str(folder.files.path / TOKENIZER_FILE))
    prefix = f"{TARGET_FOLDER}/"
    if not isinstance(settings, EncoderDecoderConfig) or folder.files.find(prefix + TOKENIZER_FILE) is None:
        return settings, TokenizerPair.joint(source.tokenizer)
    tokenizer_config = _read_optional(folder.files, prefix + TOKENIZER_CONFIG)
    target_folder = replace(folder, tokenizer_config=tokenizer_config, special_tokens={})
    target = _read_tokenizer(target_folder, prefix, settings.target_tokens.vocabulary, settings)
    return settings, TokenizerPair(source.tokenizer, target.tokenizer)


def _read_tokenizer(folder: _Folder, prefix: str, size: int, settings: AnyModelConfig) -> ForeignTokenizer:
    document = folder.files.read_json(prefix + TOKENIZER_FILE)
    if document is None:
        raise RegardError(
            f"The folder has no {TOKENIZER_FILE}.",
            location=str(folder.files.path),
            hint="Save it again with `transformers`: AutoTokenizer.from_pretrained(...).save_pretrained(...). "
            "If that writes only SentencePiece files (OPUS-MT), the model cannot be imported.",
        )
    tables = (folder.config, folder.generation, folder.special_tokens, folder.tokenizer_config)
    location = str(folder.files.path / prefix / TOKENIZER_FILE)
    return rewrite(document, find_roles(*tables, document, settings), size, location=location)


def find_roles(
    config: Json,
    generation: Json,
    special_tokens: Json,
    tokenizer_config: Json,
    document: Any,
    settings: AnyModelConfig | None,
) -> dict[str, int]:
    """Find the id of each role: in the template of a file by Regard, by name in tokenizer files, by id in configs."""
    if (roles := _read_role_table(document)) is not None:
        return roles
    ids = _list_ids(document)
    roles = {}
    for role in ROLES:
        for table in (config, generation):
            number = table.get(f"{role}_token_id")
            number = number[0] if isinstance(number, list) and number else number
            if type(number) is int:
                roles[role] = number
        for table in (special_tokens, tokenizer_config):
            entry = table.get(f"{role}_token")
            text = entry.get("content") if isinstance(entry, dict) else entry
            if isinstance(text, str) and text in ids:
                roles[role] = ids[text]
    if isinstance(settings, EncoderDecoderConfig):
        for table in (config, generation):
            if type(number := table.get("decoder_start_token_id")) is int:
                roles["bos"] = number
    return roles


def _read_role_table(document: Any) -> dict[str, int] | None:
    """Read the roles of a file that Regard exported; None if another program wrote it."""
    try:
        table = document["post_processor"]["special_tokens"]
        roles = {role: table[role]["ids"][0] for role in ROLES}
    except (KeyError, TypeError, IndexError):
        return None
    return roles if all(type(number) is int for number in roles.values()) else None


def _list_ids(document: Any) -> dict[str, int]:
    """Return the id of each token text, as far as the file is well-formed; `rewrite` checks it."""
    if not isinstance(document, dict) or not isinstance(document.get("model"), dict):
        return {}
    vocabulary = document["model"].get("vocab")
    ids = dict(vocabulary) if isinstance(vocabulary, dict) else {}
    if isinstance(vocabulary, list):
        pairs = (entry if isinstance(entry, list) and len(entry) == 2 else (None, 0) for entry in vocabulary)
        ids = {text: number for number, (text, _) in enumerate(pairs) if isinstance(text, str)}
    added = document.get("added_tokens")
    for token in added if isinstance(added, list) else ():
        if isinstance(token, dict):
            ids[str(token.get("content"))] = token.get("id", -1)
    return {text: number for text, number in ids.items() if isinstance(text, str) and type(number) is int}


def _check_template(foreign: ForeignTokenizer, settings: AnyModelConfig, *, location: str) -> None:
    """Raise an error if the template inserts different special tokens than Regard does."""
    specials, inserted = foreign.tokenizer.specials, foreign.inserted
    expected: tuple[tuple[int, ...], tuple[int, ...]] = ((specials.cls,), (specials.sep,))
    if isinstance(settings, EncoderDecoderConfig) and settings.generation is not None:
        expected = ((specials.bos, *settings.generation.prompt), (specials.eos,))  # as in training
        if inserted == Inserted((), ()):
            return
    elif isinstance(settings, EncoderDecoderConfig):
        expected = ((), (specials.eos,))
    elif isinstance(settings, DecoderOnlyConfig):
        expected = ((specials.bos,) if settings.starts_with_bos else (), ())
    if (inserted.before, inserted.after) == expected:
        return
    names = foreign.tokenizer.vocabulary

    def show(before: tuple[int, ...], after: tuple[int, ...]) -> str:
        return " ".join(
            [*(names[n] for n in before if n < len(names)), "TEXT", *(names[n] for n in after if n < len(names))]
        )

    raise RegardError(
        f"The model expects '{show(inserted.before, inserted.after)}', but Regard would give it '{show(*expected)}'.",
        location=location,
        hint="Use a model whose tokenizer inserts these special tokens.",
    )


def _read_card(files: ForeignFolder) -> str:
    return (files.read_bytes("README.md") or b"").decode("utf-8", "replace")


def _read_pooling(files: ForeignFolder) -> Json | None:
    """Read how sentence-transformers pools the hidden states; None if the folder does not specify it."""
    document = _read_optional(files, POOLING)
    pools = [pool for key, pool in POOLING_MODES.items() if document.get(key) is True]
    unknown = [key for key, value in document.items() if key.startswith("pooling_mode") and value is True]
    if document.get("pooling_mode") in ("mean", "cls", "lasttoken"):  # newer files
        pools = [{"mean": "mean", "cls": "first", "lasttoken": "last"}[document["pooling_mode"]]]
    elif not pools and not unknown and "pooling_mode" not in document:
        return None
    elif len(unknown) != 1 or not pools:
        hint = f"Use a model with one of: {', '.join(POOLING_MODES)}."
        raise RegardError("This pooling is not supported.", location=str(files.path / POOLING), hint=hint)
    modules = files.read_json("modules.json")
    kinds = (
        [str(module.get("type")) for module in modules if isinstance(module, dict)] if isinstance(modules, list) else []
    )
    if unsupported := [
        kind for kind in kinds if kind.rpartition(".")[2] not in ("Transformer", "Pooling", "Normalize")
    ]:
        hint = "Use a model that consists of a Transformer, a pooling layer and a normalization."
        location = str(files.path / "modules.json")
        raise RegardError(f"The module {unsupported[0][:60]} is not supported.", location=location, hint=hint)
    settings = _read_optional(files, "sentence_bert_config.json")
    if settings.get("do_lower_case"):
        hint = "Lowercase in the tokenizer instead: set do_lower_case in tokenizer_config.json."
        location = str(files.path / "sentence_bert_config.json")
        raise RegardError("'do_lower_case' is not supported.", location=location, hint=hint)
    limit = settings.get("max_seq_length")
    return {
        "pool": pools[0],
        "normalize": any(kind.endswith(".Normalize") for kind in kinds),
        "max_length": limit if type(limit) is int and limit > 2 else None,
    }


def _read_object(files: ForeignFolder, name: str) -> Json:
    document = files.read_json(name)
    if document is None:
        message = f"There is no {name}: this is not a Hugging Face folder."
        hint = "Give a folder with config.json and safetensors."
        if (files.path / "snapshots").is_dir():  # a repository in the cache
            hint = "Give the folder of a revision in snapshots/."
        raise RegardError(message, location=str(files.path), hint=hint)
    if not isinstance(document, dict):
        location = str(files.path / name)
        raise RegardError("The file is not a JSON object.", location=location, hint="Restore an intact copy.")
    return document


def _read_optional(files: ForeignFolder, name: str) -> Json:
    document = files.read_json(name)
    return document if isinstance(document, dict) else {}
