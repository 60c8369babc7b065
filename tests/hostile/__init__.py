"""Hostile input of every kind, made from a number, and what watches Loupe while it opens it."""
