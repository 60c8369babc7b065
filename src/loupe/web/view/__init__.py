"""Runs in a browser on this machine, also while they are running (`loupe view`)."""
