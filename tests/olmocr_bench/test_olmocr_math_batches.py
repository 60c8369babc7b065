"""Math tests of olmOCR-Bench on pages of our own: what is only faster changes no outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

from loupe.benchmarks.olmocr_bench import load, prepare, score
from loupe.benchmarks.olmocr_bench.equations import render_and_match
from loupe.benchmarks.olmocr_bench.page_facts import questions
from loupe.benchmarks.olmocr_bench.page_text import PageText
from loupe.benchmarks.olmocr_bench.records import MathRule
from loupe.benchmarks.shared.equations.equation_match import embed, presentation, symbols_of
from loupe.benchmarks.shared.equations.rendering.drawing import Drawing
from loupe.types import Prediction, Sample, Scored
from tests.support.math_renderer import fresh_renderer, need_renderer
from tests.support.olmocr_set import write_olmocr_set

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Sample, Prediction]]:
    """A hundredth of the published set, ours, with the answers of a candidate."""
    need_renderer()
    root = tmp_path_factory.mktemp("set") / "olmocr"
    answers = write_olmocr_set(root, share=0.01)
    return [
        (sample, Prediction(sample=sample.id, text=(answers / f"{sample.id}.md").read_text(encoding="utf-8")))
        for sample in load(root)
    ]


def scored(pairs: list[tuple[Sample, Prediction]]) -> list[Scored]:
    return [score(sample, prediction) for sample, prediction in pairs]


def test_prepared_pages_have_the_scores_of_pages_that_draw_for_themselves(
    pairs: list[tuple[Sample, Prediction]], tmp_path: Path
) -> None:
    with fresh_renderer(tmp_path / "a") as renderer:
        prepare(pairs)
        renderer._browser.close()
        prepared = scored(pairs)
        assert renderer._browser._thread is None, "something was not prepared"
    with fresh_renderer(tmp_path / "b"):
        assert scored(pairs) == prepared
    facts = [fact for each in prepared for fact in each.details["tests"] if fact["type"] == "math"]
    assert {fact["passed"] for fact in facts} == {True, False}


def test_filters_decide_as_boxes_would(pairs: list[tuple[Sample, Prediction]], tmp_path: Path) -> None:
    compared = 0
    with fresh_renderer(tmp_path) as renderer:
        for sample, prediction in pairs:
            rules = [test.rule for test in sample.truth.page.tests if isinstance(test.rule, MathRule)]
            for reference, equations in questions(PageText(prediction.text), rules):
                [sought] = renderer.draw([reference], measured=True)
                drawn = renderer.draw(equations, measured=True)
                every = [place for place, each in enumerate(drawn) if matches_by_boxes(sought, each)]
                matched = render_and_match(reference, equations).matched
                assert (matched in every) if every else matched is None
                compared += len(equations)
    assert compared > 500


def matches_by_boxes(reference: Drawing, hypothesis: Drawing) -> bool:
    """Compared without any shortcut (docs/protocols/olmocr_bench.md#comparing-equations)."""
    if hypothesis.error:
        return not symbols_of(reference).text
    if presentation(reference.mathml) in presentation(hypothesis.mathml):
        return True
    return embed(symbols_of(reference), symbols_of(hypothesis)) is not None
