"""Loupe measures how well machines read documents."""

__version__ = "0.1.0"
