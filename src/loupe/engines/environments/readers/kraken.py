"""Kraken 7: its program with a recognition model of the user's; it has none by default."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def load(options: dict[str, Any]) -> Callable[[Any], str]:
    """`model`: a path, or a model that `kraken get` brought; `arguments`: further ones before `segment`."""
    import kraken  # noqa: F401  that it is here is to be known before the first page

    if not options["model"]:
        raise FileNotFoundError("no recognition model is named")
    program = str(Path(sys.executable).with_name("kraken"))

    def read(page: Any) -> str:
        ways = ["segment", "-bl", "ocr", "-m", options["model"]]
        command = [program, *options.get("arguments", []), "-i", page.path, "page.txt", *ways]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).decode(errors="replace").split())
            raise RuntimeError(f"kraken ended with {done.returncode}: {said[-500:]}")
        return Path("page.txt").read_text(encoding="utf-8")

    return read
