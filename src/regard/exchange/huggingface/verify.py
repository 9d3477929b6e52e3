"""The proof of a Hugging Face folder: `transformers` loads it and runs the same texts as PyTorch does in Regard."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from regard.base.extras import install_command, list_missing
from regard.config.model import DecoderOnlyConfig, EncoderDecoderConfig
from regard.exchange.huggingface.architectures import AnyArchitecture
from regard.exchange.parity import measure_parity
from regard.exchange.parity_runners import Tokens
from regard.exchange.parity_samples import Sample
from regard.store.export_folder import PARITY_FILE
from regard.store.model_folder import StoredModel

ENGINE, EXTRA = "transformers", "huggingface"


def verify_export(
    folder: Path, stored: StoredModel, architecture: AnyArchitecture, dtype: str, max_positions: int
) -> tuple[str, ...]:
    """Compare an exported folder with the model, write `parity.json`, and return the figures as sentences.

    Without `transformers`, the file says that nothing was compared.

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
    """Write a `parity.json` that says why nothing was compared; return it as a sentence."""
    note = f"parity: not checked, because {reason}."
    document = {"format": 1, "engine": engine, "passed": None, "not_checked": note}
    (folder / PARITY_FILE).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return note


class HuggingFaceRunner:
    """An exported folder in `transformers`, for the parity test."""

    engine, stops_early = ENGINE, False

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
        if arguments is None:
            arguments = {"add_pooling_layer": False} if architecture.auto_class == "AutoModel" else {}
        auto_class: Any = getattr(transformers, architecture.auto_class)
        self.model: Any = auto_class.from_pretrained(folder, local_files_only=True, dtype="auto", **arguments).eval()
        self._specials = stored.tokenizers.target.specials
        self._is_translator = isinstance(stored.settings, EncoderDecoderConfig)
        self._generates = isinstance(stored.settings, EncoderDecoderConfig | DecoderOnlyConfig)

    @torch.inference_mode()
    def score(self, samples: Sequence[Sample]) -> list[list[float]]:
        """Return the log-probability of each target token, or the flattened outputs of an encoder."""
        return [self._score(sample) for sample in samples]

    def greedy(self, samples: Sequence[Sample]) -> Tokens | None:
        """Return what greedy search generates."""
        return self.beam(samples, 1)

    @torch.inference_mode()
    def beam(self, samples: Sequence[Sample], beam_size: int) -> Tokens | None:
        """Return what beam search generates; None: an encoder generates nothing."""
        if not self._generates:
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
            start = 1 if self._is_translator else length
            outputs |= zip(group, (self._cut(row) for row in generated[:, start:].tolist()), strict=True)
        return [outputs[number] for number in range(len(samples))]

    def _cut(self, row: list[int]) -> list[int]:
        """Return the tokens up to eos; behind it there is padding."""
        eos = self._specials.eos
        return row[: row.index(eos) + 1] if eos in row else row

    def _score(self, sample: Sample) -> list[float]:
        source = torch.tensor([sample.source])
        if not self._generates:
            outputs = self.model(input_ids=source, attention_mask=torch.ones_like(source))
            has_head = "logits" in outputs
            values = outputs.logits.float().log_softmax(-1) if has_head else outputs.last_hidden_state.float()
            flat: list[float] = values.flatten().tolist()
            return flat
        if self._is_translator:
            inputs = torch.tensor([[self._specials.bos, *sample.target[:-1]]])
            logits = self.model(input_ids=source, decoder_input_ids=inputs).logits[0]
        else:
            inputs = torch.tensor([[*sample.source, *sample.target[:-1]]])
            logits = self.model(input_ids=inputs).logits[0, len(sample.source) - 1 :]
        targets = torch.tensor(sample.target)[:, None]  # (T, 1)
        scores: list[float] = logits.float().log_softmax(-1).gather(1, targets)[:, 0].tolist()
        return scores


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
