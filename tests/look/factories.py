"""Inputs that several tests of looks use."""

IDS = [20, 41, 62, 83, 104, 125]
LONG = 300  # tokens, more than MAX_COMPLETE_ROWS
SCRIPT = "document.title = 'drawn'"
