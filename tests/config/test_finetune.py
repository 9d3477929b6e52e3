"""Settings of adapters."""

from regard.config.finetune import LoraConfig


def test_the_scale_follows_rank_and_alpha() -> None:
    assert LoraConfig(rank=4, alpha=16.0).scale == 4
    assert LoraConfig(rank=4, alpha=16.0, rslora=True).scale == 8
