"""Engines that do what a foreign folder must never cause: the harness has to find each of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.hostile.cases import Command, Target, World, command
from tests.hostile.run_folders import write_docs

ENGINES = """
import os, pathlib, socket, subprocess, time

CANARY = pathlib.Path(os.environ["OMP_HOSTILE_WORLD"]) / "canary"

def write(request):
    (CANARY / "secret.txt").write_text("changed")
    return ""

def process(request):
    subprocess.run(["touch", "ran"])
    return ""

def network(request):
    socket.create_connection(("192.0.2.1", 80), 1)

def read(request):
    return (CANARY / "secret.txt").read_text()

def memory(request):
    return str(len(bytearray(os.urandom(1)) * (600 << 20)))

def time_(request):
    while time.process_time() < 4:
        pass
    return ""

def none(request):
    return "Invoice"
"""
#: What each engine does; `import` is that of a module below the case.
KINDS = ("write", "process", "network", "read", "memory", "time", "import", "none")


def template(world: World) -> None:
    write_docs(world.case / "docs")
    (world.kept / "faulty.py").write_text(ENGINES)
    (world.case / "evil.py").write_text("def read(request):\n    return ''\n")


def make(dice: random.Random, world: World) -> Sequence[Command]:
    """The number of the case is said by the first draw of its dice; `python -m tests.hostile` plays all of them."""
    kind = dice.choice(KINDS)
    name = "time_" if kind == "time" else kind
    engine = "evil.py:read" if kind == "import" else f"{world.kept / 'faulty.py'}:{name}"
    return [command("infer", "docs", "-e", f"python:{engine}", "--limit", "1", "--retries", "0", "--name", kind)]


#: Not among the targets: it is found on purpose.
TARGET = Target(name="planted", make=make, template=template, share=1, memory=512 << 20, seconds=3)
