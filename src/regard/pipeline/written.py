"""Which tokens a model may write."""

import torch
from torch import Tensor

from regard.text.tokenizer import Tokenizer


def not_text(tokenizer: Tokenizer, device: torch.device) -> Tensor:
    """Ids that are no text and must not come out: pad, begin, mask, classify, separate and the tags of languages.

    END ends a text, "unknown" stands for one that nobody knows, and the user's extra tokens are text: they may.
    """
    specials = tokenizer.specials
    banned = specials.control - {specials.eos, specials.unk}
    return torch.tensor(sorted(banned), dtype=torch.long, device=device)
