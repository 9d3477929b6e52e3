"""Automatic configuration: settings that suit a corpus, with a reason for each."""
