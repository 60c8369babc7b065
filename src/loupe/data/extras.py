"""What comes only with an extra: said once, before a run starts, and not sample by sample."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
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


@cache
def installed(*packages: str) -> dict[str, str]:
    """Releases of packages that scores depend on, "" where one is missing; with lxml the parser inside it.

    >>> sorted(installed("lxml"))
    ['libxml2', 'lxml']
    """
    found = {package: _release(package) for package in packages}
    if found.get("lxml"):
        from lxml import etree

        found["libxml2"] = ".".join(map(str, etree.LIBXML_VERSION))
    return found


def _release(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
