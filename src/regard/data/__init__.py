"""From files to batches: readers, corpus checks (`doctor`), token shards, batch order, training tasks.

    files -> readers -> Example -> shards (token ids) -> order -> tasks -> batches

Only `batches/batch.py` and `batches/loader.py` import torch.
"""
