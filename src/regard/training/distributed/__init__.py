"""Distributed training: launching ranks, sharding the model, collectives."""
