"""Displayed formulas on their own, after the match of everything: which of many ways to pair them is scored."""
