"""The rules, and the checks of those that need one example only."""
