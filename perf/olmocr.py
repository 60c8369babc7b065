"""olmOCR-Bench: math tests against one page per equation, and a set of the published size, cold and warm.

    python perf/olmocr.py [--share 1.0] [--cores 2] [--naive 40]

First a set of ours is written (tests/support/olmocr_set.py): 7,019 tests on 1,403 pages, 3,385 of them math, thirty
equations on a page with math. `loupe score` then reads and scores the candidate's folder in a process of its own:
cold (no equation was drawn before; starting the browsers is part of it), and warm (all were; the run is new).
Printed, of all processes together, browsers included: wall seconds, seconds of processor time, the peak of their
memory (what they share is divided among them); and the headline. On a busy machine the wall says little: processor
time divided by cores is what an idle one needs.

One page per equation, in the same run: a browser context and a page for each, KaTeX loaded into it, as upstream does.
Measured on `--naive` equations of the set, warm; times the equations that upstream would draw, one after the other
until the first match, each once, this gives its seconds for the math tests. Ours are the seconds of the cold run less
those of the same run without math tests. Goals: at least 100 times as fast; under 3 minutes cold, 20 seconds warm.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.olmocr_set import write_olmocr_set

from loupe.benchmarks.olmocr_bench.equations import render_and_match
from loupe.benchmarks.olmocr_bench.page_facts import questions
from loupe.benchmarks.olmocr_bench.page_text import PageText
from loupe.benchmarks.olmocr_bench.records import MathRule
from loupe.benchmarks.shared.equations.rendering.chromium import browser_environment, chromium_program
from loupe.data.hub.katex import Katex, katex_folder, read_katex
from scoring import _children

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_POLL_SECONDS = 0.2
_PAGE = """<!DOCTYPE html><html><head><style>body { display: flex; justify-content: center; align-items: center;
height: 100vh; margin: 0 } #c { padding: 0; font-size: 24px }</style></head><body><div id="c"></div></body></html>"""
_DRAW = """equation => {
  try { katex.render(equation, document.getElementById("c"), { displayMode: true, throwOnError: true }); }
  catch (error) { return null; }
  return Array.from(document.querySelectorAll("span")).filter(s => s.children.length === 0).map(s => {
    const box = s.getBoundingClientRect();
    return [s.textContent.trim(), box.x, box.y, box.width, box.height];
  });
}"""


@dataclass
class Cost:
    """What a command took: wall seconds, processor seconds and the peak of memory in MiB of all its processes."""

    wall: float = 0.0
    processor: dict[int, float] = field(default_factory=dict)
    peak: float = 0.0

    def look(self, pid: int) -> None:
        """Account for what runs now below a process (Linux)."""
        pids = [pid, *_children(pid)]
        self.processor |= {each: seconds for each in pids if (seconds := _processor_seconds(each))}
        self.peak = max(self.peak, sum(map(_memory, pids)))


def run_watched(words: list[str], environment: dict[str, str]) -> tuple[str, Cost]:
    """Run a command to its end; its standard output, and what it took. A failure ends the program."""
    cost, began = Cost(), time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(words, stdout=out, stderr=err, env=environment)
        while process.poll() is None:
            cost.look(process.pid)
            time.sleep(_POLL_SECONDS)
        cost.wall = time.perf_counter() - began
        for stream in (out, err):
            stream.seek(0)
        if process.returncode != 0:
            raise SystemExit(err.read())
        return out.read(), cost


