"""`loupe lint`: faults of short answers and of HTML, answers in formats of other programs, and its options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import loupe as api
from loupe.benchmarks.registry import get_benchmark
from loupe.errors import UsageError
from loupe.features.lint.adapter_faults import faults_of_pages
from loupe.features.lint.command import remarks
from loupe.features.lint.measure import lint
from loupe.features.lint.mended_answers import mend
from tests.pipeline.test_foreign_answers import AZURE, REFUSED, as_text
from tests.pipeline.test_foreign_answers import here as here
from tests.support.command_line import complaint, loupe, make_folder


@pytest.mark.parametrize(
    ("fault", "text", "mended"),
    [
        ("boxed", r"So it is $\boxed{\frac{1}{2}}$.", r"\frac{1}{2}"),
        ("lead-in", "I looked.\nThe answer is: 12 ", "12"),
        ("lead-in", "ANSWER: Baker Street", "Baker Street"),
        ("wrapped", ' "twelve" ', "twelve"),
        ("final-stop", "Twelve.", "Twelve"),
        ("number-signs", "$1,234,567.50", "1234567.50"),
    ],
)
def test_lint_finds_what_stands_around_an_answer(fault: str, text: str, mended: str) -> None:
    found = next(each for each in get_benchmark("chartqa").faults if each.name == fault)
    assert mend(text, found.edits(text)) == mended
    assert not found.edits(mended)


def test_lint_knows_what_costs_points_here_and_that_html_does_not() -> None:
    faults = {fault.name: fault for fault in faults_of_pages(get_benchmark("omni_parse_bench"))}
    assert "html-text" not in faults and "thinking" in faults
    wrapped = "Here it is:\n```html\n<table><tr><td>a</td></tr></table>\n```\n"
    [before, after] = faults["words-around-page"].edits(wrapped)
    assert wrapped[before.end : after.start] == "<table><tr><td>a</td></tr></table>"
    assert len(faults["markdown-in-html"].edits("<p>**a** b</p>")) == 2
    assert not faults["markdown-in-html"].edits("**a**") and not faults["words-around-page"].edits("```\na\n```")


def test_lint_limits_samples_as_every_command_does(tmp_path: Path) -> None:
    make_folder(tmp_path)
    answers = tmp_path / "answers"
    answers.mkdir()
    for number in range(6):
        (answers / f"p{number}.txt").write_text("```\nalpha\n```")
    for words, pages in (((), 6), (("--limit", "2"), 2)):
        found = json.loads(loupe("lint", answers, "--for", "mydocs", "--json", *words, cwd=tmp_path).stdout)
        assert (found["read"], len(found["pages"])) == (pages, pages)
    refused = loupe("lint", answers, "-o", "x=1", cwd=tmp_path)
    assert complaint(refused)[0] == "--option is for answers, not for a run"


def test_foreign_formats_are_refused_or_faults_of_unknown_cost(here: Path) -> None:
    answers = iter([as_text(AZURE), REFUSED["ALTO XML"][0]])
    run = api.run(here / "own", lambda request: next(answers), runs=here / "runs", jobs=1)
    linted = lint(run.path)
    found = {fault.name: fault for fault in linted.faults}
    assert found["service-json"].mended["text_similarity"] > linted.official["text_similarity"]
    assert found["foreign-format"].mended == {}, "nothing mends it, so nobody knows its cost"
    said = " ".join(remarks(linted))
    assert "1 page in a foreign format: the cost is not known" in said and "at no cost" not in said
    assert (found["service-json"].adapter, found["foreign-format"].pages) == ("service_json", 1)
    (here / "answers/p1.html").write_text(REFUSED["hOCR"][0])
    with pytest.raises(UsageError, match=r"answers/p1\.html: hOCR"):
        lint(here / "answers", str(here / "own"))
