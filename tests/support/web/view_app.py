"""A real `loupe view` of toy runs, started as a person starts it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import command_line
from tests.support.report_runs import Toy, misread, toy_pages
from tests.support.served import wait_for
from tests.support.web.review_app import Served, address_of

ATTACK = "**bold** <script>document.title='owned'</script><img src=x onerror=alert(1)> \u202e"
#: Right-to-left and CJK text, and an answer that attacks.
TEXTS = {"book/page-0000": "هذا كتاب المرفأ 港の本 " * 6, "book/page-0001": ATTACK}


@contextmanager
def begun_run(toy: Toy, server: Served) -> Iterator[Path]:
    """A run of this very process, which has just begun: nothing is read yet. The viewer has forgotten it afterwards."""
    path = toy.run("slow", {}, scored=False)
    (path / "run.lock").write_text(str(os.getpid()))
    try:
        yield path
    finally:
        shutil.rmtree(path.parent)
        wait_for(lambda: b"slow" not in server.ask("/")[2])


def make_runs(folder: Path, count: int = 70) -> Toy:
    """Two finished runs, `good` and `worse`; the second has failed once, was cut off once, and answers with attacks."""
    from loupe.types import Prediction

    toy = toy_pages(folder, count, pages=3, characters=120, size=(310, 438))
    truths = {sample.id: sample.truth for sample in toy.samples}
    toy.run("good", {ident: misread(text, 31) for ident, text in truths.items()} | TEXTS)
    failed = Prediction(sample="book/page-0004", outcome="error", error="boom <b>")
    cut = Prediction(sample="book/page-0005", text="Page 5", outcome="truncated", seconds=9.0)
    answers: dict[str, Prediction | str] = {
        ident: Prediction(sample=ident, text=misread(text, 5), seconds=0.2 + (place % 9) ** 2 / 10)
        for place, (ident, text) in enumerate(truths.items())
    }
    toy.run("worse", answers | {failed.sample: failed, cut.sample: cut, "book/page-0006": truths["book/page-0006"]})
    return toy


@contextmanager
def viewed(*runs: Path, home: Path, trusted: Path | None = None) -> Iterator[Served]:
    """The viewer; Ctrl-C ends it, with exit code 0 and no traceback. `trusted` is a file that was run here."""
    if trusted is not None:
        command_line.trusted(trusted, home=home)
    command = [sys.executable, "-m", "loupe", "view", *map(str, runs), "--no-browser"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "HOME": str(home)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=home
    )
    with address_of(process, ends_within=30) as running:
        yield running
