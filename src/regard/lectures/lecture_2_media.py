"""Numbers and controls of lecture 2 about masked models, adapters, images and sound."""

from collections import Counter
from itertools import permutations

import numpy as np
import torch
from torch import nn

from regard.base.labels import IGNORE_INDEX
from regard.config.codec import preset
from regard.config.finetune import LoraConfig
from regard.config.inputs import MelConfig
from regard.data.batches.arrays import StoredSamples
from regard.data.mel import count_frames, log_mel
from regard.lectures.blocks import Block, Number, Table
from regard.lectures.controls import list_inputs, make_control
from regard.lectures.learned import conditional_bits, draw_patterns
from regard.lectures.load import Facts
from regard.lora import add_adapters, is_adapter
from regard.models.build import build
from regard.models.cost import cost
from regard.tasks.masked_lm import MaskedLMRows
from regard.text.specials import SpecialIds

MODULES = {"attention": LoraConfig().modules, "all": ("encoder.*",)}
SPECIALS = SpecialIds(pad=0, bos=1, eos=2, unk=3, mask=4, cls=5, sep=6)
FIRST_TEXT_ID, VOCABULARY, COUNT = 7, 1000, 200_000


def masked_tokens() -> Facts:
    """Return what happens to tokens under BERT's rule, and the parameters of adapters for BERT."""
    tokens = np.random.default_rng(0).integers(FIRST_TEXT_ID, VOCABULARY, COUNT)
    zero = np.zeros(1, np.int64)
    samples = StoredSamples(tokens, np.array([[COUNT]]), zero, zero, zero, zero - 1)
    text_ids = np.arange(FIRST_TEXT_ID, VOCABULARY)
    rows = MaskedLMRows(SPECIALS, seed=1, text_ids=text_ids, masking="bert").make_arrays(samples)
    assert rows.source is not None  # noqa: S101 - the task reads tokens
    chosen = rows.labels != IGNORE_INDEX
    is_mask, is_same = rows.source == SPECIALS.mask, rows.source == rows.labels
    shares = {"chosen": chosen.mean(), "mask": is_mask.mean(), "same": is_same.mean()}
    shares["random"] = (chosen & ~is_mask & ~is_same).mean()

    def make_bert() -> nn.Module:
        with torch.device("meta"):
            return build(preset("bert"))

    parameters = sum(parameter.numel() for parameter in make_bert().parameters())

    def compute(rank: int, modules: str) -> dict[str, Number]:
        model = make_bert()
        add_adapters(model, LoraConfig(rank=rank, modules=MODULES[modules]))
        trained = sum(weight.numel() for name, weight in model.named_parameters() if is_adapter(name))
        return {"trained": trained, "share": trained / parameters}

    shapes = {}
    for kind, patterns in MODULES.items():
        model = make_bert()
        names = add_adapters(model, LoraConfig(modules=patterns))
        linears = [model.get_submodule(name) for name in names]
        sizes = Counter((linear.in_features, linear.out_features) for linear in linears)
        shapes[kind] = [(*size, count) for size, count in sizes.items()]
    cases = list_inputs("rank modules", (256, "all"), (1, "all"), (8, "attention"))
    params = {"matrices": shapes, "parameters": parameters}
    control = make_control("rank", "Adapters for BERT (preset bert)", params, compute, *cases)
    numbers = {"bert": shares, "eight": compute(8, "attention"), "parameters": parameters}
    return Facts(numbers, {"control": control})


def pixel_orders() -> Facts:
    """Return the bits of images of 2 x 2 pixels in any order, and what many colors cost."""
    images = draw_patterns(10_000)
    numbers = (images * torch.tensor([8, 4, 2, 1])).sum(dim=1)  # pixel 1 is the highest bit

    def compute(order: str) -> dict[str, Number]:
        bits = conditional_bits(images, [int(pixel) - 1 for pixel in order])
        return {f"bits_{i}": value for i, value in enumerate(bits)} | {"sum": sum(bits)}

    orders = ["".join(map(str, order)) for order in permutations(range(1, 5))]
    params = {"counts": numbers.bincount(minlength=16).tolist(), "orders": orders}
    control = make_control(
        "pixel-orders", "Four pixels in 24 orders", params, compute, {"order": "4321"}, {"order": "1234"}
    )
    rows = []
    for colors in (16, 256, 2**24):
        model = cost(preset("image-gpt", {"tokens.vocabulary": colors}), batch_size=1, target=1)
        rows.append((f"{colors:,}", model.parameters["tokens"], model.parameters["decoder"], model.forward["head"]))
    columns = ("colors K", "parameters of the colors", "of the layers", "FLOPs of a softmax row")
    blocks: dict[str, Block] = {"control": control}
    blocks["colors"] = Table(title="The preset image-gpt by its colors", columns=columns, rows=rows)
    return Facts({"first": compute("1234"), "last": compute("4321"), "all": rows[2][1], "layers": rows[2][2]}, blocks)


def mel_tokens() -> Facts:
    """Return the mel spectrogram of tones, and the number of tokens of a recording."""
    settings = MelConfig(bins=40, frames=2, rate=8000)

    def compute(hertz: int, seconds: float) -> dict[str, Number]:
        samples = round(seconds * 8000)
        tone = (20_000 * np.sin(2 * np.pi * hertz * np.arange(samples) / 8000)).astype(np.int16)
        frames = int(count_frames(np.array(samples), settings))
        loudest = int(log_mel(tone, settings)[frames // 2].argmax())
        return {"loudest": loudest, "samples": samples, "frames": frames, "tokens": settings.count_vectors(frames)}

    inputs = list_inputs("hertz seconds", (3000, 0.5), (200, 2.5), (1000, 1), (440, 1))
    sizes = {"rate": 8000, "window": settings.window_samples, "hop": settings.hop_samples, "bins": 40, "frames": 2}
    control = make_control("mel", "A pure tone, 8,000 samples per second", sizes, compute, *inputs)
    numbers = {"second": compute(440, 1), "low": compute(200, 1), "high": compute(3000, 1)}
    return Facts(numbers, {"control": control})
