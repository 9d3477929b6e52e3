"""Train Hugging Face's `Seq2SeqTrainer` with the corpus, tokens, model size and CPU time of `run.py`, for comparison.

    python examples/europarl/hugging_face.py --run europarl/run --data ../shared/data/europarl_deen --out europarl_hf \
        --minutes 247

The model is a `PegasusForConditionalGeneration`. It is the same architecture as Regard's pre-norm encoder-decoder with
sinusoidal positions, so that Regard can import its weights and translate the test set with the same search. It gets the
learning rate that `regard train` would choose for Adam here, fused AdamW, label smoothing and batches grouped by
length, the best that Hugging Face offers. Minutes are CPU time summed over threads, so that other load does not count.
The learning rate decays to 0 with this time, so that no number of steps is needed beforehand. A trial first measures
whether float32 or bfloat16 is faster (not counted in the minutes).
"""

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from run import score_test  # type: ignore[import-not-found]
from torch import Tensor, nn
from transformers import (
    PegasusConfig,
    PegasusForConditionalGeneration,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)

from regard.config.codec import RUN_FILES
from regard.config.model import EncoderDecoder, Tokens
from regard.config.parts import attention_stack
from regard.config.run import Run
from regard.config.toml_file import to_dict
from regard.exchange.encoder_decoder import pegasus
from regard.exchange.mapping import to_ours
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights
from regard.train.data import RunData, prepare_data

