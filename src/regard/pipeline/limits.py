"""How far a model can count."""

from regard.config.parts import Stack


def max_positions(stack: Stack) -> int | None:
    """How many positions a stack knows; None: as many as you like."""
    return stack.position.length if stack.position.kind == "learned" else None
