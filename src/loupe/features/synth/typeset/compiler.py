"""The typesetter: typst from its wheel, which reads one folder and nothing else."""

from __future__ import annotations

import functools
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from loupe.data.extras import need
from loupe.errors import UsageError
from loupe.features.synth.typeset.fonts import font_folders

#: No date is part of a page.
_NO_TIME = 0
_HELP = "docs/synth.md#templates"


class TypesetError(UsageError):
    """A page could not be typeset."""


def need_typesetter() -> None:
    """Raise MissingToolError unless the extra is installed."""
    need("typst", extra="synth", purpose="synth")


def typeset(layout: dict[str, Any]) -> bytes:
    """The PDF of a page. Raises TypesetError for a layout that fits on no single page or lacks letters."""
    inputs = {"layout": json.dumps(layout, ensure_ascii=False, sort_keys=True)}
    return compiled(_compiler(), inputs, "the layout of a page")


def compiled(compiler: Any, inputs: dict[str, str], name: str) -> bytes:
    """What a compiler makes of these inputs. Raises TypesetError, with its first line, where it makes nothing."""
    import typst

    try:
        pdf, warnings = compiler.compile_with_warnings(format="pdf", sys_inputs=inputs, timestamp=_NO_TIME)
    except typst.TypstError as error:
        raise TypesetError(f"{name}{_line_of(error.diagnostic)}: {first_line(str(error))}", hint=_HELP) from None
    if warnings:
        raise TypesetError(f"{name}: {first_line(str(warnings[0]))}", hint=_HELP)
    return bytes(pdf)


def first_line(message: str) -> str:
    """The first line of what the typesetter has to say, without the folder that it searched."""
    if "failed to download package" in message:
        return "packages are not loaded: copy what it needs into the folder"
    line = next((line.strip() for line in message.splitlines() if line.strip()), "cannot be typeset")
    return re.sub(r" \(searched at [^)]*\)", "", line)[:300]


def _line_of(diagnostic: str) -> str:
    """The line of a template that an error is in, as `:3`; "" where it is not told."""
    found = re.search(r"┌─ [^\n]*?:(\d+):\d+\s*$", diagnostic, re.MULTILINE)
    return f":{found[1]}" if found else ""


@functools.cache
def _compiler() -> Any:
    import typst

    need_typesetter()
    page = _page()
    return typst.Compiler(str(page), root=str(page.parent), font_paths=font_folders(), package_path=no_packages())


def no_packages() -> str:
    """Where no package can be, as it would lie below a file."""
    return str(_page() / "packages")


def _page() -> Path:
    return Path(str(files("loupe.features.synth.typeset").joinpath("page.typ")))
