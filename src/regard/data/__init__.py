"""TOKENS -> BATCHES: readers, the corpus and its doctor, shards, the order, tasks.

    files -> readers -> Example -> shards (token ids) -> order -> tasks -> batches

Only `batch.py` and `loader.py` import torch.
"""
