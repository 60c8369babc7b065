"""What the report is told of a test: plain words for every kind, evidence for failures, marks on equations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks.olmocr_bench import PageTruth, facts, score
from loupe.benchmarks.olmocr_bench.dataset import PdfTests
from loupe.benchmarks.olmocr_bench.evidence import words_of
from loupe.benchmarks.olmocr_bench.records import KINDS, read_test
from loupe.benchmarks.shared.answer_texts import join_answers
from loupe.benchmarks.shared.equations.equation_match import Symbols
from loupe.benchmarks.shared.equations.equation_pictures import EquationPictures, marks_of
from loupe.benchmarks.shared.equations.rendering import renderer
from loupe.explanation import Fact
from loupe.types import Prediction, Sample, SampleScores

RECORDS: dict[str, dict[str, Any]] = {
    "present": {"text": "Zebra", "first_n": 20, "case_sensitive": False, "max_diffs": 1},
    "absent": {"text": "Zebra", "last_n": 9},
    "order": {"before": "Zebra", "after": "Giraffe"},
    "table": {"cell": "Zebra", "up": "Giraffe", "left_heading": "Lion"},
    "math": {"math": r"\frac{Z}{2}", "ignore_dollar_delimited": True},
    "baseline": {},
    "format": {"text": "Zebra", "format": "heading"},
    "footnote": {"marker": "7", "appears_before_marker": "Zebra"},
}


def explained(record: dict[str, Any], *answers: str) -> Fact:
    """What is told of one test on these answers to its page, as the report gets it."""
    test = read_test({"pdf": "zoo.pdf", "page": 1, "id": "t", **record}, category="old_scans")
    sample = Sample(id="zoo_pg1_repeat1", truth=PageTruth(PdfTests("zoo.pdf", 1, (test,)), ("old_scans",)))
    prediction = Prediction(sample=sample.id, text=join_answers(answers), joined=True)
    scored = score(sample, prediction)
    kept = SampleScores(sample=sample.id, scores=scored.scores, details=dict(scored.details))
    [fact] = facts(sample, prediction, kept)
    return fact


def test_every_kind_of_test_is_put_in_words_with_all_its_texts() -> None:
    assert set(RECORDS) == set(KINDS)
    for kind, record in RECORDS.items():
        words = words_of(read_test({"pdf": "a.pdf", "page": 1, "id": "t", "type": kind, **record}))
        quoted = [text for role, text in words if role]
        assert quoted == [text for name, text in record.items() if isinstance(text, str) and name != "format"]
        assert words[-1][1].endswith(".")
    present = read_test({"pdf": "a.pdf", "page": 1, "id": "t", "type": "present", **RECORDS["present"]})
    assert "".join(text for _, text in words_of(present)) == (
        "Zebra must stand on the page among the first 20 characters, up to 1 character may differ; "
        "capitals do not matter."
    )


def test_the_first_answer_that_fails_is_the_evidence() -> None:
    fact = explained({"type": "present", "text": "Zebra"}, "a Zebra", "a Zebxa here", "no animals")
    assert not fact.passed and "33% of them pass" in fact.why
    [found] = fact.comparisons
    assert (found.before, found.found, found.after) == ("a ", "Zebxa", " here")
    assert found.similarity == pytest.approx(0.8)


def test_a_very_long_answer_is_not_searched_again() -> None:
    fact = explained({"type": "present", "text": "Zebra"}, "Zebxa " * 20_000)
    [found] = fact.comparisons
    assert found.found == "Zebxa" and found.before == ""


def row(text: str) -> Symbols:
    return Symbols(text, [10.0 * place for place in range(len(text))], [0.0] * len(text))


def test_symbols_are_missing_extra_or_moved() -> None:
    assert marks_of(row("a+b"), row("a+c")) == (["", "", "extra"], ["", "", "missing"])
    assert marks_of(row("xa+b"), row("a+b")) == (["extra", "", "", ""], ["", "", ""])
    prediction, reference = marks_of(row("ab=cd"), row("cd=ab")) or ([], [])
    assert {"moved"} <= set(reference) <= {"", "moved"} and {"moved"} <= set(prediction) <= {"", "moved"}
    assert marks_of(row("x" * 3_000), row("x")) is None


def test_where_nothing_draws_the_equations_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_KATEX_DIR", str(tmp_path))
    monkeypatch.setattr(renderer, "_complete_versions", renderer._complete_versions.__wrapped__)
    renderer.the_picture_renderer.cache_clear()
    [(wanted, found)] = EquationPictures().pairs([("x", "y")])
    assert wanted.drawn is None and found.drawn is None
    assert "KaTeX" in wanted.problem and "loupe setup math" in wanted.problem
    assert (wanted.latex, found.latex) == ("y", "x")
