"""Look inside a model: attention, search, sampling and ablation of one text as a document, a page and a file.

`document` is the format, `build` makes it, `local` shows it on this machine.
"""
