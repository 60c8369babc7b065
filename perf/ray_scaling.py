"""How many pages a cluster reads: `python -m perf.ray_scaling`, with four Ray nodes on this machine.

An engine that waits half a second for each page, as one on a GPU would, on 1, 2, 4, 8 and 16 workers; what each page
costs the driver beside the same engine without a cluster; and, computed from that, ten million pages on fifty nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.features.cluster.support.ray_cluster import RayCluster

WAIT = 0.5
#: Bytes of a page, and pages for each worker.
PAGE, PAGES = 400_000, 60
#: The share of a run that is measured: when all workers are there, and none has run out of pages.
WINDOW = (0.3, 0.9)
#: CPUs of a node as Ray is told, and a worker's share of them that gives so many workers on so many nodes.
CPUS = 16
STEPS = ((1, 1, 16), (2, 2, 16), (4, 4, 16), (8, 4, 8), (16, 4, 4))
READER = "import time\n\ndef read(request):\n    time.sleep({wait})\n    return 'a line of text\\n' * 100\n"


def make_folder(root: Path, pages: int) -> None:
    """A folder of one's own with pages that nobody opens, and the engine beside it."""
    own = root / "own"
    own.mkdir()
    (own / "page.png").write_bytes(os.urandom(PAGE))
    (own / "loupe.toml").write_text('[benchmark]\ntask = "text"\n')
    rows = [{"id": f"p{number}", "image": "page.png", "reference": "x"} for number in range(pages)]
    (own / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "reader.py").write_text(READER.format(wait=WAIT))


def read(workers: int, cpus: float) -> dict[str, float]:
    """Read a folder in this process, on a cluster if a worker takes `cpus` of one; pages and CPU seconds per second."""
    from loupe.engines.registry import WorkerNeeds, load_profile
    from loupe.features.cluster.executor import Cluster
    from loupe.inference.progress import Progress
    from loupe.pipeline import Plan, infer

    root = Path(tempfile.mkdtemp(prefix="loupe-perf-"))
    total = PAGES * workers
    make_folder(root, total)
    given: dict[str, Any] = {"worker": WorkerNeeds(cpus=cpus)} if cpus else {"concurrency": workers}
    label, profile = load_profile(f"python:{root}/reader.py:read", given)
    cluster = Cluster("ray") if cpus else None
    plan = Plan(benchmark=str(root / "own"), label=label, profile=profile, runs=root / "runs", executor=cluster)
    progress = Progress()
    seen: list[tuple[float, float, int]] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            seen.append((time.monotonic(), time.process_time(), progress.done))

    threading.Thread(target=look, daemon=True).start()
    asyncio.run(infer(plan, progress))
    over.set()
    inside = [each for each in seen if WINDOW[0] * total <= each[2] <= WINDOW[1] * total]
    seconds, busy, pages = (last - first for first, last in zip(inside[0], inside[-1], strict=True))
    return {"pages_per_second": pages / seconds, "driver_ms": 1000 * busy / pages}


def measured(workers: int, cpus: float, environment: dict[str, str]) -> dict[str, float]:
    """`read` in a driver of its own."""
    words = [sys.executable, "-m", "perf.ray_scaling", "--workers", str(workers), "--cpus", str(cpus)]
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=0, help="one measurement, as the script asks itself for it")
    parser.add_argument("--cpus", type=float, default=0.0)
    chosen = parser.parse_args()
    if chosen.workers:
        print(json.dumps(read(chosen.workers, chosen.cpus)))
        return
    local = measured(16, 0, {})
    ideal, found = 1 / WAIT, {}
    print(f"an engine that waits {WAIT:g} s, pages of {PAGE // 1000} KB")
    print(f"{'workers':>8} {'nodes':>6} {'pages/s':>8} {'of linear':>10} {'driver ms/page':>15}")
    print(f"{16:>8} {'none':>6} {local['pages_per_second']:8.2f} {'':>10} {local['driver_ms']:15.2f}")
    with RayCluster(nodes=0, cpus=CPUS) as cluster:
        for workers, nodes, cpus in STEPS:
            while len(cluster.nodes) < nodes:
                cluster.add()
            found[workers] = one = measured(workers, cpus, cluster.environment)
            share = one["pages_per_second"] / (workers * ideal)
            line = f"{workers:>8} {nodes:>6} {one['pages_per_second']:8.2f} {share:10.3f} {one['driver_ms']:15.2f}"
            print(line, flush=True)
    first, last = found[STEPS[0][0]], found[STEPS[-1][0]]
    relative = last["pages_per_second"] / (STEPS[-1][0] * first["pages_per_second"])
    more = last["driver_ms"] - local["driver_ms"]
    print(
        f"16 workers are {relative:.3f} of 16 times one; the driver takes {more:+.2f} ms a page more than without Ray"
    )
    on_paper(last["driver_ms"])


def on_paper(driver_ms: float) -> None:
    """Ten million pages on fifty nodes: what the nodes could read, and what one driver can hand out."""
    pages, nodes = 10_000_000, 50
    most = 1000 / driver_ms
    print(f"\n{pages:,} pages on {nodes} nodes; the driver hands out at most {most:,.0f} pages/s on one core")
    print(
        f"{'a node reads':>14} {'nodes read':>12} {'hours':>7} {'driver busy':>12} {'to the nodes':>13}  breaks first"
    )
    for name, rate in (("16 CPU cores", 16.0), ("1 GPU", 4.0), ("8 GPUs", 32.0)):
        offered = nodes * rate
        given = min(offered, most)
        breaks = "the driver" if offered > most else "nothing"
        network = given * PAGE * 8 / 1e9
        print(
            f"{name:>14} {offered:8,.0f} p/s {pages / given / 3600:7.1f} {offered / most:12.0%} {network:8.2f} Gb/s  "
            f"{breaks}"
        )


if __name__ == "__main__":
    main()
