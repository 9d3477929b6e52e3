"""A tiny corpus as Python objects, and settings of a run of two steps on it."""

PAIRS = [(f"the dog number {n} barks", f"der Hund Nummer {n} bellt") for n in range(40)]
TINY = {
    "model.d_model": 16,
    "model.encoder.layers": 1,
    "model.decoder.layers": 1,
    "train.schedule": {"kind": "constant", "lr": 0.001},
    "train.steps": 2,
    "train.average": 1,
    "validation.samples": 0,
    "validation.sentences": 0,
    "validation.metric": "loss",
}
