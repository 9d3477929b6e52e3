"""GGUF, the file format of llama.cpp: metadata, quantized tensors, and Llama models in it. Reads only."""
