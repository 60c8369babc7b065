"""Client CPU time per 400 KB page of `loupe infer`, against a bare aiohttp + msgspec loop that sends the same requests.

    python perf/harness_overhead.py [--pages 1000] [--repeats 3] [--small 10000]

The server is a process of its own, and every measurement runs in a fresh process, after a warm-up, so that imports do
not count. Both read the file, encode it and decode the answer; Loupe also hashes the page, classifies the answer,
writes its record to disk and exports it as a file. Only CPU time counts, of all threads, user and system; the two take
turns, so that whatever else the machine does meets both. Printed: milliseconds of CPU per page (the median of the
repeats), the median of their ratios and the range of these, and peak memory. Goals: a ratio of at most 1.5, and 10,000
small samples in under 400 MiB. The exit code is 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.chat_server import in_process

CONCURRENCIES = (1, 16, 64, 256)
PAGE_BYTES = 400_000
WARM_UP = 32
#: The goals: CPU time over that of the bare loop, and memory for 10,000 small samples.
MOST_RATIO, MOST_MB = 1.5, 400
#: A page of about 2,000 characters without repetition.
ANSWER = " ".join(f"word{random.Random(seed).randrange(10**6)}" for seed in range(200))

BENCHMARK = '''"""Pages for measuring the harness."""
from pathlib import Path
from loupe.types import Benchmark, Measure, Sample, Score

def load(root, count: int = 1):
    files = sorted((Path(__file__).parent / "pages").iterdir())
    for number in range(count):
        yield Sample(id=f"page-{number:05}", images=(files[number % len(files)],), truth="")

def score(sample, prediction):
    return [Score(measure="answered", counts=(1.0, 1.0))]

benchmark = Benchmark(title="pages", version="1", task="text", prompt="Read this page.",
                      measures=(Measure(name="answered"),), load=load, score=score)
'''


def make_pages(folder: Path, *, small: bool) -> Path:
    """A benchmark of 16 different page files: JPEGs of about 400 KB, or tiny ones. Returns its module."""
    from PIL import Image

    (folder / "pages").mkdir(parents=True)
    for number in range(16):
        path = folder / "pages" / f"{number:02}.jpg"
        if small:
            Image.new("L", (64, 32), number).save(path)
            continue
        Image.effect_noise((1240, 1754), 14).save(path, quality=85)
        data = path.read_bytes()
        path.write_bytes(data[:PAGE_BYTES] if len(data) > PAGE_BYTES else data + bytes(PAGE_BYTES - len(data)))
    module = folder / "pages_benchmark.py"
    module.write_text(BENCHMARK, encoding="utf-8")
    return module


async def loupe_path(url: str, module: Path, pages: int, concurrency: int) -> None:
    """`loupe infer`, records and all; the run stays beside the pages."""
    from loupe.engines.registry import load_profile
    from loupe.inference.progress import Progress
    from loupe.pipeline import Plan, infer

    overrides = {"base_url": url, "concurrency": concurrency}
    label, profile = load_profile("openai", overrides)
    options = {"count": str(pages)}
    # Deleting a run is no work of Loupe's, and slows down the making of the next files on some file systems.
    runs = Path(tempfile.mkdtemp(dir=module.parent))
    plan = Plan(benchmark=str(module), label=label, profile=profile, runs=runs, options=options)
    progress = Progress()
    await infer(plan, progress)
    assert progress.outcomes["ok"] == pages, progress.outcomes


class Message(msgspec.Struct):
    """The part of an answer that the bare loop reads."""

    content: str


class Choice(msgspec.Struct):
    """One of the choices."""

    message: Message


class Answer(msgspec.Struct):
    """A chat completion."""

    choices: list[Choice]


async def bare_path(url: str, module: Path, pages: int, concurrency: int) -> None:
    """The least that has to be done: read, base64, JSON, request, JSON."""
    import aiohttp

    decoder = msgspec.json.Decoder(Answer)
    files = sorted((module.parent / "pages").iterdir())
    numbers = iter(range(pages))
    answered = 0

    async def work(session: aiohttp.ClientSession) -> None:
        nonlocal answered
        for number in numbers:
            data = base64.b64encode(files[number % len(files)].read_bytes()).decode()
            image = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
            content = [image, {"type": "text", "text": "Read this page."}]
            body = {"model": "test-model", "messages": [{"role": "user", "content": content}], "max_tokens": 4096}
            async with session.post(f"{url}/chat/completions", data=msgspec.json.encode(body)) as response:
                answered += decoder.decode(await response.read()).choices[0].message.content != ""

    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency), headers=headers) as session:
        await asyncio.gather(*(work(session) for _ in range(concurrency)))
    assert answered == pages


PATHS: dict[str, Callable[[str, Path, int, int], Coroutine[None, None, None]]] = {
    "loupe": loupe_path,
    "bare": bare_path,
}


def child(path: str, url: str, module: Path, pages: int, concurrency: int) -> None:
    """Measure one path in this process and print the figures as JSON."""
    asyncio.run(PATHS[path](url, module, WARM_UP, concurrency))
    before, began = cpu_seconds(), time.perf_counter()
    asyncio.run(PATHS[path](url, module, pages, concurrency))
    used, wall = cpu_seconds() - before, time.perf_counter() - began
    # Linux counts in KiB, macOS in bytes.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    print(json.dumps({"cpu": used, "wall": wall, "peak_mb": peak}))


def cpu_seconds() -> float:
    """User and system time of this process, its threads and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure(path: str, url: str, module: Path, pages: int, concurrency: int) -> dict[str, float]:
    """One measurement in a fresh process."""
    command = [sys.executable, __file__, "--child", path, url, str(module), str(pages), str(concurrency)]
    figures: dict[str, float] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return figures


