"""Metrics: pure functions `(prediction, reference)`, usable alone."""
