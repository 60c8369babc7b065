"""OCRmyPDF 17: every page drawn and read anew by Tesseract; the text is taken from its side file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`language`: of Tesseract, such as `eng` or `eng+deu`; `arguments`: further ones of the program."""
    import ocrmypdf  # noqa: F401  that it is here is to be known before the first page

    fixed = ["--quiet", "--jobs", "1", "--output-type", "none", "--language", options.get("language", "eng")]
    command = [sys.executable, "-I", "-m", "ocrmypdf", *fixed, *options.get("arguments", [])]

    def read(page: Any) -> str:
        side = "side.txt"
        kind = ["--image-dpi", "150"] if page.type == "image" else ["--mode", "force"]
        done = subprocess.run([*command, *kind, "--sidecar", side, page.path, "-"], capture_output=True, check=False)
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())
            raise RuntimeError(f"ocrmypdf ended with {done.returncode}: {said[-500:]}")
        return Path(side).read_text(encoding="utf-8").strip("\f\n")

    return read
