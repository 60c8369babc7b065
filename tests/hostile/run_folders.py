"""Folders with runs and the benchmark that they are of, as somebody else may have sent them."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.hostile import mutations
from tests.hostile.cases import Command, Target, World, choose, command

RUNS = ("runs/reader/docs", "runs/files/docs")
SAMPLES = (
    {"id": "p0", "text": "alpha beta", "reference": "alpha beta", "tags": {"kind": "a"}},
    {"id": "p1", "image": "scans/a.png", "reference": "Invoice 12345", "group": "g"},
    {"id": "p2", "image": "scans/c.pdf#page=1", "task": "fields", "reference": {"total": "12.50", "date": ""}},
    {"id": "p3", "text": "<table><tr><td>1</td></tr></table>", "task": "table", "reference": "| 1 |\n|---|\n| 2 |"},
    {"id": "q/4", "text": "$x^2$", "task": "markdown", "reference": "# Title\n\n$x^2$\n\n| a |\n|---|\n| b |"},
    {"id": "p5", "text": "letter", "task": "class", "reference": "letter"},
    {"id": "p6", "text": "what?", "task": "question", "prompt": "What?", "reference": ["what?", "x"]},
)
CONFIG = """[benchmark]
title = "Docs"
version = "1"
labels = ["letter", "invoice"]

[fields]
total = "amount"
date = "date"
"""


def write_docs(folder: Path) -> None:
    """A folder of one's own with a sample of every task, pages included."""
    from tests.support.pages import draw_page
    from tests.support.web.review_app import PDF

    (folder / "scans").mkdir(parents=True)
    draw_page(folder / "scans" / "a.png", ("Invoice 12345",))
    (folder / "scans" / "c.pdf").write_bytes(PDF)
    (folder / "loupe.toml").write_text(CONFIG)
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SAMPLES))


def write_answers(folder: Path) -> None:
    folder.mkdir(parents=True)
    for row in SAMPLES:
        file = folder / f"{row['id']}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(str(row.get("text", "Invoice 1234S")).upper())


def template(world: World) -> None:
    """Two runs made by Loupe itself, one with its answers exported."""
    import os

    from loupe.cli import main

    write_docs(world.case / "docs")
    write_answers(world.case / "answers")
    os.chdir(world.case)
    assert main(["run", "docs", "-e", world.reader, "--name", "reader"]) == 0
    assert main(["score", "docs", "answers", "--name", "files"]) == 0
    assert main(["export", RUNS[0]]) == 0
    shutil.rmtree(world.case / "answers")


def make(dice: random.Random, world: World) -> Sequence[Command]:
    """Mutated runs (now and then their benchmark), and what a person does with runs."""
    runs, docs = world.case / "runs", world.case / "docs"
    mutations.mutate(dice, dice.choice([runs, runs, runs, runs / "reader", world.case, docs]), world.canary)
    run = dice.choice(RUNS)
    cheap = (
        command("runs"),
        command("runs", "--json"),
        command("runs", "--plain"),
        command("compare", *RUNS),
        command("compare", "--json", *RUNS),
        command("compare", "runs"),
        command("export", run),
        command("export", run, "--raw"),
        command("export", "runs", "--to", "evaluation"),
        command("export", run, "--to", "omnidocbench"),
        command("reproduce", "x/docs", "--run", run),
        command("embed", run, "--base-url", "http://127.0.0.1:9"),
        command("runs", cwd="runs"),
        command("compress", run),
    )
    dear = (
        command("view", "runs"),
        command("view", run),
        command("report", "runs", "-o", "out.html"),
        command("report", run, "-o", "out.html", "--embed"),
        command("score", run, "-j", "1"),
        command("score", run, "-j", "1", "--by", "kind"),
        command("run", "docs", "-e", world.reader, "--name", "reader", "-j", "1"),
        command("infer", "docs", "-e", world.reader, "--name", "reader"),
    )
    if dice.random() < 0.08 and not isinstance(dice, mutations.Calm):
        # Beside the runs, where the command is started, and for a command that starts processes.
        mutations.plant(dice, world.case)
        return [dice.choice(dear)]
    return choose(dice, cheap, dear)


TARGET = Target(name="runs", make=make, template=template, share=30)
