"""Verify a Hugging Face export: `transformers` loads it and runs the same texts as Regard."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.base.extras import install_command, list_missing
from regard.exchange.huggingface.architectures import AnyArchitecture
from regard.exchange.parity import measure_parity
from regard.exchange.parity_runners import LogitsRunner, Tokens
from regard.exchange.parity_samples import Sample
from regard.store.export_folder import PARITY_FILE
from regard.store.model_folder import StoredModel

ENGINE, EXTRA = "transformers", "huggingface"


def verify_export(
    folder: Path, stored: StoredModel, architecture: AnyArchitecture, dtype: str, max_positions: int
) -> tuple[str, ...]:
    """Compare an exported folder with the model, write `parity.json`, and return the figures as sentences.

    Without `transformers`, the file says that no comparison was made.

    Raises:
        RegardError: A float32 export differs from the model.
    """
    if list_missing(EXTRA):
        return (write_not_checked(folder, ENGINE, f"transformers is not installed: {install_command(EXTRA)}"),)
    with hide_notes():
        runner = HuggingFaceRunner(folder, stored, architecture, dtype)
        parity = measure_parity(stored, runner, must_match=dtype == "float32", max_positions=max_positions)
    parity.write(folder)
    return parity.describe()


def write_not_checked(folder: Path, engine: str, reason: str) -> str:
    """Write a `parity.json` that says why no comparison was made; return it as a sentence."""
    note = f"parity: not checked, because {reason}."
    document = {"format": 1, "engine": engine, "passed": None, "not_checked": note}
    (folder / PARITY_FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return note


class HuggingFaceRunner(LogitsRunner):
    """An exported folder in `transformers`, for the parity test."""

    engine = ENGINE

    def __init__(
        self,
        folder: Path,
        stored: StoredModel,
        architecture: AnyArchitecture,
        dtype: str,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        import transformers

        self.version, self.compute_type = str(transformers.__version__), dtype
        arguments = architecture.load_arguments if arguments is None else arguments
        auto_class: Any = getattr(transformers, architecture.auto_class)
        self.model: Any = auto_class.from_pretrained(folder, local_files_only=True, dtype="auto", **arguments).eval()
        self.family, self.has_head = stored.settings.family, stored.settings.head.kind != "none"
        self.bos, self._eos = stored.tokenizers.target.specials.bos, stored.tokenizers.target.specials.eos

    def compute(self, source: Sequence[int], target: Sequence[int] | None) -> Tensor:
        """Return the logits (T, V) of a row, or the outputs of an encoder-only model."""
        rows = torch.tensor([source])
        arguments = {} if target is None else {"decoder_input_ids": torch.tensor([target])}
        outputs = self.model(input_ids=rows, attention_mask=torch.ones_like(rows), **arguments)
        return (outputs.logits if self.has_head else outputs.last_hidden_state)[0]

    @torch.inference_mode()
    def beam(self, samples: Sequence[Sample], beam_size: int) -> Tokens | None:
        """Return the outputs of beam search; None for an encoder."""
        if self.family == "encoder_only":
            return None
        outputs: dict[int, list[int]] = {}
        for length, limit in dict.fromkeys((len(sample.source), sample.max_new_tokens) for sample in samples):
            group = [
                number
                for number, sample in enumerate(samples)
                if (len(sample.source), sample.max_new_tokens) == (length, limit)
            ]
            rows = torch.tensor([samples[number].source for number in group])
            generated = self.model.generate(
                input_ids=rows,
                attention_mask=torch.ones_like(rows),
                max_new_tokens=limit,
                num_beams=beam_size,
                do_sample=False,
                early_stopping="never" if beam_size > 1 else False,
                length_penalty=1.0,
            )
            start = 1 if self.family == "encoder_decoder" else length
            outputs |= zip(group, (self._cut(row) for row in generated[:, start:].tolist()), strict=True)
        return [outputs[number] for number in range(len(samples))]

    def _cut(self, row: list[int]) -> list[int]:
        """Return the tokens up to eos, without the padding after it."""
        return row[: row.index(self._eos) + 1] if self._eos in row else row


@contextmanager
def hide_notes() -> Iterator[None]:
    """Hide the progress bars and advice of `transformers`."""
    from transformers.utils import logging

    level, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(level)
        if had_bars:
            logging.enable_progress_bar()
