"""Whether TeX is here; tests that need it skip, and say with which command it comes."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from loupe.metrics.cdm import PROFILES
from loupe.metrics.cdm.drawing.tex_setup import tex_tools


def need_tex(*profiles: str) -> None:
    """Skip the test or module where these profiles cannot be rendered."""
    for profile in profiles:
        tools = tex_tools(PROFILES[profile])
        if tools.missing:
            why = f"SKIPPED: no TeX for CDM ({', '.join(tools.missing)}); {tools.hint}"
            pytest.skip(why, allow_module_level=True)


def need_ghostscript(*profiles: str) -> None:
    """Skip the test if Ghostscript or TeX for these profiles is missing."""
    need_tex(*profiles)
    if shutil.which("gs") is None:
        pytest.skip("SKIPPED: no Ghostscript; sudo apt-get install ghostscript")


def official_pixels() -> int:
    """How far a box of the exact renderer may lie from the official one: 0 with the official Ghostscript, 10.00.

    Another one, and the TeX that comes with it, round edges otherwise: Debian 13's move one box in eight by 1 pixel.
    """
    version = subprocess.run(["gs", "--version"], capture_output=True, text=True, check=True).stdout
    return 0 if version.startswith("10.00") else 1
