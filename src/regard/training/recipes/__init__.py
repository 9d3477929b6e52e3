"""Automatic configuration: chooses settings for a corpus, with a reason for each."""
