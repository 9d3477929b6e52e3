"""Packages for Argos Translate, which also run in LibreTranslate and its desktop clients."""
