"""TEXT -> TOKENS: vocabularies that are learned, kept in one file, and give every string back."""
