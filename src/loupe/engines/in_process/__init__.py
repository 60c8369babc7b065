"""A function of the caller's as an engine, in this very process: a model that is loaded already stays where it is."""

from __future__ import annotations

from loupe.engines.in_process.asking import open_function
from loupe.engines.in_process.functions import Function, Page, Settings, function_of

__all__ = ["Function", "Page", "Settings", "function_of", "open_function"]
