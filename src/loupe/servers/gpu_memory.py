"""Whether killed processes still hold memory of an NVIDIA GPU: a driver may take a while to give it back."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable

from loupe.helpers import said_by


def still_held(pids: Iterable[int]) -> set[int]:
    """Those of the processes that `nvidia-smi` lists; none where there is no such program."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return set()
    command = [program, "--query-compute-apps=pid", "--format=csv,noheader"]
    try:
        listed = said_by(command, seconds=10).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return {int(word) for word in listed if word.isdigit()} & set(pids)
