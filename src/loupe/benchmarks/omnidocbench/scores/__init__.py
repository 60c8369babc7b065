"""Scores of matched pairs, and the figures, headline and warnings made from all pages."""
