"""A model folder as a service: HTTP routes, batches of requests, limits, keys, metrics."""