@dataclass(frozen=True)
class Pairs:
    """Measurements of both, taken in turns; figures are per page."""

    bare: list[dict[str, float]]
    loupe: list[dict[str, float]]
    pages: int

    @property
    def ratios(self) -> list[float]:
        """Loupe's CPU time over that of the bare loop, smallest first; less than the clock's tick counts as one."""
        tick = 1 / os.sysconf("SC_CLK_TCK")
        return sorted(ours["cpu"] / max(bare["cpu"], tick) for bare, ours in zip(self.bare, self.loupe, strict=True))

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return median(self.ratios)

    def __str__(self) -> str:
        bare, ours = (1000 * median(each["cpu"] for each in side) / self.pages for side in (self.bare, self.loupe))
        low, high = self.ratios[0], self.ratios[-1]
        speed = self.pages / min(each["wall"] for each in self.loupe)
        peak = max(each["peak_mb"] for each in self.loupe)
        return f"{bare:>8.2f} {ours:>8.2f} {self.ratio:>6.2f} {low:>5.2f}-{high:<4.2f} {speed:>8.0f} {peak:>8.0f}"


def in_turns(url: str, module: Path, pages: int, concurrency: int, repeats: int) -> Pairs:
    """Measure both, one after the other, several times."""
    found = [[measure(path, url, module, pages, concurrency) for path in ("bare", "loupe")] for _ in range(repeats)]
    return Pairs([bare for bare, _ in found], [ours for _, ours in found], pages)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--concurrency", type=int, nargs="*", default=CONCURRENCIES, help="requests in flight")
    parser.add_argument("--small", type=int, default=10_000, help="samples of the memory test, 0 to leave it out")
    parser.add_argument("--delay", type=float, default=0.005, help="seconds that the server takes per answer")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        path, url, module, pages, concurrency = options.child
        return child(path, url, Path(module), int(pages), int(concurrency))
    missed = []
    with tempfile.TemporaryDirectory() as folder, in_process(text=ANSWER, delay=options.delay) as url:
        os.environ["HOME"] = folder  # The benchmark that is made here is trusted there, and not by the user.
        module = make_pages(Path(folder) / "large", small=False)
        print(f"{options.pages} pages of {PAGE_BYTES // 1000} KB, CPU ms per page, median of {options.repeats}")
        print(f"{'concurrency':>11} {'bare':>8} {'loupe':>8} {'ratio':>6} {'range':>9} {'pages/s':>8} {'peak MiB':>8}")
        for concurrency in options.concurrency:
            pairs = in_turns(url, module, options.pages, concurrency, options.repeats)
            print(f"{concurrency:>11} {pairs}", flush=True)
            missed += [f"{pairs.ratio:.2f} times the bare loop"] if pairs.ratio > MOST_RATIO else []
        if options.small:
            module = make_pages(Path(folder) / "small", small=True)
            ours = measure("loupe", url, module, options.small, 64)
            print(f"{options.small:,} small samples: peak {ours['peak_mb']:.0f} MiB, {ours['wall']:.1f} s")
            missed += [f"{ours['peak_mb']:.0f} MiB"] if ours["peak_mb"] > MOST_MB else []
    if missed:
        raise SystemExit(f"goals missed (at most {MOST_RATIO} times, {MOST_MB} MiB): {', '.join(missed)}")


if __name__ == "__main__":
    main()
