"""Fine-tuning: start from a parent's weights and train all parameters, some of them, or adapters.

Such a run begins with a checkpoint of step 0, which contains the parent's weights (`checkpoint.initial`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.base.errors import RegardError
from regard.base.formatting import pluralize
from regard.config.codec import RUN_FILES
from regard.config.finetune import FinetuneConfig
from regard.config.run import RunConfig
from regard.lora import add_adapters, is_adapter
from regard.models.heads import ClassHead, TagHead
from regard.nn.stack import Stack
from regard.store.export_folder import hash_of_weights
from regard.store.model_folder import read_model
from regard.store.model_path import find_model
from regard.store.weights import get_weights
from regard.text.tokenizer_pair import TokenizerPair
from regard.training.events import Listener, Message
from regard.training.optim import find_tables

HEAD = "head."
SOURCE_EMBEDDING = "source.embedding.weight"
TARGET_WEIGHTS = (
    *("target.embedding.weight", "tokens.embedding.weight", "head.projection.weight", "head.bias"),
    *("head.lm_head.projection.weight", "head.lm_head.bias"),
)
ADAPTER_SEED = 1_000_003  # added to the run's seed, so adapters do not reuse the random numbers of the weights


def prepare_model(model: nn.Module, run: RunConfig, *, should_draw: bool = False) -> None:
    """Add adapters to a new model and freeze untrained parameters; no-op without fine-tuning.

    Args:
        model: The model, with or without weights.
        run: The settings.
        should_draw: Initialize the adapters. Otherwise they are uninitialized until a checkpoint is loaded.
    """
    if (finetune := run.finetune) is None:
        return
    if finetune.lora is not None:
        add_adapters(model, finetune.lora, seed=run.seed + ADAPTER_SEED if should_draw else None)
    is_trained = _make_filter(model, finetune)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_trained(name, parameter))


def _make_filter(model: nn.Module, finetune: FinetuneConfig) -> Callable[[str, nn.Parameter], bool]:
    """Return a predicate for trained parameters, by name."""
    tables = find_tables(model)
    if finetune.lora is not None:  # labels are new or few, so the whole head is trained
        has_labels = isinstance(model.head, ClassHead | TagHead)
        return lambda name, _: is_adapter(name) or (has_labels and name.startswith(HEAD))
    if finetune.layers is not None:
        prefixes = (*_list_last_layers(model, finetune.layers), HEAD)
        return lambda name, parameter: (
            (name.startswith(prefixes) or ".final_norm." in name) and id(parameter) not in tables
        )
    if finetune.freeze_embeddings:
        return lambda _, parameter: id(parameter) not in tables
    return lambda *_: True


def _list_last_layers(model: nn.Module, count: int) -> Iterator[str]:
    """Yield the parameter name prefixes of the last layers of each stack."""
    for name, stack in model.named_modules():
        if isinstance(stack, Stack):
            if count > len(stack.layers):
                message = f"The {name} has {pluralize(len(stack.layers), 'layer')}, fewer than {count}."
                raise RegardError(message, location="finetune.layers", hint=f"Use at most {len(stack.layers)}.")
            yield from (f"{name}.layers.{index}." for index in range(len(stack.layers) - count, len(stack.layers)))


def compute_rate_scales(model: nn.Module, finetune: FinetuneConfig | None) -> dict[str, float]:
    """Return the learning rate factors by parameter name; empty if all are 1.

    The head and the last norm have 1, the last layer d = `layer_decay`, the layer below it d^2, and so on down to the
    embeddings.
    """
    if finetune is None or finetune.layer_decay == 1:
        return {}
    depths = {name: len(stack.layers) for name, stack in model.named_modules() if isinstance(stack, Stack)}
    scales: dict[str, float] = {}
    for name, _ in model.named_parameters():
        stack, _, rest = name.partition(".")
        height = max(depths.values()) + 1  # of the embeddings below the head
        if name.startswith(HEAD) or rest.startswith("final_norm."):
            height = 0
        elif rest.startswith("layers."):
            height = depths[stack] - int(rest.split(".")[1])
        elif stack in depths:  # positions and the norm before the first layer
            height = depths[stack] + 1
        scales[name] = finetune.layer_decay**height
    return scales


def check_parent(run: RunConfig) -> RunConfig:
    """Return the run with the sha256 of the parent's weights.

    Raises:
        RegardError: If the sha256 in the run file differs, or the model does not exist.
    """
    finetune = run.finetune
    assert finetune is not None  # noqa: S101 - the caller checked
    sha256 = hash_of_weights(find_model(Path(finetune.parent)))
    if finetune.parent_sha256 not in ("", sha256):
        message = f"The sha256 of the parent's weights is {sha256[:12]}..., not {finetune.parent_sha256[:12]}..."
        raise RegardError(message, location=finetune.parent, hint="Use the original parent, or remove parent_sha256.")
    return RUN_FILES.change(run, {"finetune.parent_sha256": sha256})


def copy_parent(model: nn.Module, run: RunConfig, emit: Listener) -> None:
    """Copy the parent's weights into a new model and prepare it for fine-tuning.

    Raises:
        RegardError: If the parent's weights do not fit the run's model.
    """
    finetune = run.finetune
    assert finetune is not None  # noqa: S101 - the caller checked
    parent = read_model(Path(finetune.parent))
    new_layers = max(finetune.extra_layers or 0, (finetune.layers or 0) if finetune.fresh_layers else 0)
    fresh = tuple(_list_last_layers(model, new_layers))
    fresh += () if parent.settings.head == run.model.head else (HEAD,)  # other labels, or another kind of head
    if HEAD in fresh and finetune.lora is not None and run.model.task == "masked_lm":
        message = "LoRA cannot train a new masked LM head, and the parent has none."
        raise RegardError(message, location="finetune.lora", hint="Train all parameters, or the last layers.")
    weights = get_weights(parent.model)
    extra = tuple(_list_last_layers(model, finetune.extra_layers or 0))
    if extra and any(name.startswith(extra) for name in weights):
        message = (
            f"The model has not {pluralize(finetune.extra_layers or 0, 'layer')} more than its parent in each stack."
        )
        raise RegardError(
            message,
            location="finetune.extra_layers",
            hint="Add them to the model's layers, or remove finetune.extra_layers.",
        )
    if finetune.add_tokens:
        weights = _extend_vocabulary(weights, parent.tokenizers, finetune.add_tokens)
    new = _copy_weights(weights, get_weights(model), fresh, location=str(parent.path))
    prepare_model(model, run, should_draw=True)
    emit(Message(_describe(model, run, new)))


def _extend_vocabulary(
    weights: Mapping[str, Tensor], tokenizers: TokenizerPair, texts: Sequence[str]
) -> dict[str, Tensor]:
    """Add a row to embeddings, output matrices and biases for each new token: the mean of its subwords' rows."""
    extended = dict(weights)
    for name, weight in weights.items():
        if name in (SOURCE_EMBEDDING, *TARGET_WEIGHTS):
            tokenizer = tokenizers.source if name == SOURCE_EMBEDDING else tokenizers.target
            new = tokenizer.add_tokens(texts).vocabulary[tokenizer.size :]
            rows = [weight[torch.tensor(ids)].mean(dim=0) for ids in tokenizer.encode_ids(new)]
            extended[name] = torch.stack([*weight, *rows])
    return extended


