"""Reading and scoring on a real Ray cluster: several nodes on this machine, by the command, as a user starts it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from tests.features.cluster.support.ray_cluster import RayCluster
from tests.support.command_line import command, environment

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

#: Beside it lies `words.py`, which must travel, too.
READER = """
import os, time
from pathlib import Path
from PIL import Image
from words import WORDS

def read(request):
    [page] = request.images
    if "dies" in request.id:
        os._exit(3)
    if "raises" in request.id:
        raise ValueError(f"{page}: no idea")
    if not isinstance(page, Path):
        return f"page {page.page} of {page.path.name}, {page.path.stat().st_size} bytes"
    with Image.open(page) as image:
        return f"{WORDS} {image.size} {image.getpixel((20, 20))} in {page.name}"

def slow(request):
    time.sleep(0.4)
    return read(request)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with RayCluster(nodes=2, cpus=2) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of one's own: pages that are read, broken, blank, missing, and two of a PDF."""
    pages = tmp_path / "own"
    pages.mkdir()
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "words.py").write_text("WORDS = 'a page of'\n")
    rows: list[dict[str, Any]] = []
    for number in range(40):
        name = {7: "dies7", 9: "raises9"}.get(number, f"p{number}")
        image = Image.new("RGB", (200 + number, 100), "white")
        ImageDraw.Draw(image).rectangle((10, 10, 60, 60), fill=(number, 0, 0))
        image.save(pages / f"{name}.png")
        rows.append({"id": name, "image": f"{name}.png", "reference": f"a page of {number}"})
    (pages / "broken.png").write_bytes(b"no picture")
    Image.new("RGB", (300, 300), "white").save(pages / "blank.png")
    book = [Image.new("RGB", (100, 100), "white") for _ in range(2)]
    book[0].save(pages / "book.pdf", save_all=True, append_images=book[1:])
    rows += [
        {"id": "broken", "image": "broken.png", "reference": "x"},
        {"id": "blank", "image": "blank.png", "reference": ""},
        *({"id": f"book{page}", "image": f"book.pdf#page={page}", "reference": "page"} for page in (1, 2)),
    ]
    (pages / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (pages / "loupe.toml").write_text('[benchmark]\ntask = "text"\n')
    return tmp_path


def start(folder: Path, cluster: RayCluster, *words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*words),
        cwd=folder,
        env=environment(folder, cluster.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def loupe(folder: Path, cluster: RayCluster, *words: str | Path) -> str:
    """What the command said on standard error; it must end well."""
    process = start(folder, cluster, *words)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return said


def predictions(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]


def result_without_times(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "result.json").read_text())
    del found["speed"]
    return found


def test_a_cluster_gives_the_same_numbers_to_the_byte_and_needs_no_file_of_the_driver(
    folder: Path, cluster: RayCluster
) -> None:
    run = ["run", "own", "-e", "python:reader.py:slow", "-n", "2", "--plain"]
    loupe(folder, cluster, *run, "--runs", "here")
    said = loupe(folder, cluster, *run, "--runs", "there", "--on", "ray")
    assert "2 nodes with 4 CPUs" in said
    here, there = (next((folder / name).glob("*/own")) for name in ("here", "there"))
    assert (here / "scores.jsonl").read_bytes() == (there / "scores.jsonl").read_bytes()
    assert result_without_times(here) == result_without_times(there)
    facts = [json.loads((run / "run.json").read_text())["facts"] for run in (here, there)]
    assert facts[0] == facts[1]
    answers, local = ({each["sample"]: each for each in predictions(run)} for run in (there, here))
    assert len({each.get("endpoint") for each in answers.values() if each["class"] == "ok"}) == 2
    # Also what failed says the same, with the driver's names for files.
    for ident, each in local.items():
        assert answers[ident]["text"] == each["text"]
        assert answers[ident].get("error") == each.get("error")
    assert "died" in answers["dies7"]["error"]
    # What is scored again there, without an engine, is the same again.
    (there / "scores.jsonl").unlink()
    (there / "result.json").unlink()
    loupe(folder, cluster, "score", there, "--on", "ray", "--plain")
    assert (here / "scores.jsonl").read_bytes() == (there / "scores.jsonl").read_bytes()


def test_a_node_and_the_driver_that_die_cost_no_answer_and_a_node_that_joins_is_used(
    folder: Path, cluster: RayCluster
) -> None:
    run = ["run", "own", "-e", "python:reader.py:slow", "-n", "2", "--on", "ray", "--plain"]
    process = start(folder, cluster, *run)
    path = folder / "runs" / "python-reader.py_slow" / "own"
    wait_for(path, 6)
    cluster.kill(0)
    wait_for(path, 12)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    kept = len(predictions(path))
    cluster.add()
    loupe(folder, cluster, *run)
    found = predictions(path)
    # What had failed is asked for again by the second command; nothing else is.
    counts = Counter(each["sample"] for each in found if each["class"] == "ok")
    failed = {each["sample"] for each in found if each["class"] != "ok"}
    assert (len(counts), max(counts.values()), failed) == (41, 1, {"dies7", "raises9", "broken"})
    assert len({each.get("endpoint") for each in found[kept:]} - {None}) == 2


def wait_for(run: Path, count: int) -> None:
    """Until a run has so many answers."""
    end = time.monotonic() + 60
    while not (run / "predictions.jsonl").exists() or len(predictions(run)) < count:
        assert time.monotonic() < end, f"no {count} answers"
        time.sleep(0.1)


def test_every_node_has_a_server_of_its_own_that_stops_with_the_run(folder: Path, cluster: RayCluster) -> None:
    engine = f"loupe:python:{folder}/reader.py:slow"
    said = loupe(folder, cluster, "infer", "own", "--serve", engine, "-n", "2", "--on", "ray", "--plain")
    assert "Ray cluster: 2 nodes" in said
    [path] = (folder / "runs").glob("*/own")
    answered = [each for each in predictions(path) if each["class"] == "ok"]
    assert len({each["endpoint"] for each in answered}) == 2
    assert not [place for place in Path("/proc").glob("[0-9]*") if str(folder) in command_line(place)]


def command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""
