"""Fuzzing of the parsers of foreign files: any bytes give a result or a `RegardError`, quickly and in little memory."""
