"""Several ranks that train one model: launching them, sharing the model, collectives."""
