"""Engines: one module per kind, each with `Settings` (its profile keys) and `open_engine(settings)`."""

from loupe.lazily import callable_package

callable_package(__name__, "loupe.api.listing:engines")
