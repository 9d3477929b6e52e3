"""Stacks without their residual connections or norms."""

from torch import Tensor, nn

from regard.nn.context import Context
from regard.nn.layer import Residual, Sublayer


class Chain(Residual):
    """sublayer(norm(x)) (pre-norm) or norm(sublayer(x)) (post-norm): nothing is added to x."""

    def forward(self, x: Tensor, sublayer: Sublayer, context: Context) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        if self.is_pre_norm:
            return sublayer(self.norm(x), context)
        output: Tensor = self.norm(sublayer(x, context))
        return output


def remove_parts(stack: nn.Module, *, has_residual: bool, has_norm: bool) -> None:
    """Remove the residual connections, the norms inside of them, or both."""
    for module in list(stack.modules()):
        if isinstance(module, Residual):
            if not has_residual:
                module.__class__ = Chain
            if not has_norm:
                module.norm = nn.Identity()
