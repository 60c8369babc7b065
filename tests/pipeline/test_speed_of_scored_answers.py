"""Answers that were only scored: how long their engine took is unknown, so nothing shows a time."""

from __future__ import annotations

import json
from pathlib import Path

import loupe
from loupe.pipeline.spent import speed_of
from loupe.report.collect import collect
from loupe.report.html import environment, group_context
from loupe.results.sections import result_sections
from loupe.results.speed import speed_table, speed_text
from loupe.runs.folder import RunFolder
from loupe.web.view.run_page import run_context
from loupe.web.view.shelf import Shelf

ROWS = [{"id": f"p{place}", "text": "x", "reference": f"page {place}"} for place in range(3)]
SETTINGS = '[benchmark]\ntask = "text"\n'


def made(root: Path, **more: object) -> Path:
    """A folder of three samples, and answers to them."""
    (root / "own").mkdir()
    (root / "own" / "loupe.toml").write_text(SETTINGS)
    (root / "own" / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    lines = [{"id": row["id"], "text": row["reference"], **more} for row in ROWS]
    (root / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return root / "own"


def test_answers_that_were_only_scored_take_no_time_anywhere(tmp_path: Path) -> None:
    own = made(tmp_path)
    scored = loupe.score(str(own), tmp_path / "answers.jsonl", name="scored", runs=tmp_path / "runs")
    looked_up = loupe.run(str(own), f"predictions:{tmp_path / 'answers.jsonl'}", runs=tmp_path / "runs")
    for path in (scored.path, looked_up.path):
        result = RunFolder.open(path).stored_result()
        assert result is not None and not {name for name in result.speed if name != "scoring_seconds"}
        printed = str([row for section in result_sections(result) for row in section.rows])
        assert "seconds" not in printed and "latency" not in printed
    (group,) = collect([scored.path])
    shown = group_context(group)
    (speed,) = (table for table in shown["beside"] if table.header[0] == "speed")
    assert not speed.rows and not shown["has_seconds"]
    html = environment().get_template("group.html").render(group=shown, groups=[group])
    assert "latency" not in html and "0 s" not in html and "s&nbsp;/&nbsp;page" not in html
    (board,) = Shelf([tmp_path / "runs"]).look(anew=True).boards.values()
    for run in board.runs:
        page = run_context(board, run)
        assert page["speed"] == [] and page["latency"] == {}


def test_seconds_that_the_answers_tell_are_kept_and_zeros_of_old_results_are_unknown(tmp_path: Path) -> None:
    own = made(tmp_path, seconds=1.5)
    run = loupe.run(str(own), f"predictions:{tmp_path / 'answers.jsonl'}", runs=tmp_path / "runs")
    folder = RunFolder.open(run.path)
    assert speed_of(folder, folder.prediction_places()).figures["seconds_per_page"] == 1.5
    assert speed_text("latency_p50", 0.0) == speed_text("seconds_per_page", 0.0) == "–"
    result = folder.stored_result()
    assert result is not None and next(name for name, _ in speed_table([result, None])) == "seconds per page"


def test_counts_of_tokens_that_nothing_can_have_are_unknown(tmp_path: Path) -> None:
    own = made(tmp_path, input_tokens=int(1e308), output_tokens=2)
    folder = RunFolder.open(
        loupe.run(str(own), f"predictions:{tmp_path / 'answers.jsonl'}", runs=tmp_path / "runs").path
    )
    (record, *_) = folder.read_predictions(folder.prediction_places().values())
    assert record.input_tokens is None
    # Records of before hold what a server said.
    file = folder.predictions_file
    file.write_text(file.read_text().replace('"output_tokens":2', f'"output_tokens":{int(1e308)}', 1))
    figures = speed_of(folder, folder.prediction_places()).figures
    assert figures["output_tokens_per_page"] == 2 and "input_tokens_per_page" not in figures
