"""Folders and files made to do harm: each must be refused, quickly, with a clear message and nothing executed."""
