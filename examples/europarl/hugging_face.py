"""The same corpus, pieces, size and minutes for Hugging Face's `Seq2SeqTrainer`: what `run.py` is measured against.

    python examples/europarl/hugging_face.py --run europarl/run --data ../shared/data/europarl_deen --out europarl_hf \
        --minutes 247

The model is a `PegasusForConditionalGeneration`, which is our pre-norm translator with sinusoidal positions by other
names, so that its weights can be read by Regard afterwards and both translate the test split with the same search. It
gets the learning rate that `regard train` would give to Adam here, fused AdamW, label smoothing and batches grouped by
length, the best that it offers. Minutes are those of the CPU, of all threads together, so that a busy machine takes
nothing away from it; the rate falls to 0 as they pass, so that they need not be counted in steps beforehand. Whether
float32 or bfloat16 is the faster is tried out first (outside the minutes).
"""

import argparse
import json
import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from run import scored  # type: ignore[import-not-found]
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
from regard.config.run import Run
from regard.config.tables import to_dict
from regard.exchange.rules import to_ours
from regard.exchange.translators import pegasus
from regard.models.build import build
from regard.store.model_folder import write_model
from regard.store.run_folder import RunFolder
from regard.store.weights import get_weights
from regard.train.corpora import Corpora, corpora

Pair = tuple[list[int], list[int]]
IGNORED = -100
WAVES = {"kind": "sinusoidal", "layout": "halves"}
RATE = 1e-3
WARMUP = 400
TRIED = 50  # steps of a trial, as many as are sorted by length together; the first few do not count
SETTLED = 4
ENDLESS = 10**6
SAID = 100  # steps between two lines of the log


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="our run: its corpus, vocabulary and shape")
    parser.add_argument("--data", type=Path, required=True, help="where the test split is")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=247, help="of the CPU, all threads together")
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    run = RUN_FILES().load(asked.run / "run.toml")
    known = corpora(run, RunFolder(asked.run), lambda _: None)
    run = RUN_FILES().parse(to_dict(run), dict.fromkeys(("model.encoder.position", "model.decoder.position"), WAVES))
    pairs = list(known.train.pairs())
    trial = {narrow: _Training(run, known, pairs, asked.out / "trial").seconds(narrow) for narrow in (False, True)}
    narrow = trial[True] < trial[False]
    print(f"a step takes {trial[False]:.2f} s of CPU in float32, {trial[True]:.2f} s in bfloat16", flush=True)
    training = _Training(run, known, pairs, asked.out / "trainer")
    training.train(narrow, asked.minutes)
    assert isinstance(run.model, EncoderDecoder)  # noqa: S101 - a translator
    ours = build(run.model, seed=run.seed)
    ours.load_state_dict(to_ours(pegasus(bias=False, max_positions=run.data.max_length), training.model.state_dict()))
    card = "Trained by Hugging Face.\n"
    write_model(asked.out / "model", run.model, known.vocabularies, get_weights(ours), card, replace=True)
    found = scored(asked.data, asked.out / "model") | {"steps": training.steps, "bfloat16": narrow}
    (asked.out / "RESULTS.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found))


class _Training:
    """A fresh model and what it learns from."""

    def __init__(self, run: Run, known: Corpora, pairs: list[Pair], place: Path) -> None:
        self.run, self.place, self.steps = run, place, 0
        specials = known.vocabularies.target.specials
        self.pad, self.begin, self.end = specials.pad, specials.bos, specials.eos
        self.examples = [{"input_ids": [*source, self.end], "labels": [*target, self.end]} for source, target in pairs]
        torch.manual_seed(run.seed)
        self.model = PegasusForConditionalGeneration._from_config(self._config(), attn_implementation="sdpa")

    def seconds(self, narrow: bool) -> float:
        """A usual step."""
        clock = _Clock(math.inf)
        self._trainer(TRIED, narrow, clock).train()
        return statistics.fmean(clock.took[SETTLED:])

    def train(self, narrow: bool, minutes: float) -> None:
        """As long as there is time."""
        clock = _Clock(60 * minutes)
        self._trainer(ENDLESS, narrow, clock).train()
        self.steps = len(clock.took)
        self.model.eval()

    def _trainer(self, steps: int, narrow: bool, clock: "_Clock") -> Seq2SeqTrainer:
        train = self.run.train
        optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / WARMUP, clock.left()))
        lengths = [max(len(one["input_ids"]), len(one["labels"])) for one in self.examples]
        arguments = Seq2SeqTrainingArguments(
            str(self.place),
            use_cpu=True,
            bf16=narrow,
            max_steps=steps,
            per_device_train_batch_size=max(1, round(0.9 * self.run.data.batch_tokens / statistics.fmean(lengths))),
            gradient_accumulation_steps=self.run.accumulate,
            train_sampling_strategy="group_by_length",
            label_smoothing_factor=train.label_smoothing,
            max_grad_norm=train.clip,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        return Seq2SeqTrainer(
            self.model,
            arguments,
            train_dataset=self.examples,
            data_collator=self._padded,
            callbacks=[clock],
            optimizers=(optimizer, schedule),
        )

    def _padded(self, rows: list[dict[str, list[int]]]) -> dict[str, Tensor]:
        source = _laid([row["input_ids"] for row in rows], self.pad)  # (B, S)
        labels = _laid([row["labels"] for row in rows], IGNORED)  # (B, T)
        before = labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, self.pad)
        read = torch.cat((torch.full((len(rows), 1), self.begin), before), dim=1)  # (B, T)
        real = (source != self.pad).long()
        return {"input_ids": source, "attention_mask": real, "labels": labels, "decoder_input_ids": read}

    def _config(self) -> PegasusConfig:
        model = self.run.model
        assert isinstance(model, EncoderDecoder)  # noqa: S101 - a translator
        assert isinstance(model.source, Tokens)  # noqa: S101
        sides: dict[str, Any] = {}
        for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
            sides[f"{name}_layers"] = stack.layers
            sides[f"{name}_attention_heads"] = stack.attention.heads
            sides[f"{name}_ffn_dim"] = stack.feedforward.hidden
        return PegasusConfig(
            vocab_size=model.source.vocabulary,
            max_position_embeddings=self.run.data.max_length,
            d_model=model.width,
            activation_function="relu",
            dropout=model.decoder.dropout.sublayer,
            attention_dropout=model.decoder.dropout.attention,
            activation_dropout=model.decoder.dropout.feedforward,
            scale_embedding=True,
            pad_token_id=self.pad,
            eos_token_id=self.end,
            decoder_start_token_id=self.begin,
            forced_eos_token_id=None,
            **sides,
        )


class _Clock(TrainerCallback):  # type: ignore[misc]
    """Times every step by the CPU, and stops when time is over."""

    def __init__(self, seconds: float) -> None:
        self.most, self.took = seconds, list[float]()
        self._began = self._last = time.process_time()

    def left(self) -> float:
        """The part of the time that is still to come."""
        return max(0.0, 1 - (time.process_time() - self._began) / self.most)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._began = self._last = time.process_time()

    def on_step_end(self, _: Any, state: Any, control: Any, **__: Any) -> None:
        now = time.process_time()
        self.took.append(now - self._last)
        self._last = now
        if len(self.took) % SAID == 0:
            print(f"step {len(self.took)}, epoch {state.epoch:.2f}, {(now - self._began) / 60:.1f} minutes", flush=True)
        control.should_training_stop |= self.left() == 0


def _laid(rows: list[list[int]], empty: int) -> Tensor:
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=empty)


if __name__ == "__main__":
    main()
