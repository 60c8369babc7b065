"""Answers, results and comparisons as files in the layouts that other people's programs read."""
