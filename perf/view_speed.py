"""How quick `loupe view` is with many samples: the first look at the files, then each page of lists and comparisons.

Usage: python perf/view_speed.py [--samples 10000]     figures: docs/view.md
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.report_runs import misread, toy_pages

from loupe.web.view.board import Board
from loupe.web.view.grid import wanted_of
from loupe.web.view.pages import Pages
from loupe.web.view.shelf import Shelf


def timed(name: str, make: Callable[[], object], times: int = 5) -> None:
    """Print the first time and the middle of the others."""
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        make()
        seconds.append(time.perf_counter() - began)
    later = f"{statistics.median(seconds[1:]):8.3f} s" if times > 1 else ""
    print(f"{name:<44}{seconds[0]:8.3f} s{later}", flush=True)


def _list_samples(pages: Pages, board: Board, query: Mapping[str, str]) -> object:
    return pages.samples(board, wanted_of(board, query), query)


def main() -> None:
    """Measure pages as the server makes them, without the network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000)
    count = parser.parse_args().samples
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder  # The benchmark that is made here is trusted there, and not by the user.
        toy = toy_pages(Path(folder), count, pages=24, characters=400)
        for name, every in (("good", 61), ("worse", 17)):
            toy.run(name, {sample.id: misread(sample.truth, every) for sample in toy.samples})
        shelf = Shelf([Path(folder) / "runs"])
        pages = Pages(shelf)
        print(f"{'':<44}{'first':>10}{'then':>10}")
        timed("files are read", shelf.look, times=1)
        (board,) = shelf.boards()
        timed("tables: ranks, intervals, costs", board.context, times=1)
        timed("every sample is a row", board.rows, times=1)
        lists = {
            "first page of samples": {},
            "page 100": {"page": "100"},
            "worst first": {"order": "worst"},
            "largest difference first": {"order": "spread"},
            "cut off only": {"outcome": "truncated"},
            "one word": {"q": "0777"},
        }
        timed("leaderboard", lambda: pages.board(board))
        for name, query in lists.items():
            timed(name, partial(_list_samples, pages, board, query))
        timed("page of a sample", lambda: pages.sample(board, "book/page-5000", wanted_of(board, {}), {}))
        timed("comparison of two runs", lambda: pages.compare(board, {}), times=3)
        timed("page of a run", lambda: pages.run(board, board.runs[0]))
        time.sleep(1.01)  # a look that is younger is taken again without opening a file
        timed("nothing has changed", lambda: shelf.look().stamp, times=1)
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
