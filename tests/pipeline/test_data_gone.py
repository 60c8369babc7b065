"""Runs whose data is not on this machine: all numbers and answers are shown, and how to bring pages and references."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from loupe.engines.registry import load_profile
from loupe.pipeline import Plan, score_run
from loupe.types import Prediction
from tests.support.answered import answered_run
from tests.support.command_line import complaint, loupe
from tests.support.synthetic import MAKERS, write_prepared
from tests.support.web.review_app import Served
from tests.support.web.view_app import viewed

GONE = [ident for ident in MAKERS if ident != "unimer_test"]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every benchmark, as they are on a machine to which nobody has copied the data."""
    home = tmp_path_factory.mktemp("copied")
    for ident in GONE:
        data = home / "data" / ident
        answers = write_prepared(ident, data, 2)
        plan = Plan(
            benchmark=ident,
            label="reader",
            profile=load_profile("openai", {"model": "m"})[1],
            data=data,
            runs=home / "runs",
        )
        run = answered_run(plan, [Prediction(sample=name, text=text) for name, text in answers.items()])
        score_run(run, jobs=1)
    shutil.rmtree(home / "data")
    return home


@pytest.fixture(scope="module")
def server(copied: Path) -> Iterator[Served]:
    with viewed(copied / "runs", home=copied) as found:
        yield found


@pytest.mark.parametrize("ident", GONE)
def test_a_report_without_the_data_has_all_answers_and_says_what_brings_the_pages(copied: Path, ident: str) -> None:
    run = copied / "runs" / "reader" / ident
    done = loupe("report", run, "-o", f"{ident}.html", cwd=copied)

    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    said = unescape((copied / f"{ident}.html").read_text())
    assert "Pages and references are missing" in said and "Numbers and answers are complete" in said
    assert f"copy the data to {copied / 'data' / ident}, or name its folder: loupe score {run} --data DIR" in said


@pytest.mark.parametrize("ident", GONE)
def test_the_viewer_without_the_data_shows_every_answer(server: Served, copied: Path, ident: str) -> None:
    board = next(
        found for found in re.findall(r'href="(/b/[^"/?]+)"', html(server, "/")) if found[3:].startswith(ident)
    )
    first = json.loads((copied / "runs" / "reader" / ident / "predictions.jsonl").read_text().splitlines()[0])
    sample = f"id={quote(first['sample'], safe='')}"

    assert "Pages and references are missing" in unescape(html(server, board))
    for page in ("samples", f"sample?{sample}", f"what-if?{sample}", "slices"):
        assert html(server, f"{board}/{page}")
    status, _, body = server.ask(f"{board}/payload?{sample}")
    assert status == 200, body
    assert json.dumps(first["text"][:20])[1:-1] in json.dumps(json.loads(gzip.decompress(body)))


def test_a_run_is_told_where_its_data_lies_now(copied: Path, tmp_path: Path) -> None:
    run, data = copied / "runs" / "reader" / "dp_bench", tmp_path / "elsewhere"
    write_prepared("dp_bench", data, 2)
    before = json.loads((run / "result.json").read_text())

    done = loupe("score", run, "--data", data, cwd=copied)

    assert done.returncode == 0, done.stderr
    assert json.loads((run / "run.json").read_text())["data"] == str(data)
    assert json.loads((run / "result.json").read_text())["measures"] == before["measures"]


def test_a_run_is_not_told_of_other_data(copied: Path, tmp_path: Path) -> None:
    run, data = copied / "runs" / "reader" / "iam_lines", tmp_path / "other"
    write_prepared("iam_lines", data, 2, seed=8)
    before = (run / "run.json").read_bytes()

    done = loupe("score", run, "--data", data, cwd=copied)

    assert "other samples or references" in complaint(done)[0] and done.returncode == 2
    assert (run / "run.json").read_bytes() == before


def test_a_run_on_a_folder_is_scored_where_the_folder_lies_on_another_machine(tmp_path: Path) -> None:
    old, store = tmp_path / "old", tmp_path / "store"
    (old / "f").mkdir(parents=True)
    (old / "f" / "loupe.toml").write_text('[benchmark]\ntask = "text"\n')
    (old / "f" / "samples.jsonl").write_text('{"id": "a", "text": "x", "reference": "calm sea"}\n')
    (old / "answers.jsonl").write_text('{"id": "a", "text": "calm sea"}\n')
    assert loupe("score", "f", "answers.jsonl", cwd=old).returncode == 0
    new = tmp_path / "new"
    shutil.copytree(old / "runs", new / "runs")
    shutil.move(old / "f", store / "f")
    run = new / "runs" / "answers" / "f"

    gone = loupe("score", run, cwd=new)
    assert complaint(gone)[0].endswith(" of this run is missing") and "--data DIR" in complaint(gone)[1]
    done = loupe("score", "runs", "--data", "../store", "--fail-under", "99", cwd=new)
    assert done.returncode == 0 and "unchanged" in done.stdout, done.stderr
    assert json.loads((run / "run.json").read_text())["benchmark"] == str(store / "f")

    shutil.move(store / "f", tmp_path / "g")
    done = loupe("score", run, "--data", tmp_path / "g", "--fail-under", "99", cwd=new)
    assert done.returncode == 0, done.stderr
    before = (run / "run.json").read_bytes()
    (tmp_path / "g" / "samples.jsonl").write_text('{"id": "b", "text": "y", "reference": "storm"}\n')
    other = loupe("score", run, "--data", tmp_path / "g", cwd=new)
    assert "other samples or references" in complaint(other)[0] and (run / "run.json").read_bytes() == before


def html(server: Served, path: str) -> str:
    status, _, body = server.ask(path)
    assert status == 200, (path, body[:300])
    return body.decode()


@pytest.mark.parametrize("command", ["run", "score"])
def test_a_run_that_is_repeated_without_its_data_option_keeps_where_its_data_lies(tmp_path: Path, command: str) -> None:
    data = tmp_path / "store" / "iam_lines"
    answers = write_prepared("iam_lines", data, 2)
    lines = [json.dumps({"id": name, "text": text}) for name, text in answers.items()]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines))
    given = (
        ["answers.jsonl", "--name", "a"] if command == "score" else ["-e", "predictions:answers.jsonl", "--name", "a"]
    )
    for more in (["--data", data], []):
        done = loupe(command, "iam_lines", *given, *more, cwd=tmp_path, env={"LOUPE_DATA": str(tmp_path / "store")})
        assert done.returncode == 0, done.stderr
        assert json.loads((tmp_path / "runs" / "a" / "iam_lines" / "run.json").read_text())["data"] == str(data)
