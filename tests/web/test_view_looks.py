"""What the viewer takes from run folders at each look: damage, growth, runs made again, and what belongs together."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import parse_qsl

import msgspec
import pytest

from loupe.cli.compare import sections, visible_sections
from loupe.data import trust
from loupe.errors import RunError
from loupe.results.comparing.runs import compare_runs
from loupe.results.sections import format_value
from loupe.runs.folder import RunFolder
from loupe.types import Estimate
from loupe.web.view import two_runs
from loupe.web.view.grid import chosen_rows, wanted_of
from loupe.web.view.heat import heat_maps
from loupe.web.view.pages import Pages
from loupe.web.view.run_page import run_context
from loupe.web.view.sample_page import JsonObject, SupersededError, WhatIf
from loupe.web.view.shelf import Look, Shelf
from loupe.web.view.two_runs import compare_context, compared_rows
from tests.support.report_runs import Toy, misread, toy_pages

FILES = ("run.json", "predictions.jsonl", "scores.jsonl", "result.json")


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    toy = toy_pages(tmp_path, 8, pages=3, characters=120)
    toy.run("good", {sample.id: misread(sample.truth, 31) for sample in toy.samples})
    toy.run("poor", {sample.id: misread(sample.truth, 3) for sample in toy.samples})
    return toy


def looked(shelf: Shelf) -> Look:
    return shelf.look(anew=True)


def change(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named_at_every_look_and_what_was_read_before_stays(toy: Toy, name: str) -> None:
    shelf, file = Shelf([toy.root / "runs"]), toy.runs[1] / name
    looked(shelf)
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"{", b"{broken", 1))
    for _ in range(3):
        look = looked(shelf)
        assert name in look.damaged[str(toy.runs[1])]
        (board,) = look.boards.values()
        poor = board.runs[1]
        assert (len(poor.answers), len(poor.scores), poor.state) == (8, 8, "done") and name in poor.problem
    for _ in range(2):
        fresh = Shelf([toy.root / "runs"])
        looked(fresh)
        look = looked(fresh)
        assert name in look.damaged[str(toy.runs[1])]
        assert [run.folder.info.engine for board in look.boards.values() for run in board.runs] == ["good"]
    file.write_bytes(whole)
    look = looked(shelf)
    assert not look.damaged and not next(iter(look.boards.values())).runs[1].problem


def test_a_line_that_is_no_record_is_named_while_the_file_grows(toy: Toy) -> None:
    shelf, file = Shelf([toy.root / "runs"]), toy.runs[1] / "predictions.jsonl"
    looked(shelf)
    for line in (b"{not json}\n", b'{"sample": "more", "text": "x", "class": "ok"}\n'):
        with file.open("ab") as end:
            end.write(line)
        assert "not a record of this run" in looked(shelf).damaged[str(toy.runs[1])]


def test_what_a_page_is_made_from_does_not_change_under_it(toy: Toy) -> None:
    result = toy.runs[0] / "result.json"
    kept = result.read_bytes()
    result.unlink()
    shelf = Shelf([toy.root / "runs"])
    (board,) = looked(shelf).boards.values()
    assert [row.failed for row in board.context()["rows"]] == [0, None]
    before = [run.folder.info.engine for run in board.ordered()], board.stamp, dict(board.runs[1].answers)
    result.write_bytes(kept)
    with (toy.runs[1] / "predictions.jsonl").open("ab") as end:
        end.write(b'{"sample": "more", "text": "x", "class": "ok"}\n')
    (later,) = looked(shelf).boards.values()
    assert before == ([run.folder.info.engine for run in board.ordered()], board.stamp, board.runs[1].answers)
    assert board.rows()[0].cells[0].outcome == "ok" and len(board.rows()) == 8
    assert [run.folder.info.engine for run in later.ordered()] == ["good", "poor"] != before[0]
    assert later.stamp != board.stamp and len(later.rows()) == 9


def test_a_run_made_again_has_none_of_the_old_comparison(toy: Toy) -> None:
    shelf = Shelf([toy.root / "runs"])

    def value_of_poor() -> str:
        (board,) = looked(shelf).boards.values()
        good, poor = board.runs
        value: str = two_runs.whole(board, poor, good)["rows"][0]["a"]
        assert poor.result is not None and poor.result.measures["cer"].value is not None
        assert value == f"{100 * poor.result.measures['cer'].value:.2f} %"
        return value

    first = value_of_poor()
    shutil.rmtree(toy.runs[1])
    looked(shelf)
    toy.run("poor", {sample.id: misread(sample.truth, 9) for sample in toy.samples})
    assert value_of_poor() != first


def test_a_comparison_says_what_the_terminal_says_of_these_two_runs(toy: Toy) -> None:
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    shown = compare_context(board, {})["whole"]
    compared = compare_runs([toy.runs[1], toy.runs[0]])
    printed = [[str(cell) for cell in row] for section in sections(compared) for row in section.rows]
    (row,) = shown["rows"]
    assert compared.verdict.startswith("good wins with ") and shown["verdict"] == compared.verdict
    assert ["cer", *(row[name] for name in ("b", "a", "difference", "interval", "p", "verdict"))] in printed
    assert ([shown["visible"]] if shown["visible"] else []) == visible_sections(compared)


def test_regressions_are_no_gains_and_what_rounds_to_nothing_has_no_sign(toy: Toy) -> None:
    rows = [json.loads(line) for line in (toy.runs[0] / "scores.jsonl").read_text().splitlines()]
    for place, row in enumerate(rows):
        row["scores"] = [{"measure": "cer", "counts": [(0.0, 9.0, 40.0, 9.0 + 1e-4, 9.0 + 7e-3)[place % 5], 120.0]}]
    (toy.runs[0] / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row in rows:
        row["scores"] = [{"measure": "cer", "counts": [9.0, 120.0]}]
    (toy.runs[1] / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    runs = {run.folder.info.engine: run.key for run in board.ordered()}
    query = {"a": runs["good"], "b": runs["poor"]}
    gains = {}
    for order in two_runs.ORDERS:
        shown = compare_context(board, {**query, "order": order})
        gains[order] = [shown["gain"](pair) for pair in shown["rows"]]
    assert gains == {
        "losses": ["-7.50", "-7.50"],
        "wins": ["+25.83", "+25.83", "+0.01"],
        "order": ["-7.50", "0.00", "+25.83", "0.00", "+0.01", "-7.50", "0.00", "+25.83"],
    }


def test_a_comparison_says_which_samples_its_measure_tells_of_and_has_the_others_by_theirs(toy: Toy) -> None:
    told, file = 'Measure(name="cer", higher_is_better=False, title="CER"),', toy.root / "toy.py"
    file.write_text(file.read_text().replace(told, told + ' Measure(name="teds"),'))
    trust.remember(file)
    for path in toy.runs:
        rows = [json.loads(line) for line in (path / "scores.jsonl").read_text().splitlines()]
        for row in rows[5:]:
            row["scores"] = [{"measure": "teds", "counts": [0.25 if path == toy.runs[0] else 0.75, 1.0]}]
        (path / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    shown = compare_context(board, {})
    assert [(measure.name, count) for measure, count in shown["told"]] == [("cer", 5), ("teds", 3)]
    assert (shown["total"], shown["everything"]) == (5, 8)
    shown = compare_context(board, {"measure": "teds"})
    assert shown["total"] == 3 and shown["counts"]["loss"] == 3 and {pair.gain for pair in shown["rows"]} == {-0.5}
    listed = [row.ident for row in compared_rows(board, (shown["a"], shown["b"]), {"measure": "teds"})]
    assert listed == [sample.id for sample in [*toy.samples[5:], *toy.samples[:5]]]


def test_runs_with_one_truth_stand_together_and_boards_of_one_title_are_told_apart(toy: Toy) -> None:
    shelf = Shelf([toy.root / "runs"])
    for path, images in zip(toy.runs, ("aaaa", "bbbb"), strict=True):
        change(path / "run.json", truth_digest="cccc", data_digest=images)
    (board,) = looked(shelf).boards.values()
    assert len(board.runs) == 2 and "page images differ" in board.pages_note
    change(toy.runs[1] / "run.json", truth_digest="dddd")
    look = looked(shelf)
    assert {look.title(board) for board in look.boards.values()} == {"Toy pages, data A", "Toy pages, data B"}


def test_records_of_a_file_that_was_written_anew_are_not_taken_for_others(toy: Toy) -> None:
    shelf, file = Shelf([toy.root / "runs"]), toy.runs[1] / "predictions.jsonl"
    (board,) = looked(shelf).boards.values()
    run, line = board.runs[1], b'{"sample": "another", "text": "x", "class": "ok"}\n'
    file.write_bytes(line.ljust(run.places[toy.samples[0].id].length + 1) + file.read_bytes())
    with pytest.raises(RunError, match="rewritten"):
        run.prediction_of(toy.samples[0].id)


def test_a_process_that_has_only_the_number_of_one_long_gone_does_not_make_a_run_running(toy: Toy) -> None:
    (toy.runs[1] / "result.json").unlink()
    lock = toy.runs[1] / "run.lock"
    lock.write_text(str(os.getpid()))
    shelf = Shelf([toy.root / "runs"])
    (board,) = looked(shelf).boards.values()
    assert board.runs[1].state == "running"
    os.utime(lock, (1e9, 1e9))
    (board,) = looked(shelf).boards.values()
    assert board.runs[1].state == "read"


def test_errors_that_differ_in_numbers_stand_together_and_questions_of_samples_are_named(toy: Toy) -> None:
    lines = [json.loads(line) for line in (toy.runs[1] / "predictions.jsonl").read_text().splitlines()]
    for place, said in enumerate(("no answer after 300.1 s", "no answer after 299.87 s", "HTTP 500: id 7f-3a")):
        lines[place] |= {"class": "error", "text": "", "error": said}
    (toy.runs[1] / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = [json.loads(line) for line in (toy.root / "samples.jsonl").read_text().splitlines()]
    rows[2]["prompt"] = "Which date?"
    (toy.root / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    shown = run_context(board, board.runs[1])
    assert [(one["count"], one["text"]) for one in shown["wrong"]] == [
        (2, "no answer after 300.1 s"),
        (1, "HTTP 500: id 7f-3a"),
    ]
    asked = dict(parse_qsl(shown["wrong"][0]["query"]))
    assert [row.place for row in chosen_rows(board, wanted_of(board, asked))] == [0, 1]
    assert shown["questions"] == [toy.samples[2].id]


def test_blank_answers_to_blank_pages_are_counted_as_the_list_counts_them(toy: Toy) -> None:
    for name, changes in (
        ("predictions.jsonl", {"class": "empty", "text": ""}),
        ("scores.jsonl", {"class": "empty", "outcome": "empty", "diagnostics": {"text_on_blank": 0.0}}),
    ):
        rows = [json.loads(line) for line in (toy.runs[1] / name).read_text().splitlines()]
        rows[0] = {key: changes.get(key, value) for key, value in rows[0].items()}
        (toy.runs[1] / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    run = board.runs[1]
    counted = {name: count for name, _, count in run_context(board, run)["outcomes"]}
    assert counted == {"ok": 7, "blank": 1}
    for name, count in counted.items():
        assert len(chosen_rows(board, wanted_of(board, {"a": run.key, "outcome": name}))) == count


def test_slices_and_their_order_are_those_of_the_result(toy: Toy) -> None:
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    for shown in heat_maps(board):
        result = next(run.result for run in board.runs if run.key == shown.key)
        assert result is not None
        assert shown.whole.cells[0].text == format_value(result.measures["cer"].value, "fraction")
        for tag, rows, hidden in shown.tags:
            values = result.slices[tag]
            assert not hidden and len(rows) == len(values)
            for row in rows:
                assert row.cells[0].text == format_value(values[row.name]["cer"].value, "fraction")
                assert row.n == values[row.name]["cer"].n
    assert heat_maps(board)[0].tags


def slices_of(run: Path, make: Callable[[Estimate], dict[str, dict[str, Estimate]]]) -> None:
    """Put slices by `page` in place of those of a run, made of its CER."""
    folder = RunFolder.open(run)
    result = folder.stored_result()
    assert result is not None
    folder.write_result(msgspec.structs.replace(result, slices={"page": make(result.measures["cer"])}))


def test_a_cell_of_the_heat_map_without_a_value_has_its_reason_below(toy: Toy) -> None:
    slices_of(toy.runs[0], lambda whole: {"a": {"cer": whole}, "b": {"cer": Estimate(value=None, n=3)}})
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    maps = {each.tags[0][0]: each for each in heat_maps(board)}
    assert maps.pop("page").reasons == ["nothing here to measure"]
    assert all(each.reasons == [] for each in maps.values())


def test_the_largest_slices_of_a_tag_are_shown(toy: Toy) -> None:
    many = range(100)
    slices_of(toy.runs[0], lambda whole: {f"{n:03}": {"cer": msgspec.structs.replace(whole, n=n + 1)} for n in many})
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    ((_, rows, hidden),) = heat_maps(board)[0].tags
    assert [row.n for row in rows] == list(range(100, 40, -1)) and hidden == 40


def test_runs_of_one_engine_in_folders_of_one_name_have_labels_of_their_own(toy: Toy) -> None:
    roots = [toy.root / "runs", toy.root / "copy"]
    shutil.copytree(*roots)
    (board,) = looked(Shelf(roots)).boards.values()
    assert len(set(board.labels.values())) == 4
    assert board.labels[board.runs[0].key] == "good (runs/good)"


def test_of_texts_that_wait_for_scoring_the_last_is_scored(toy: Toy) -> None:
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    run, sample, what_if = board.runs[1], toy.samples[0], WhatIf()

    async def asked() -> list[JsonObject | BaseException]:
        try:
            texts = (sample.truth + "x", sample.truth + "xx", sample.truth)
            waiting = [what_if.score(board, run, sample, text, tab="one") for text in texts]
            other = what_if.score(board, run, sample, sample.truth + "x", tab="other")
            return await asyncio.gather(*waiting, other, return_exceptions=True)
        finally:
            what_if.close()

    first, second, last, other = asyncio.run(asked())
    assert isinstance(second, SupersededError) and isinstance(first, dict) and isinstance(last, dict)
    assert other == first
    (line,) = last["sample"]
    assert line["after"] == "0.00 %" and line["change"] == f"-{line['before'].removesuffix(' %')} points"


def test_lists_do_not_wait_for_a_comparison(toy: Toy) -> None:
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    begun, listed = threading.Event(), threading.Event()

    def make() -> bool:
        begun.set()
        return listed.wait(10)

    with ThreadPoolExecutor(2) as threads:
        compared = threads.submit(board.kept, "a comparison", make)
        assert begun.wait(10)
        threads.submit(board.rows).add_done_callback(lambda _: listed.set())
        assert compared.result()


def test_samples_that_a_limited_run_did_not_ask_for_are_not_missing(toy: Toy) -> None:
    for name in ("predictions.jsonl", "scores.jsonl"):
        lines = (toy.runs[1] / name).read_bytes().splitlines(keepends=True)
        (toy.runs[1] / name).write_bytes(b"".join(lines[:5]))
    change(toy.runs[1] / "run.json", total=5, limit=5)
    (board,) = looked(Shelf([toy.root / "runs"])).boards.values()
    place = board.ordered().index(board.runs[1])
    assert [row.cells[place].outcome for row in board.rows()] == ["ok"] * 5 + ["unasked"] * 3


def test_scores_that_are_not_held_are_read_when_they_are_looked_at(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> list[str]:
        shelf = Shelf([toy.root / "runs"])
        pages = Pages(shelf)
        (board,) = looked(shelf).boards.values()
        assert {run.holds_scores for run in board.runs} == {full}
        samples = pages.samples(board, wanted_of(board, {}), {})
        found = pages.board(board), samples, pages.compare(board, {}), pages.slices(board, board.runs[0].key)
        return [re.sub(r'data-stamp="\w+"', "", html or "") for html in found]

    full = True
    before = shown()
    monkeypatch.setattr("loupe.web.view.run_reader._MOST_HELD", 5)
    full = False
    assert shown() == before


def test_more_measures_than_a_page_shows_are_refused_of_a_run_from_elsewhere(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loupe.web.view.run_reader.MOST_MEASURES", 0)
    assert not looked(Shelf([toy.root / "runs"])).damaged
    (toy.runs[0] / "scored.seal").unlink()
    look = looked(Shelf([toy.root / "runs"]))
    assert "came from elsewhere and has more than 0 measures" in look.damaged[str(toy.runs[0])]
    assert [len(board.runs) for board in look.boards.values()] == [1]


def test_of_a_large_run_the_first_samples_are_shown_and_no_score_is_held(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loupe.web.view.run_reader.SAMPLE_LIMIT", 5)
    monkeypatch.setattr("loupe.web.view.board.SAMPLE_LIMIT", 5)
    monkeypatch.setattr("loupe.web.view.run_reader._PORTION", 100)  # lines longer than what is held at once
    shelf = Shelf([toy.root / "runs"])
    board = next(iter(looked(shelf).boards.values()))
    assert [(len(run.answers), len(run.scores), len(run.score_places)) for run in board.runs] == [(8, 0, 8)] * 2
    assert [row.ident for row in board.rows()] == [sample.id for sample in toy.samples[:5]]
    costs = [cell.value for row in board.rows() for cell in row.cells]
    assert len(costs) == 10 and None not in costs
    pages = Pages(shelf)
    run = board.ordered()[0]
    shown = {
        "board": pages.board(board),
        "samples": pages.samples(board, wanted_of(board, {}), {}),
        "compare": pages.compare(board, {}),
        "run": pages.run(board, run),
        "sample": pages.sample(board, toy.samples[0].id, wanted_of(board, {}), {}),
    }
    for name, html in shown.items():
        assert html is not None and "The first 5 of 8 samples are shown one by one" in html, name
    assert "No ranks here: with so many samples" in (shown["board"] or "")
    assert pages.home() and pages.slices(board, run.key)
    assert pages.sample(board, toy.samples[7].id, wanted_of(board, {}), {}) is None
    (outcomes,) = [run_context(board, run)["outcomes"]]
    assert sum(count for _, _, count in outcomes) == 8
    # It grows as any other.
    more = (run.folder.path / "predictions.jsonl").read_bytes().splitlines(keepends=True)[0]
    with (run.folder.path / "predictions.jsonl").open("ab") as file:
        file.write(more.replace(toy.samples[0].id.encode(), b"another"))
    board = next(iter(looked(shelf).boards.values()))
    assert sorted(len(each.answers) for each in board.runs) == [8, 9]
