"""What stands below a leaderboard: how its intervals were made, why a rank is missing, in which order others stand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from loupe.benchmarks.registry import get_benchmark
from loupe.report.collect import collect
from loupe.report.html import group_context
from loupe.report.leaderboard import step_of
from loupe.results.interval_words import interval_caption
from loupe.results.published import leaderboard_rows
from loupe.types import Estimate, Measure, PublishedRow, Result
from tests.support.report_runs import toy_pages

SHARE, CER = Measure(name="share"), Measure(name="cer", higher_is_better=False)
ALL = Estimate(value=1.0, low=0.6, high=1.0, n=8)
SOME = Estimate(value=0.5, low=0.4, high=0.7, n=8)


def result(clusters: int = 8, samples: int = 8, **measures: Estimate) -> Result:
    return Result(
        benchmark="toy", version="1", engine="e", signature="s", headline="share", measures=measures, directions={},
        units={}, total=8, statistics={"clusters": clusters, "samples": min(8, samples)},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (
            [result(share=SOME), result(share=SOME, cer=SOME)],
            "± is half of the 95 % interval, bars show the interval "
            "(bootstrap over 8 samples; answers that are right or wrong: exact, Clopper-Pearson).",
        ),
        (
            [result(6, share=SOME), result(6, share=ALL)],
            "± is half of the 95 % interval, two numbers beside a value are the bounds of its 95 % interval, "
            "bars show the interval "
            "(bootstrap over 6 documents; answers that are right or wrong: exact, Clopper-Pearson).",
        ),
        (
            [result(share=ALL), result(share=Estimate(value=0.5))],
            "Two numbers beside a value are the bounds of its 95 % interval, bars show the interval "
            "(answers that are right or wrong: exact, Clopper-Pearson); a dot without a bar has no interval.",
        ),
        (
            [result(cer=SOME)],
            "± is half of the 95 % interval (bootstrap over 8 samples).",
        ),
        ([result(7, 7, cer=SOME)], "± is half of the 95 % interval (bootstrap over 7 samples)."),
        (
            [result(share=Estimate(value=0.5))],
            "No value in this table has a 95 % interval: a dot without a bar has no interval.",
        ),
    ],
)
def test_the_caption_says_how_these_intervals_were_made(results: list[Result], said: str) -> None:
    assert interval_caption(results, [SHARE, CER], bars="share") == said


def test_a_headline_that_was_not_computed_says_why_there_are_no_ranks_and_no_bars(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 2)
    runs = [toy.run(name, {sample.id: sample.truth for sample in toy.samples}) for name in ("a", "b")]
    (group,) = collect(runs)
    for entrant in group.entrants:
        assert entrant.result is not None
        none = {"cer": Estimate(value=None)}
        changed = msgspec.structs.replace(entrant.result, measures=none, not_computed={"cer": "switched off"})
        object.__setattr__(entrant, "result", changed)
    assert "No ranks and no bars: CER was not computed (switched off)." in group_context(group)["caption"]


def test_published_rows_stand_in_the_order_of_the_first_column() -> None:
    values = {"x": {"a": 0.3}, "y": {"a": 0.1}, "z": {"b": 1.0}}
    rows = [
        PublishedRow(benchmark="b", version="1", name=name, engines=[], values=one, source="s")
        for name, one in values.items()
    ]
    columns = [Measure(name="a", higher_is_better=False), Measure(name="b")]
    assert [name for name, _, _ in leaderboard_rows(rows, columns)] == ["y", "x", "z"]
    assert [name for name, _, _ in leaderboard_rows(rows, [Measure(name="a"), columns[1]])] == ["x", "y", "z"]


def test_distances_between_0_and_1_are_coloured_though_they_are_no_percentages() -> None:
    measures = {measure.name: measure for measure in get_benchmark("omnidocbench").measures}
    names = ("text_edit", "formula_edit", "table_edit", "reading_order_edit")
    assert [step_of(0.04, measures[name]) for name in names] == [5] * 4
    assert step_of(3.0, Measure(name="edits", unit="number", higher_is_better=False)) is None
