"""How large and how fast the HTML report is: 12 and 1,500 synthetic samples of dense pages, two engines.

Usage: python perf/report_size.py [--samples 12 1500] [--open]     figures and budget: docs/report.md
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.report_browser import chromium
from tests.support.report_runs import Toy, misread, toy_pages

from loupe.report.html import write_report


def dense_pages(root: Path, count: int) -> Toy:
    """Samples of about 3,000 characters, each different, on 48 different A4 pages of 150 dpi full of small print."""
    return toy_pages(root, count, pages=48, characters=3_000, size=(1240, 1754))


def measure(count: int, folder: Path, *, look: bool) -> None:
    """Write one report and print its figures."""
    toy = dense_pages(folder / str(count), count)
    toy.run("good", {sample.id: misread(sample.truth, 83) for sample in toy.samples})
    toy.run("worse", {sample.id: misread(sample.truth, 19) for sample in toy.samples})
    output = folder / f"{count}.html"
    began = time.perf_counter()
    write_report(toy.runs, output, carry=0)
    seconds = time.perf_counter() - began
    size = output.stat().st_size
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count:>6,} samples: {seconds:6.1f} s, {size / 1e6:6.2f} MB, {size / count / 1000:5.1f} KB per sample")
    print(f"{'':>15} largest memory of this process so far: {memory:.0f} MiB")
    if look:
        print(f"{'':>15} browser: {open_times(output)}")


def open_times(output: Path) -> str:
    """Milliseconds until the report can be used, and of the next sample page, as the middle of five."""
    with chromium() as browser:
        ready, pages, sorting = [], [], []
        for _ in range(5):
            page = browser.new_page()
            began = time.perf_counter()
            page.goto(output.as_uri())
            page.locator("html[data-ready]").wait_for()
            ready.append(time.perf_counter() - began)
            began = time.perf_counter()
            page.select_option("#grid-sort", "worst")
            page.locator(".card").first.wait_for()
            sorting.append(time.perf_counter() - began)
            began = time.perf_counter()
            page.locator(".card").first.click()
            page.locator("#sample .pane").first.wait_for()
            pages.append(time.perf_counter() - began)
            page.close()
    figures = [f"{1000 * statistics.median(times):.0f} ms" for times in (ready, sorting, pages)]
    return "ready after {}, sorted after {}, a sample page after {}".format(*figures)


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, nargs="+", default=[12, 1500])
    parser.add_argument("--open", action="store_true", help="open each report in Chromium, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder  # The benchmark that is made here is trusted there, and not by the user.
        for count in arguments.samples:
            measure(count, Path(folder), look=arguments.open)


if __name__ == "__main__":
    main()
