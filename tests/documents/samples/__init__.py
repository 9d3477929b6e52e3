"""Generators of test files: by suffix, a function from a random generator to the content of a file."""
