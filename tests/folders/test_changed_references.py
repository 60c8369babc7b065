"""References that were mended after scoring: whoever shows them beside the old numbers says so."""

from __future__ import annotations

import json
from pathlib import Path

from loupe.report.html import write_report
from loupe.results.changed_references import CHANGED
from loupe.web.view.grid import wanted_of
from loupe.web.view.pages import Pages
from loupe.web.view.shelf import Shelf
from tests.support.command_line import loupe


def test_report_and_view_say_that_references_are_not_those_of_the_scores(tmp_path: Path) -> None:
    own, run = tmp_path / "own", tmp_path / "runs" / "a" / "own"
    own.mkdir()
    (own / "loupe.toml").write_text('[benchmark]\ntask = "text"\n')

    def write(reference: str) -> None:
        (own / "samples.jsonl").write_text(json.dumps({"id": "1", "text": "x", "reference": reference}) + "\n")

    def said() -> list[bool]:
        write_report([run], tmp_path / "report.html")
        shelf = Shelf([tmp_path / "runs"])
        (board,) = shelf.look().boards.values()
        pages = Pages(shelf)
        sample = pages.sample(board, "1", wanted_of(board, {}), {})
        assert sample is not None
        shown = [pages.board(board), pages.run(board, board.runs[0]), sample]
        return [CHANGED in text for text in ((tmp_path / "report.html").read_text(), *shown)]

    write("red")
    (tmp_path / "answers.jsonl").write_text('{"id": "1", "text": "cat"}\n')
    assert loupe("score", "own", "answers.jsonl", "--name", "a", cwd=tmp_path).returncode == 0
    assert said() == [False] * 4
    write("cat")
    assert said() == [True] * 4
    assert loupe("score", str(run), cwd=tmp_path).returncode == 0
    assert said() == [False] * 4
