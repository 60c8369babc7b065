"""Whether TeX is here; tests that need it skip, and say with which command it comes."""

from __future__ import annotations

import pytest

from loupe.metrics.cdm import PROFILES
from loupe.metrics.cdm.drawing.tex_tools import tex_tools


def need_tex(*profiles: str, renderer: str = "layout") -> None:
    """Skip the test or module where these profiles cannot be rendered."""
    for profile in profiles:
        tools = tex_tools(PROFILES[profile], renderer)
        if tools.missing:
            why = f"SKIPPED: no TeX for CDM ({', '.join(tools.missing)}); {tools.hint}"
            pytest.skip(why, allow_module_level=True)
