"""A training loop that runs in turns: the peer's side of `contest`.

The loop is the peer's own and is not changed. After each step of its optimizer a hook of torch's asks whether the turn
is over. If so, it reports the turn's real target tokens and CPU seconds, and sleeps until the next turn is asked for:
between two turns the process costs nothing. The first update is reported as soon as it is made: the peer is ready.

This file is run by the peer's own Python, which need not have Regard.
"""

import json
import os
import sys
import time
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


class Turns:
    """Counts what a loop learns from, and lets it rest."""

    def __init__(self, per_update: int = 0) -> None:
        """`per_update` tokens are counted with every step; loops whose updates differ call `see`."""
        torch.set_num_threads(1)
        self._reports = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)  # whatever the peer prints goes to its log
        self._per_update, self._tokens, self._requested = per_update, 0, 0
        self._start_time = time.process_time()
        register_optimizer_step_post_hook(self._after_step)

    def count_tokens(self, tokens: int) -> None:
        """So many real target tokens are in the batch that comes now."""
        self._tokens += tokens

    def _after_step(self, *_: Any) -> None:
        self._tokens += self._per_update
        if self._tokens < self._requested:
            return
        seconds = time.process_time() - self._start_time
        print(json.dumps({"tokens": self._tokens, "seconds": seconds}), file=self._reports)
        request = sys.stdin.readline()
        if not request:
            raise SystemExit
        self._requested, self._tokens = int(request), 0
        self._start_time = time.process_time()