def _copy_weights(
    weights: Mapping[str, Tensor], parameters: Mapping[str, Tensor], fresh: tuple[str, ...], *, location: str
) -> list[str]:
    """Copy the parent's weights into the model, except fresh layers; return the names of the new parameters."""
    new: list[str] = []
    for name, parameter in parameters.items():
        weight = weights.get(name)
        if fresh and name.startswith(fresh):
            new.append(name)
        elif weight is not None and weight.shape == parameter.shape:
            parameter.copy_(weight)
        else:
            has = "is missing there" if weight is None else f"has shape {tuple(weight.shape)} there"
            message = f"The parent does not match the model: {name} {tuple(parameter.shape)} {has}."
            raise RegardError(message, location=location, hint="Only the head may differ from the parent's model.toml.")
    return new


def _describe(model: nn.Module, run: RunConfig, new: list[str]) -> str:
    """Describe which parameters come from the parent, which are new, and how many are trained."""
    finetune = run.finetune
    assert finetune is not None  # noqa: S101
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    total = sum(parameter.numel() for parameter in model.parameters())
    sizes = dict(model.named_parameters())
    new_text = ""
    if new:
        count = sum(sizes[name].numel() for name in new)
        places = sorted({".".join(name.split(".")[:3]) if "layers" in name else name.split(".")[0] for name in new})
        new_text = f" New: {', '.join(places)} ({count:,} parameters)."
    return (
        f"The run starts from {finetune.parent} and trains {trained:,} of {total:,} parameters "
        f"({trained / total:.2%}).{new_text}"
    )
