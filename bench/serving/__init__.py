"""Parts of `bench.serve`: models, the bare engine, the load, and the servers of other tools."""
