"""Train Hugging Face's `Seq2SeqTrainer` with the corpus, tokens, model size and CPU time of `run.py`, for comparison.

    python examples/europarl/hugging_face.py --run europarl/run --data path/to/europarl --out europarl_hf --minutes 120

The model is a `PegasusForConditionalGeneration`. It is the same architecture as Regard's pre-norm encoder-decoder with
sinusoidal positions, so that Regard can import its weights and translate with the same search. It gets fused AdamW,
label smoothing and batches grouped by length, the best that Hugging Face offers. Minutes are CPU time summed over
threads, so that other load does not count. The learning rate decays to 0 with this time, so that no number of steps is
needed beforehand. A trial first measures whether float32 or bfloat16 is faster (not counted in the minutes). SIGTERM
saves the state and ends the script with code 75; the same command continues.
"""

import argparse
import json
import math
import signal
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch
from run import count_warmup, evaluate  # type: ignore[import-not-found]
from torch import Tensor, nn
from transformers import (
    PegasusConfig,
    PegasusForConditionalGeneration,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    TrainerCallback,
)

from regard.config.codec import RUN_FILES
from regard.config.inputs import TokensConfig
from regard.config.model import EncoderDecoderConfig
from regard.config.parts import attention_stack
from regard.config.run import RunConfig
from regard.config.toml_file import to_dict
from regard.exchange.huggingface.pegasus import PEGASUS
from regard.exchange.mapping import to_regard
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights
from regard.training.data import RunData, prepare_data

