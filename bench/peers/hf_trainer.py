"""Hugging Face's `Seq2SeqTrainer` with a Marian of the same shape, on pairs of ids.

Its batches have a fixed number of rows, not of tokens: as many rows as give about as many tokens as Regard's batches,
grouped by length, which is the best that it offers (in random batches half of the positions are padding).
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

from bench.peers.turns import Turns
from bench.reference_models import make_marian

PAD, EOS, IGNORED = 0, 1, -100


def main(settings: dict[str, Any]) -> None:
    turns = Turns()

    class Counting(Seq2SeqTrainer):  # type: ignore[misc]
        def training_step(self, model: nn.Module, inputs: dict[str, Tensor], *rest: Any) -> Tensor:
            turns.count_tokens(int((inputs["labels"] != IGNORED).sum()))
            return super().training_step(model, inputs, *rest)

    sizes = (settings[name] for name in ("vocabulary", "d_model", "heads", "hidden", "layers", "dropout", "max_length"))
    rows = [json.loads(line) for line in Path(settings["pairs"]).read_text().splitlines()]
    examples = [{"input_ids": [*source, EOS], "labels": [*target, EOS]} for source, target in rows]
    with tempfile.TemporaryDirectory() as folder:
        arguments = Seq2SeqTrainingArguments(
            folder,
            use_cpu=True,
            bf16=settings["precision"] == "bfloat16",
            per_device_train_batch_size=settings["rows"],
            train_sampling_strategy="group_by_length",
            label_smoothing_factor=settings["smoothing"],
            max_grad_norm=settings["max_grad_norm"],
            learning_rate=settings["rate"],
            lr_scheduler_type="constant",
            optim="adamw_torch_fused",
            num_train_epochs=1000,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        Counting(make_marian(*sizes), arguments, train_dataset=examples, data_collator=_collate).train()


def _collate(rows: list[dict[str, list[int]]]) -> dict[str, Tensor]:
    """Collate as `DataCollatorForSeq2Seq`, without a tokenizer."""
    source = _pad_rows([row["input_ids"] for row in rows], PAD)  # (B, S)
    labels = _pad_rows([row["labels"] for row in rows], IGNORED)  # (B, T)
    decoder_input_ids = torch.cat((torch.full((len(rows), 1), PAD), labels[:, :-1].clamp(min=PAD)), dim=1)  # (B, T)
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "labels": labels,
        "decoder_input_ids": decoder_input_ids,
    }


def _pad_rows(rows: list[list[int]], padding_value: int) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=padding_value)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
