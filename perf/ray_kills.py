"""Nodes killed at random moments: `python -m perf.ray_kills [KILLS] [PAGES]`, with three Ray nodes on this machine.

While `loupe run --on ray` reads, a node is killed as one that loses its power, and another one joins; when the run
ends before the last kill, the next one begins. Printed: kills, answers that were lost or stored twice, and whether
scores and result are those of a run on this machine alone. The exit code is 1 where anything is missing.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.features.cluster.support.ray_cluster import RayCluster

NODES, CPUS = 3, 2
PAUSE = (1.0, 5.0)
READER = "import time\n\ndef read(request):\n    time.sleep(0.2)\n    return f'the text of {request.id}'\n"


def make_folder(root: Path, pages: int) -> None:
    """A folder of one's own whose pages nobody opens, and the engine beside it."""
    own = root / "own"
    own.mkdir()
    (own / "page.png").write_bytes(os.urandom(50_000))
    (own / "loupe.toml").write_text('[benchmark]\ntask = "text"\n')
    rows = [{"id": f"p{number}", "image": "page.png", "reference": f"the text {number}"} for number in range(pages)]
    (own / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "reader.py").write_text(READER)


def command(runs: str, *words: str) -> list[str]:
    """`loupe run` with the engine, into a folder of runs."""
    engine = ["own", "-e", "python:reader.py:read", "--runs", runs, "--plain"]
    return [sys.executable, "-m", "loupe", "run", *engine, *words]


def kill_while(process: subprocess.Popen[bytes], cluster: RayCluster, kills: int) -> int:
    """Kill nodes while a command runs, up to so many; how many it were."""
    done = 0
    while done < kills:
        time.sleep(random.uniform(*PAUSE))
        if process.poll() is not None:
            break
        cluster.kill(random.randrange(len(cluster.nodes)))
        done += 1
        cluster.add()
    return done


def compare(root: Path, name: str, pages: int) -> tuple[int, int, bool]:
    """Answers that are lost and double, and whether scores and result are those of the run `here`."""
    here, there = (next((root / each).glob("*/own")) for each in ("here", name))
    records: list[dict[str, Any]] = [json.loads(line) for line in (there / "predictions.jsonl").open()]
    counts = Counter(each["sample"] for each in records if each["class"] == "ok")
    results = [json.loads((run / "result.json").read_text()) for run in (here, there)]
    for each in results:
        del each["speed"]
    same = (here / "scores.jsonl").read_bytes() == (there / "scores.jsonl").read_bytes() and results[0] == results[1]
    return pages - len(counts), sum(counts.values()) - len(counts), same


def main() -> int:
    """Run until there were enough kills, and print what came of it."""
    kills, pages = map(int, [*sys.argv[1:], *("20", "1500")[len(sys.argv) - 1 :]])
    root = Path(tempfile.mkdtemp(prefix="loupe-perf-"))
    make_folder(root, pages)
    quiet = {"cwd": root, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command("here", "-n", "16"), check=True, **quiet)
    done, number, bad = 0, 0, 0
    with RayCluster(nodes=NODES, cpus=CPUS) as cluster:
        while done < kills:
            number += 1
            began = time.monotonic()
            words = command(f"there{number}", "-n", str(CPUS), "--on", "ray")
            process = subprocess.Popen(words, env={**os.environ, **cluster.environment}, **quiet)
            killed = kill_while(process, cluster, kills - done)
            code = process.wait()
            done += killed
            lost, double, same = compare(root, f"there{number}", pages)
            bad += lost + double + (not same) + (code != 0)
            said = f"run {number}: {killed} kills, {lost} lost, {double} double, {'same' if same else 'OTHER'} numbers"
            print(f"{said}, exit code {code}, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{done} kills in all: {'nothing lost' if not bad else 'SOMETHING IS WRONG'}; in {root}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
