"""HTTP server for model folders: routes, request batching, limits, keys, metrics."""
