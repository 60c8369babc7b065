"""Scoring predictions on all cores, and summing scores up into a result."""
