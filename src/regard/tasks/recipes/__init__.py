"""The recipe of each task: how `regard train` chooses settings for a corpus. No module here imports torch."""
