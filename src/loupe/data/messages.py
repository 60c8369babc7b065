"""How processes of ours talk: messages with their length in front, and a child that ends when its parent is gone.

Imports little, for every child starts with it.
"""

from __future__ import annotations

import os
import queue
import signal
import struct
import sys
import threading
from typing import BinaryIO

#: Each message is its length in eight bytes, then its bytes.
HEAD = struct.Struct("!Q")


def frame(message: bytes) -> bytes:
    """A message as it travels."""
    return HEAD.pack(len(message)) + message


def inbox_of(stream: BinaryIO) -> queue.SimpleQueue[bytes]:
    """The messages of the parent, taken at once, so that it never waits on a full pipe.

    When the parent has left, this process ends, whatever it is doing.
    """
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(stream, inbox), daemon=True).start()
    return inbox


def _receive(stream: BinaryIO, inbox: queue.SimpleQueue[bytes]) -> None:
    with stream:
        while len(head := stream.read(HEAD.size)) == HEAD.size:
            (size,) = HEAD.unpack(head)
            message = stream.read(size)
            if len(message) < size:
                break
            inbox.put(message)
    os._exit(0)


def die_with_parent() -> None:
    """Ask Linux for a kill when the parent dies: what is stuck in C code would not notice that it has left."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
