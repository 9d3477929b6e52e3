"""What a generating model expected at each position of its output: the most probable next tokens."""

from dataclasses import replace

from regard.look.document import NextTokens
from regard.tasks.replay import ModelRun

CANDIDATES = 8  # tokens per position
MAX_POSITIONS = 256  # further positions are left out


def find_next_tokens(run: ModelRun) -> NextTokens:
    """Replay the output once and return the most probable tokens at each of its positions."""
    inputs = replace(run.input, rows=run.input.rows[:MAX_POSITIONS], labels=run.input.labels[:MAX_POSITIONS])
    tokens, logprobs = inputs.most_probable(CANDIDATES)  # (positions, candidates)
    return NextTokens(
        first=inputs.rows[0] + 1,
        tokens=tokens.tolist(),
        probabilities=[[float(f"{value:.6g}") for value in row] for row in logprobs.double().exp().tolist()],
    )
