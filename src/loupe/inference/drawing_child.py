"""The process that draws pages of a benchmark: samples come in, one answer goes out for each, "" where it is drawn.

It ends when its standard input does.
"""

from __future__ import annotations

import os
import pickle

from loupe.data.bounds import bound_process, bound_seconds, outlive_signals
from loupe.data.messages import die_with_parent, frame, inbox_of
from loupe.errors import PageError, cannot_write, is_refusal


def refusal(error: Exception) -> str:
    """Return what a disk that refuses says, as `Drawer` reads it: number, message and hint; "" for other errors."""
    if not isinstance(error, OSError) or not is_refusal(error) or isinstance(error, PageError):
        return ""
    refused = cannot_write(error.filename or "a temporary file", error)
    return "\0".join(("", str(refused.errno or 0), refused.message, refused.hint))


def one_line(error: Exception) -> str:
    """Format an error as one line of bounded length."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def main() -> None:
    """Draw until standard input ends."""
    outlive_signals()
    die_with_parent()
    orders, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    inbox = inbox_of(os.fdopen(orders, "rb"))
    bound_process()
    from loupe.benchmarks.registry import load_benchmark

    benchmark = load_benchmark(inbox.get().decode())
    assert benchmark.draw is not None
    while True:
        sample = pickle.loads(inbox.get())
        bound_seconds()
        try:
            benchmark.draw(sample)
            problem = ""
        except Exception as error:  # noqa: BLE001  a worker's border: it is the error of this page
            problem = refusal(error) or f"{sample.id}: cannot be drawn ({one_line(error)})"
        view = memoryview(frame(problem.encode(errors="replace")))
        while view:
            view = view[os.write(answers, view) :]
