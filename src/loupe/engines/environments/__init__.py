"""Environments of their own for engines whose packages Loupe must not have (kind `environment`)."""
