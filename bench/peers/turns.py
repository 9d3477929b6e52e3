"""A training loop that runs in turns: the peer's side of `contest`.

The loop is the peer's own, unchanged. After each optimizer step a torch hook checks whether the turn is over. If so, it
reports the turn's target tokens (without padding) and CPU-seconds, and waits for the next request: between two turns
the process uses no CPU. The report of the first step means that the peer is ready.

The peer's own Python runs this file; Regard need not be installed there.
"""

import json
import os
import sys
import time
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


class Turns:
    """Counts the tokens of a training loop and pauses it between turns."""

    def __init__(self, per_step: int = 0) -> None:
        """Count `per_step` tokens with every step; loops whose steps differ in size call `count_tokens` instead."""
        torch.set_num_threads(1)
        self._reports = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)  # what the peer prints goes to its log
        self._per_step, self._tokens, self._requested = per_step, 0, 0
        self._start_time = time.process_time()
        register_optimizer_step_post_hook(self._after_step)

    def count_tokens(self, tokens: int) -> None:
        """Add the number of target tokens, without padding, of the next batch."""
        self._tokens += tokens

    def _after_step(self, *_: Any) -> None:
        self._tokens += self._per_step
        if self._tokens < self._requested:
            return
        seconds = time.process_time() - self._start_time
        print(json.dumps({"tokens": self._tokens, "seconds": seconds}), file=self._reports)
        request = sys.stdin.readline()
        if not request:
            raise SystemExit
        self._requested, self._tokens = int(request), 0
        self._start_time = time.process_time()
