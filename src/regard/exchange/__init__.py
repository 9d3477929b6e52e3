"""Import and export of models: `torch.nn`, Hugging Face, GGUF, ONNX, CTranslate2, PEFT, Argos Translate."""
