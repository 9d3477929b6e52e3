"""Find the engines that can represent a model exactly, from its settings alone and before training.

>>> from regard.config.codec import preset
>>> [verdict.target for verdict in exportable_to(preset("tiny")) if verdict.is_exact]
['ctranslate2', 'huggingface:MarianMTModel']
>>> print(exportable_to(preset("tiny", {"encoder.window": 8}))[1])
huggingface:MarianMTModel: no, encoder.window is not supported

"Exactly" means equal logits up to rounding, and the same learned weights on both sides. A table that they store and
Regard computes (a sinusoid), or zeros that they store and Regard omits, are not learned weights. `tests/exchange`
checks every architecture with models. The rules are with the targets: `ctranslate2_rules`, and the architectures of
`huggingface`. This module needs no torch.
"""

from dataclasses import dataclass

from regard.config.model import AnyModelConfig
from regard.exchange import ctranslate2_rules
from regard.exchange.huggingface import architectures
from regard.exchange.rules import find_layer_obstacles


@dataclass(frozen=True)
class Exportability:
    """Whether an engine can represent the model: it can if there are no obstacles."""

    target: str
    obstacles: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the engine can represent this model exactly."""
        return not self.obstacles

    def __str__(self) -> str:
        return f"{self.target}: yes" if self.is_exact else f"{self.target}: no, {'; '.join(self.obstacles)}"


def exportable_to(model: AnyModelConfig) -> tuple[Exportability, ...]:
    """Return the result for every engine: CTranslate2 first, then the Hugging Face architectures of the family."""
    common = tuple(find_layer_obstacles(model))
    return (
        Exportability("ctranslate2", common or tuple(ctranslate2_rules.find_obstacles(model))),
        *(Exportability(f"huggingface:{name}", found) for name, found in architectures.find_obstacles(model).items()),
    )


def find_target_obstacles(model: AnyModelConfig, target: str) -> tuple[str, ...]:
    """Return why an export target cannot represent the model; if it has several architectures, for the closest one.

    `onnx` and `web` support every model with attention layers; other limits are only known during the export. `argos`
    supports the translation models that CTranslate2 supports.

    >>> from regard.config.codec import preset
    >>> find_target_obstacles(preset("tiny", {"encoder.window": 8}), "ctranslate2")
    ('encoder.window is not supported',)
    >>> find_target_obstacles(preset("tiny"), "huggingface")
    ()
    """
    if target == "argos" and model.task != "translation":
        return (f"task is {model.task} (it requires translation)",)
    engine = "ctranslate2" if target == "argos" else target
    verdicts = [verdict for verdict in exportable_to(model) if verdict.target.partition(":")[0] == engine]
    return min((verdict.obstacles for verdict in verdicts), key=len, default=tuple(find_layer_obstacles(model)))
