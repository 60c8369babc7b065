"""Engines: one module per kind, each with `Settings` (its profile keys) and `open_engine(settings)`."""