def _processor_seconds(pid: int) -> float:
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def _memory(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def seconds_of_score(root: Path, cores: int, *options: str) -> tuple[Cost, float]:
    """Cost and headline of scoring the candidate in a new run; the cache lies below `root`."""
    environment = os.environ | {"XDG_CACHE_HOME": str(root / "cache"), "LOUPE_KATEX_DIR": str(katex_folder())}
    with tempfile.TemporaryDirectory() as runs:
        words = [sys.executable, "-m", "loupe", "score", "olmocr_bench", str(root / "candidate"), "--data", str(root)]
        words += ["--runs", runs, "--json", "-j", str(cores), *(word for each in options for word in ("-o", each))]
        output, cost = run_watched(words, environment)
    result = json.loads(output)
    broken = [failure for failure in result["failures"] if failure["class"] == "scorer"]
    if broken:
        raise SystemExit(f"{len(broken)} pages were not scored: {broken[0]}")
    return cost, result["measures"]["overall"]["value"]


def equations_upstream_draws(root: Path) -> list[str]:
    """All references, and of every page the equations up to the first match of each test; drawn once each."""
    drawn: dict[str, None] = {}
    for file in (root / "arxiv_math.jsonl", root / "old_scans_math.jsonl"):
        pages: dict[str, list[MathRule]] = {}
        for line in file.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            pages.setdefault(record["pdf"], []).append(MathRule(record["math"]))
            drawn[record["math"]] = None
        for pdf, rules in pages.items():
            page = PageText((root / "candidate" / pdf.replace(".pdf", "_pg1_repeat1.md")).read_text(encoding="utf-8"))
            for reference, equations in questions(page, rules):
                matched = render_and_match(reference, equations).matched
                drawn |= dict.fromkeys(equations if matched is None else equations[: matched + 1])
    return list(drawn)


def seconds_of_one_page_each(equations: list[str]) -> float:
    """Seconds per equation where each gets a context and a page of its own; one browser, started before."""
    from playwright.sync_api import sync_playwright

    katex = read_katex()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_program(), args=["--no-sandbox"], env=dict(browser_environment())
        )
        draw_alone(browser, katex, equations[0])
        began = time.perf_counter()
        for equation in equations[1:]:
            draw_alone(browser, katex, equation)
        seconds = (time.perf_counter() - began) / len(equations[1:])
        browser.close()
    return seconds


def draw_alone(browser: Browser, katex: Katex, equation: str) -> object:
    """One equation in a page of its own."""
    context = browser.new_context(viewport={"width": 800, "height": 400})
    page = context.new_page()
    page.set_content(_PAGE)
    page.add_style_tag(content=katex.style)
    page.add_script_tag(content=katex.script)
    page.wait_for_load_state("networkidle", timeout=0)
    found = page.evaluate(_DRAW, equation)
    context.close()
    return found


def main() -> None:
    """Write the set, measure, print."""
    parser = argparse.ArgumentParser(description="Seconds of scoring olmOCR-Bench.")
    parser.add_argument("--share", type=float, default=1.0, help="share of the published set's size")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--naive", type=int, default=40, help="equations that get a page of their own")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_olmocr_set(root, share=chosen.share)
        print(f"{'run':<20}{'wall s':>10}{'processor s':>13}{'peak MiB':>10}{'overall':>10}")
        found = {}
        for name, options in (("cold", ()), ("warm", ()), ("without math tests", ("math=skip",))):
            cost, overall = seconds_of_score(root, chosen.cores, *options)
            found[name], processor = cost.wall, sum(cost.processor.values())
            print(f"{name:<20}{cost.wall:>10.1f}{processor:>13.1f}{cost.peak:>10.0f}{overall:>10.4f}", flush=True)
        os.environ["LOUPE_KATEX_DIR"], os.environ["XDG_CACHE_HOME"] = str(katex_folder()), str(root / "cache")
        equations = equations_upstream_draws(root)
        alone = seconds_of_one_page_each(random.Random(1).sample(equations, min(chosen.naive + 1, len(equations))))
        ours = found["cold"] - found["without math tests"]
        theirs = alone * len(equations)
        print(f"one page per equation: {alone:.3f} s each, {len(equations):,} equations: {theirs:,.0f} s")
        print(f"ours: {ours:.1f} s for the math tests: {theirs / ours:.0f} times as fast")


if __name__ == "__main__":
    main()
