"""Token, classification, pixel and contrastive losses, as sums over positions."""
