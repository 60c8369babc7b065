"""Folders as benchmarks: documents of one's own, and saved selections of models."""
