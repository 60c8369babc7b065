"""What comes only with an extra: said once, before a run starts, and not sample by sample."""

from __future__ import annotations

from importlib.util import find_spec

from loupe.errors import MissingToolError


def need(*modules: str, extra: str, purpose: str) -> None:
    """Raise MissingToolError, naming the extra, unless all modules are installed.

    >>> need("json", extra="tables", purpose="TEDS")
    """
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise MissingToolError(
            f"{purpose} needs {' and '.join(missing)}, which {verb} not installed",
            hint=f"pip install 'loupe-ocr[{extra}]'",
        )
