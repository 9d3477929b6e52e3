"""Token shards: the format on disk, preparation on one machine or a cluster, reading from an object store."""