Pair = tuple[list[int], list[int]]
IGNORED = -100
SINUSOIDAL = {"kind": "sinusoidal", "layout": "halves"}
LEARNING_RATE = 1e-3
WARMUP = 400
TRIAL_STEPS = 50  # steps of a trial: as many as are grouped by length
SKIPPED_STEPS = 4  # steps of a trial that do not count
MAX_STEPS = 10**6
LOG_EVERY = 100  # steps between two lines of the log


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="Regard's run: its corpus, vocabulary and model size")
    parser.add_argument("--data", type=Path, required=True, help="folder of the test set")
    parser.add_argument("--out", type=Path, required=True, help="folder of the trained model and its results")
    parser.add_argument("--minutes", type=float, default=247, help="CPU-minutes, summed over threads")
    parser.add_argument("--threads", type=int, default=2, help="number of CPU threads")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = RUN_FILES.load(options.run / "run.toml")
    data = prepare_data(run, RunFolder(options.run), lambda _: None)
    run = RUN_FILES.parse(to_dict(run), dict.fromkeys(("model.encoder.position", "model.decoder.position"), SINUSOIDAL))
    pairs = list(data.train.iter_pairs())
    step_seconds = {
        use_bfloat16: _Training(run, data, pairs, options.out / "trial").measure_step(use_bfloat16)
        for use_bfloat16 in (False, True)
    }
    use_bfloat16 = step_seconds[True] < step_seconds[False]
    print(
        f"CPU-seconds per step: {step_seconds[False]:.2f} in float32, {step_seconds[True]:.2f} in bfloat16",
        flush=True,
    )
    training = _Training(run, data, pairs, options.out / "trainer")
    training.train(use_bfloat16, options.minutes)
    assert isinstance(run.model, EncoderDecoder)  # noqa: S101 - a translator
    regard_model = build(run.model, seed=run.seed)
    regard_model.load_state_dict(
        to_ours(pegasus(bias=False, max_positions=run.data.max_length), training.model.state_dict())
    )
    card = "Trained with Hugging Face's Seq2SeqTrainer.\n"
    write_model(options.out / "model", run.model, data.tokenizers, get_weights(regard_model), card, replace=True)
    results = score_test(options.data, options.out / "model") | {"steps": training.steps, "bfloat16": use_bfloat16}
    (options.out / "RESULTS.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results))


class _Training:
    """A new model and its training data."""

    def __init__(self, run: Run, data: RunData, pairs: list[Pair], folder: Path) -> None:
        self.run, self.folder, self.steps = run, folder, 0
        specials = data.tokenizers.target.specials
        self.pad, self.bos, self.eos = specials.pad, specials.bos, specials.eos
        self.examples = [{"input_ids": [*source, self.eos], "labels": [*target, self.eos]} for source, target in pairs]
        torch.manual_seed(run.seed)
        self.model = PegasusForConditionalGeneration._from_config(self._config(), attn_implementation="sdpa")

    def measure_step(self, use_bfloat16: bool) -> float:
        """Return the mean CPU-seconds of a step."""
        clock = _Clock(math.inf)
        self._trainer(TRIAL_STEPS, use_bfloat16, clock).train()
        return statistics.fmean(clock.step_seconds[SKIPPED_STEPS:])

    def train(self, use_bfloat16: bool, minutes: float) -> None:
        """Train until the CPU-minutes are used up."""
        clock = _Clock(60 * minutes)
        self._trainer(MAX_STEPS, use_bfloat16, clock).train()
        self.steps = len(clock.step_seconds)
        self.model.eval()

    def _trainer(self, steps: int, use_bfloat16: bool, clock: "_Clock") -> Seq2SeqTrainer:
        settings = self.run.train
        optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / WARMUP, clock.remaining_fraction())
        )
        lengths = [max(len(example["input_ids"]), len(example["labels"])) for example in self.examples]
        arguments = Seq2SeqTrainingArguments(
            str(self.folder),
            use_cpu=True,
            bf16=use_bfloat16,
            max_steps=steps,
            per_device_train_batch_size=max(1, round(0.9 * self.run.data.batch_tokens / statistics.fmean(lengths))),
            gradient_accumulation_steps=self.run.accumulate,
            train_sampling_strategy="group_by_length",
            label_smoothing_factor=settings.label_smoothing,
            max_grad_norm=settings.clip,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        return Seq2SeqTrainer(
            self.model,
            arguments,
            train_dataset=self.examples,
            data_collator=self._collate,
            callbacks=[clock],
            optimizers=(optimizer, schedule),
        )

    def _collate(self, rows: list[dict[str, list[int]]]) -> dict[str, Tensor]:
        source = _pad_rows([row["input_ids"] for row in rows], self.pad)  # (B, S)
        labels = _pad_rows([row["labels"] for row in rows], IGNORED)  # (B, T)
        shifted_labels = labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.pad)
        decoder_input_ids = torch.cat((torch.full((len(rows), 1), self.bos), shifted_labels), dim=1)  # (B, T)
        attention_mask = (source != self.pad).long()
        return {
            "input_ids": source,
            "attention_mask": attention_mask,
            "labels": labels,
            "decoder_input_ids": decoder_input_ids,
        }

    def _config(self) -> PegasusConfig:
        model = self.run.model
        assert isinstance(model, EncoderDecoder)  # noqa: S101 - a translator
        assert isinstance(model.source, Tokens)  # noqa: S101
        sides: dict[str, Any] = {}
        encoder, decoder = attention_stack(model.encoder), attention_stack(model.decoder)
        for name, stack in (("encoder", encoder), ("decoder", decoder)):
            sides[f"{name}_layers"] = stack.layers
            sides[f"{name}_attention_heads"] = stack.attention.heads
            sides[f"{name}_ffn_dim"] = stack.feedforward.hidden
        return PegasusConfig(
            vocab_size=model.source.vocabulary,
            max_position_embeddings=self.run.data.max_length,
            d_model=model.width,
            activation_function="relu",
            dropout=decoder.dropout.sublayer,
            attention_dropout=decoder.dropout.attention,
            activation_dropout=decoder.dropout.feedforward,
            scale_embedding=True,
            pad_token_id=self.pad,
            eos_token_id=self.eos,
            decoder_start_token_id=self.bos,
            forced_eos_token_id=None,
            **sides,
        )


class _Clock(TrainerCallback):  # type: ignore[misc]
    """Measures the CPU time of every step and stops training when the time is used up."""

    def __init__(self, seconds: float) -> None:
        self.max_seconds, self.step_seconds = seconds, list[float]()
        self._start_time = self._last_time = time.process_time()

    def remaining_fraction(self) -> float:
        """Return the fraction of the time that is left."""
        return max(0.0, 1 - (time.process_time() - self._start_time) / self.max_seconds)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._start_time = self._last_time = time.process_time()

    def on_step_end(self, _: Any, state: Any, control: Any, **__: Any) -> None:
        now = time.process_time()
        self.step_seconds.append(now - self._last_time)
        self._last_time = now
        if len(self.step_seconds) % LOG_EVERY == 0:
            print(
                f"step {len(self.step_seconds)}, epoch {state.epoch:.2f}, {(now - self._start_time) / 60:.1f} minutes",
                flush=True,
            )
        control.should_training_stop |= self.remaining_fraction() == 0


def _pad_rows(rows: list[list[int]], padding_value: int) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=padding_value)


if __name__ == "__main__":
    main()
