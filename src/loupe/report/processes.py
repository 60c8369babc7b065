"""Processes that draw for the report: what hangs or dies there costs its own piece of work."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pebble import ProcessPool


@contextmanager
def process_pool(workers: int) -> Iterator[ProcessPool]:
    """A pool of fresh processes, each for at most 1,000 tasks; what is still running at the end is stopped."""
    from pebble import ProcessPool

    with ProcessPool(max_workers=workers, max_tasks=1000, context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield pool
        finally:
            pool.stop()  # type: ignore[no-untyped-call]
