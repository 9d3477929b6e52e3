"""GGUF, the file format of llama.cpp: reads metadata, quantized tensors and Llama models."""
