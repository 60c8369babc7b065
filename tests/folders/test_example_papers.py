"""The papers of the worked example: the same ones every time, and known by what they are."""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from loupe.benchmarks.folders.own import open_folder
from loupe.benchmarks.folders.own.config import read_config
from loupe.benchmarks.folders.own.folder_files import find_documents
from loupe.benchmarks.folders.own.starting import Beginning, begin
from loupe.data.example_documents.papers import drawn, is_drawn, papers
from loupe.metrics.dates import normalize_date
from loupe.web.review.sample_drafts import verify
from tests.support.command_line import loupe


def test_the_papers_of_the_example_are_always_the_same_and_their_truth_can_be_read(tmp_path: Path) -> None:
    every = list(papers())
    assert [sum(paper.is_invoice is kind for paper in every) for kind in (True, False)] == [30, 30]
    assert {paper.language for paper in every} == {"en", "de", "fr", "es", "it"}
    assert all(normalize_date(paper.truth["date"]) for paper in every if paper.is_invoice)
    first = every[0]
    assert first.kind == "pdf" and drawn(first) == drawn(next(papers()))
    (tmp_path / f"{first.name}.pdf").write_bytes(drawn(first))
    for paper in every[:3]:
        (tmp_path / f"page.{paper.kind}").write_bytes(drawn(paper))
        assert drawn(paper) == drawn(paper) and is_drawn(paper, tmp_path / f"page.{paper.kind}")
        assert not is_drawn(every[every.index(paper) + 3], tmp_path / f"page.{paper.kind}")
        (tmp_path / f"page.{paper.kind}").unlink()
    begin(tmp_path, find_documents(tmp_path), Beginning(task="fields", fields={"date": "date", "total": "amount"}))
    known = {first.name: {name: first.truth[name] for name in ("date", "total")}}
    config = read_config(tmp_path)[0]
    assert config is not None
    assert verify(tmp_path, config, known, by="the test", at="2026-11-22T04:00:00Z") == (1, 0)
    assert json.loads((tmp_path / "samples.jsonl").read_text("utf-8"))["truth"] == {
        "status": "verified",
        "by": "the test",
        "at": "2026-11-22T04:00:00Z",
    }
    assert [sample.truth for sample in open_folder(tmp_path).load()] == list(known.values())


def test_truth_of_the_example_is_not_written_for_documents_that_only_have_its_names(tmp_path: Path) -> None:
    Image.new("L", (40, 30)).save(tmp_path / "invoice-02.png")
    begin(tmp_path, find_documents(tmp_path), Beginning(task="fields", fields={"day": "date", "total": "amount"}))
    before = (tmp_path / "samples.jsonl").read_bytes()
    done = loupe("example", "truth", ".", cwd=tmp_path)
    assert done.returncode == 2 and "invoice-02 is not the document of this name in the example" in done.stderr
    assert (tmp_path / "samples.jsonl").read_bytes() == before
