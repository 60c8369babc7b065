"""What the stand-ins for vendors' packages have in common: they note how they were called, and misbehave on demand.

`STAND_IN_NOTES` is a file that gets a line of JSON for each call; `STAND_IN` is `ACTION:STEM`, and what is read from a
file of that name hangs, crashes, raises or wants to upload.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

from PIL import Image

#: A network for documentation, which nobody may use: no packet gets there.
ELSEWHERE = ("203.0.113.7", 443)


def note(call: str, **facts: Any) -> None:
    """Add a line to the notes."""
    if notes := os.environ.get("OMP_STAND_IN_NOTES"):
        with Path(notes).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"call": call, **facts}, default=str) + "\n")


def wanted(stem: str) -> str:
    """What is to happen to this page; "" for nothing but reading it."""
    action, _, page = os.environ.get("OMP_STAND_IN", "").partition(":")
    return action if page == stem else ""


def look_at(path: str | Path) -> str:
    """The page as a stand-in reads it: its name and size, unless something is to happen to it."""
    path = Path(path)
    action = wanted(path.stem)
    if action == "hang":
        time.sleep(600)
    elif action == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif action == "raise":
        raise RuntimeError(f"cannot read {path.stem}")
    elif action == "upload":
        socket.create_connection(ELSEWHERE, timeout=30)
    elif action == "resolve":
        socket.getaddrinfo("open.bigmodel.example", 443)
    if path.suffix == ".pdf":
        return path.stem
    with Image.open(path) as image:
        return f"{path.stem} {image.width}x{image.height}"


note("started", folder=os.getcwd(), files=os.listdir())  # noqa: PTH109, PTH208
