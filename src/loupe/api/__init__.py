"""Loupe from Python: what `import loupe` offers (docs/api.md), over the same packages as the command line."""
