"""Conversion of weights to and from other libraries: `torch.nn` and Hugging Face."""