Pair = tuple[list[int], list[int]]
IGNORED = -100
SINUSOIDAL = {"kind": "sinusoidal", "layout": "halves"}
TRIAL_STEPS = 50  # steps of a trial: as many as are grouped by length
SKIPPED_STEPS = 4  # steps of a trial that do not count
MAX_STEPS = 10**6
LOG_EVERY = 100  # steps between two lines of the log
SAVE_EVERY = 500  # steps between two checkpoints
STOPPED = 75  # exit code after a requested stop, as of `regard train`


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="Regard's run: its corpus, vocabulary and model size")
    parser.add_argument("--data", type=Path, required=True, help="folder of the test set")
    parser.add_argument("--out", type=Path, required=True, help="folder of the trained model and its results")
    parser.add_argument("--rate", type=float, default=1e-3, help="peak of the learning rate")
    parser.add_argument("--minutes", type=float, default=120, help="CPU-minutes, summed over threads")
    parser.add_argument("--threads", type=int, default=1, help="number of CPU threads")
    parser.add_argument("--trial", action="store_true", help="measure the validation loss, translate nothing")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    run = RUN_FILES.load(options.run / "run.toml")
    data = prepare_data(run, RunFolder(options.run), lambda _: None)
    run = RUN_FILES.parse(to_dict(run), dict.fromkeys(("model.encoder.position", "model.decoder.position"), SINUSOIDAL))
    pairs = list(data.train.iter_pairs())
    use_bfloat16, step_seconds = _choose_precision(run, data, pairs, options.out)
    training = _Training(run, data, pairs, options.out / "trainer", options.rate)
    if not training.train(use_bfloat16, options.minutes, count_warmup(int(60 * options.minutes / step_seconds))):
        sys.exit(STOPPED)
    assert isinstance(run.model, EncoderDecoderConfig)  # noqa: S101 - a translator
    regard_model = build(run.model, seed=run.seed)
    weight_map = PEGASUS.make_weight_map(run.model, run.data.max_length)
    regard_model.load_state_dict(to_regard(weight_map, training.model.state_dict()))
    card = "Trained with Hugging Face's Seq2SeqTrainer.\n"
    write_model(options.out / "model", run.model, data.tokenizers, get_weights(regard_model), card, replace=True)
    results: dict[str, Any] = evaluate(options.data, options.out / "model", options.out, is_trial=options.trial)
    results |= {"steps": training.steps, "bfloat16": use_bfloat16, "rate": options.rate}
    (options.out / "RESULTS.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(results))


def _choose_precision(run: RunConfig, data: RunData, pairs: list[Pair], folder: Path) -> tuple[bool, float]:
    """Return whether bfloat16 is faster than float32, and the CPU-seconds of a step in the faster precision.

    The first call measures it, others read the answer.
    """
    path = folder / "speed.json"
    if not path.is_file():
        step_seconds = {
            name: _Training(run, data, pairs, folder / "trial", 1e-3).measure_step(use_bfloat16)
            for name, use_bfloat16 in (("float32", False), ("bfloat16", True))
        }
        print(f"CPU-seconds per step: {step_seconds}", flush=True)
        path.write_text(json.dumps(step_seconds) + "\n", encoding="utf-8")
    step_seconds = json.loads(path.read_text(encoding="utf-8"))
    return step_seconds["bfloat16"] < step_seconds["float32"], min(step_seconds.values())


class _Training:
    """A new model and its training data."""

    def __init__(self, run: RunConfig, data: RunData, pairs: list[Pair], folder: Path, rate: float) -> None:
        self.run, self.folder, self.rate, self.steps = run, folder, rate, 0
        specials = data.tokenizers.target.specials
        self.pad, self.bos, self.eos = specials.pad, specials.bos, specials.eos
        self.examples = [{"input_ids": [*source, self.eos], "labels": [*target, self.eos]} for source, target in pairs]
        torch.manual_seed(run.seed)
        self.model = PegasusForConditionalGeneration._from_config(self._config(), attn_implementation="sdpa")

    def measure_step(self, use_bfloat16: bool) -> float:
        """Return the mean CPU-seconds of a step."""
        clock = _Clock(math.inf, None)
        self._trainer(TRIAL_STEPS, use_bfloat16, clock, TRIAL_STEPS).train()
        return statistics.fmean(clock.step_seconds[SKIPPED_STEPS:])

    def train(self, use_bfloat16: bool, minutes: float, warmup: int) -> bool:
        """Train until the CPU-minutes are used up, from the last checkpoint; return False if a signal came before."""
        self.folder.mkdir(parents=True, exist_ok=True)
        clock = _Clock(60 * minutes, self.folder / "clock.json")
        signal.signal(signal.SIGTERM, clock.stop)
        trainer = self._trainer(MAX_STEPS, use_bfloat16, clock, warmup)
        trainer.train(resume_from_checkpoint=any(self.folder.glob("checkpoint-*")) or None)
        self.steps = trainer.state.global_step
        self.model.eval()
        return clock.remaining_fraction() == 0

    def _trainer(self, steps: int, use_bfloat16: bool, clock: "_Clock", warmup: int) -> Seq2SeqTrainer:
        settings = self.run.train
        optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=self.rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warmup, clock.remaining_fraction())
        )
        lengths = [max(len(example["input_ids"]), len(example["labels"])) for example in self.examples]
        arguments = Seq2SeqTrainingArguments(
            str(self.folder),
            use_cpu=True,
            bf16=use_bfloat16,
            max_steps=steps,
            per_device_train_batch_size=max(1, round(0.9 * self.run.data.batch_tokens / statistics.fmean(lengths))),
            gradient_accumulation_steps=self.run.gradient_accumulation,
            train_sampling_strategy="group_by_length",
            label_smoothing_factor=settings.label_smoothing,
            max_grad_norm=settings.max_grad_norm,
            logging_strategy="no",
            save_strategy="no" if clock.path is None else "steps",
            save_steps=SAVE_EVERY,
            save_total_limit=1,
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
        assert isinstance(model, EncoderDecoderConfig)  # noqa: S101 - a translator
        assert isinstance(model.source, TokensConfig)  # noqa: S101
        sides: dict[str, Any] = {}
        encoder, decoder = attention_stack(model.encoder), attention_stack(model.decoder)
        for name, stack in (("encoder", encoder), ("decoder", decoder)):
            sides[f"{name}_layers"] = stack.layers
            sides[f"{name}_attention_heads"] = stack.attention.heads
            sides[f"{name}_ffn_dim"] = stack.feedforward.d_ff
        return PegasusConfig(
            vocab_size=model.source.vocabulary,
            max_position_embeddings=self.run.data.max_length,
            d_model=model.d_model,
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

    def __init__(self, seconds: float, path: Path | None) -> None:
        self.max_seconds, self.path, self.step_seconds = seconds, path, list[float]()
        self._earlier_seconds = 0.0 if path is None or not path.is_file() else json.loads(path.read_text("utf-8"))
        self._start_time = self._last_time = time.process_time()
        self._is_stopped = False

    def stop(self, *_: object) -> None:
        """Stop after this step."""
        self._is_stopped = True

    def used_seconds(self) -> float:
        """Return the CPU-seconds since the beginning of training, those before a stop included."""
        return self._earlier_seconds + time.process_time() - self._start_time

    def remaining_fraction(self) -> float:
        """Return the fraction of the time that is left."""
        return max(0.0, 1 - self.used_seconds() / self.max_seconds)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._start_time = self._last_time = time.process_time()

    def on_step_end(self, _: Any, state: Any, control: Any, **__: Any) -> None:
        now = time.process_time()
        self.step_seconds.append(now - self._last_time)
        self._last_time = now
        if state.global_step % LOG_EVERY == 0:
            print(
                f"step {state.global_step}, epoch {state.epoch:.2f}, {self.used_seconds() / 60:.1f} minutes",
                flush=True,
            )
        control.should_save |= self._is_stopped
        control.should_training_stop |= self._is_stopped or self.remaining_fraction() == 0

    def on_save(self, *_: Any, **__: Any) -> None:
        assert self.path is not None  # noqa: S101 - a trial saves nothing
        self.path.write_text(json.dumps(self.used_seconds()), encoding="utf-8")


def _pad_rows(rows: list[list[int]], padding_value: int) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=padding_value)


if __name__ == "__main__":
    main()
