"""Statistics of scores: bootstrap intervals, paired comparison, ranks."""
