"""Texts that nobody has published: sentences of our own phrases in many languages, or a user's own texts."""
