"""Where chance comes from."""

import torch


def make_generator(seed: int | None, device: torch.device) -> torch.Generator:
    """A generator with this seed; with one of its own, another every time, if there is none."""
    generator = torch.Generator(device)
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    return generator
