"""Training: from the settings of a run to the folder of a trained model."""
