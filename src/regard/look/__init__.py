"""Look inside a model: attention, search, sampling and head ablation for one text.

`document` defines the format, `build` creates it, `local` serves it on this machine.
"""
