"""Token shards: the format on disk, writing them, reading them from elsewhere."""
