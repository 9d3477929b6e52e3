"""Writes model folders with model cards during and at the end of a run."""

import platform
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from regard.base.formatting import pluralize
from regard.base.version import __version__
from regard.config.codec import MODEL_FILES
from regard.config.finetune import AdapterConfig, FinetuneConfig
from regard.config.run import RunConfig
from regard.config.toml_file import to_dict
from regard.data.shards.shard import describe_shape
from regard.lora import is_adapter, merge_weights
from regard.store.adapter_folder import write_adapter
from regard.store.model_card import Card
from regard.store.model_folder import write_model
from regard.store.model_path import BEST, MODEL
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights, sort_names
from regard.tasks.embedding import DEFAULT_POOLING, EMBEDDING_FILE
from regard.tasks.validation import Scores
from regard.text.chat_template import CHAT_TEMPLATE_FILE
from regard.training.checkpoint.progress import Progress
from regard.training.data import RunData
from regard.training.initial_vectors import clear_vectors, find_vectors

_TOKENIZERS = {"parent": "that of the parent"}


class ModelWriter:
    """Writes `best/` and `average/`."""

    def __init__(self, run: RunConfig, folder: RunFolder, run_data: RunData, model: nn.Module) -> None:
        self._run, self._folder, self._run_data = run, folder, run_data
        self._parameters = sum(tensor.numel() for name, tensor in get_weights(model).items() if not is_adapter(name))
        self._trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
        self.run_dict = to_dict(run)
        self.versions = {"regard": __version__, "torch": torch.__version__, "python": platform.python_version()}

    def write(
        self,
        name: str,
        weights: Mapping[str, Tensor],
        progress: Progress,
        scores: Scores,
        averaged: Sequence[int] = (),
        *,
        fetch: Callable[[Tensor], Tensor] = lambda tensor: tensor,
    ) -> None:
        """Write a model folder, or replace it.

        Args:
            name: "best" or "average".
            weights: The parameters by name.
            progress: The run's progress.
            scores: Scores of these weights.
            averaged: The checkpoints that were averaged.
            fetch: Gathers a sharded weight just before it is written.
        """
        run_data, run = self._run_data, self._run
        data: dict[str, int | str] = {"training samples": len(run_data.train)}
        if run_data.validation is not None:
            data["validation samples"] = len(run_data.validation)
        if run_data.distilled is not None:
            data |= run_data.distilled.describe()
        training: dict[str, int | float | str] = {
            "steps": progress.step,
            run.spec.counted: progress.tokens,
            "epochs": 0 if progress.position is None else progress.position.epoch,
            "tokens per step": run.train.step_tokens,
            "optimizer": run.train.optimizer.kind,
            "schedule": run.train.schedule.kind,
            "seed": run.seed,
        }
        if run.finetune is not None:
            training |= describe_tuning(run.finetune)
        elif vectors := find_vectors(run.model):
            training["embeddings initialized from"] = ", ".join(map(str, dict.fromkeys(vectors.values())))
        note = ""
        if averaged:
            note = f"The weights are the mean of {len(averaged)} checkpoints, steps {averaged[0]} to {averaged[-1]}."
        elif run.train.ema:
            note = f"The weights are an exponential moving average with decay {run.train.ema}."
        reads = _describe_input(run, run_data)
        settings = clear_vectors(run.model).with_context_length(run.data.max_length)
        card = Card(settings, self._parameters, reads, data, training, scores.values, scores.signatures, note)
        path = self._folder.path / name
        files = {}
        if run.model.task == "embedding":
            files[EMBEDDING_FILE] = DEFAULT_POOLING.to_json()
        if run.finetune is not None and run.finetune.chat_template:
            files[CHAT_TEMPLATE_FILE] = run.finetune.chat_template.encode()
        if run.finetune is not None and (lora := run.finetune.lora) is not None:
            whole = {key: fetch(weights[key]) for key in sort_names(weights)}  # in the same order as the other ranks
            if name == BEST:
                sha256 = run.finetune.parent_sha256
                adapter = AdapterConfig(parent=run.finetune.parent, parent_sha256=sha256, lora=lora)
                model = MODEL_FILES.dumps(settings).encode()
                trained = {key: whole[key] for key in self._trained}
                write_adapter(self._folder.adapter, adapter, trained, {MODEL: model, **files})
            merged = merge_weights(whole, lora.scale)
            write_model(path, settings, run_data.tokenizer_pair, merged, str(card), replace=True, files=files)
        else:
            tokenizers = run_data.tokenizer_pair
            write_model(path, settings, tokenizers, weights, str(card), replace=True, files=files, fetch=fetch)


def _describe_input(run: RunConfig, run_data: RunData) -> str:
    """Return the model card line about the model's input."""
    if run.reads_images:
        return f"input: images of {describe_shape(run_data.train.image_shape)}"
    if run.reads_audio:
        return f"input: audio clips of {run_data.train.sample_rate:,} samples per second"
    kind, size = run.tokenizer.kind, run_data.tokenizers.source.size
    if (raster := run.raster) is not None:
        shape = describe_shape((raster.channels, *raster.size))
        return f"images of {shape}; vocabulary: {size:,} tokens, a codebook of colors and labels"
    return f"vocabulary: {_TOKENIZERS.get(kind, kind)}, {size:,} tokens"


def describe_tuning(finetune: FinetuneConfig) -> dict[str, str]:
    """Return the model card lines about the parent and the trained parameters."""
    if finetune.lora is not None:
        trained = f"LoRA of rank {finetune.lora.rank} on {', '.join(finetune.lora.modules)}, merged into the weights"
    elif finetune.layers is not None:
        trained = f"the last {finetune.layers} layers of each stack" + ", reinitialized" * finetune.fresh_layers
    else:
        trained = "all parameters" + " but the embeddings" * finetune.freeze_embeddings
    if finetune.extra_layers is not None:
        trained += f"; {pluralize(finetune.extra_layers, 'new layer')} on top of each stack"
    facts = {"parent": finetune.parent, "sha256 of the parent's weights": finetune.parent_sha256, "tuned": trained}
    if finetune.add_tokens:
        shown = ", ".join(finetune.add_tokens[:10]) + (", ..." if len(finetune.add_tokens) > 10 else "")
        facts["new tokens"] = f"{len(finetune.add_tokens):,} ({shown}), each from the mean of its subwords"
    return facts
