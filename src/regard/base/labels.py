"""The label of positions that are ignored by the loss."""

IGNORE_INDEX = -100  # torch's default for cross-entropy
