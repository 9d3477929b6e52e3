"""Malicious folders and files: Regard refuses each quickly, with a clear message, and executes nothing."""
