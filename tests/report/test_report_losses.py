"""What samples cost, flags, official figures, and grids of tables, as data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.explanation import Explanation, Flag, Region, Unit
from loupe.report.matches import BUDGET, CELL_LIMIT, UNIT_LIMIT, packed_match, packed_page, table_grids
from loupe.results.costs import Counts, costs
from loupe.results.flag_cells import Flags
from loupe.results.losses import official_table
from loupe.types import Measure, Result, SampleScores, Score, Values

TEXT = Measure(name="text", higher_is_better=False)
TABLE = Measure(name="table")
WHOLE = Measure(name="whole")
MEASURES = (WHOLE, TEXT, TABLE)


def whole(values: Values) -> Values:
    return {"whole": ((1 - values["text"]) + values["table"]) / 2}


def row(sample: str, **values: float) -> SampleScores:
    return SampleScores(
        sample=sample, scores=[Score(measure=name, counts=(value, 1.0)) for name, value in values.items()]
    )


fractions = st.floats(0, 1, allow_nan=False)


@given(st.lists(st.tuples(fractions, fractions | st.none()), min_size=1, max_size=12))
def test_costs_and_their_parts_add_up_to_what_is_lost(pages: list[tuple[float, float | None]]) -> None:
    rows = [
        row(str(number), text=text, **({} if table is None else {"table": table}))
        for number, (text, table) in enumerate(pages)
    ]
    found = costs(MEASURES, Counts(rows), headline="whole", summarize=whole)
    texts, tables = [text for text, _ in pages], [table for _, table in pages if table is not None]
    lost = (np.mean(texts) + (1 - np.mean(tables) if tables else 0)) / 2
    assert found.lost == pytest.approx(lost, abs=1e-9)
    assert sum(found.by_sample.values()) == pytest.approx(found.lost, abs=1e-9)
    for sample, cost in found.by_sample.items():
        assert sum(found.parts[sample].values()) == pytest.approx(cost, abs=1e-9)
    assert list(found.by_sample.values()) == sorted(found.by_sample.values(), reverse=True)
    assert found.without == (() if tables else ("table",))


def test_a_long_page_costs_more_where_errors_are_counted_over_all_characters() -> None:
    cer = Measure(name="cer", higher_is_better=False)
    counts = {"short": (5.0, 10.0), "long": (50.0, 1000.0), "right": (0.0, 10.0)}
    rows = [SampleScores(sample=name, scores=[Score(measure="cer", counts=each)]) for name, each in counts.items()]
    found = costs([cer], Counts(rows), headline="cer", summarize=None)
    assert found.by_sample == pytest.approx({"long": 50 / 1020, "short": 5 / 1020})


def test_measures_whose_perfect_answer_is_not_known_tell_nothing() -> None:
    odd = Measure(name="odd", value=lambda sums: sums[..., 0] ** 2 / sums[..., 1] + 0.5)
    counts = Counts([SampleScores(sample="a", scores=[Score(measure="odd", counts=(1.0, 3.0))])])
    assert costs([odd], counts, headline="odd", summarize=None).by_sample == {}
    assert costs(MEASURES, Counts([]), headline="whole", summarize=whole).by_sample == {}


def test_flags_name_the_worst_samples_and_replace_their_warning_only() -> None:
    flags = Flags()
    for number in range(20):
        flag = Flag(name="stray-bar", meaning="rows made of prose", count=number + 1.0)
        flags.add(0, f"page {number:02}", Explanation(size=(1, 1), flags=(flag,)))
    flags.add(0, "gone", Explanation(size=(1, 1), flags=(Flag(name="missing-prediction", meaning="none", count=1.0),)))
    [(name, _, [cell, other]), _] = flags.rows(2)
    assert name == "stray-bar" and other is None and cell is not None
    assert (cell.count, cell.samples, cell.more) == ("210", 20, 12)
    assert cell.named[0] == ("page 19", "20")
    result = Result(benchmark="b", version="1", engine="e", signature="s", headline="h", measures={}, directions={},
                    units={}, warnings=["stray-bar: 210", "missing-prediction: 1", "other"])  # fmt: skip
    assert flags.warnings(result) == ["missing-prediction: 1", "other"]


def cells(*rows: str) -> str:
    inside = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row.split("|")) + "</tr>" for row in rows)
    return f"<html><body><table>{inside}</table></body></html>"


def test_changed_and_missing_cells_carry_the_number_of_their_change() -> None:
    grids = table_grids(cells("a|b", "c|d"), cells("a|b", "c|e", "f|g"))
    kinds = [[kind, [cell[3] for cell in row]] for kind, row in grids["reference"]["rows"]]
    assert kinds == [["", ["", ""]], ["", ["", "text"]], ["missing", ["missing", "missing"]]]
    [changed] = [cell for _, row in grids["prediction"]["rows"] for cell in row if cell[3]]
    assert changed[0] == "d" and grids["reference"]["rows"][1][1][1][4] == changed[4]
    assert grids["notes"] == ["1 row missing"]


def test_a_table_without_partner_is_shown_alone_and_a_huge_one_is_cut() -> None:
    alone = table_grids("", cells("a|b"))
    assert alone["prediction"] is None and alone["problem"] == "The prediction is empty."
    assert alone["reference"]["rows"][0][1][0][0] == "a"
    many = table_grids(cells(*["x|y|z"] * 600), cells(*["x|y|z"] * 600))
    assert many["prediction"]["hidden"] == 1_800 - CELL_LIMIT
    assert table_grids(cells(*["x|y|z"] * 9000), cells("a"))["problem"].startswith("These tables are too large")
    assert table_grids('<html><body><table><tr><td colspan="9000">a</td></tr></table></body></html>', cells("a"))[
        "prediction"]["rows"][0][1][0][1] == 100  # fmt: skip


def test_a_match_is_bounded_in_units_and_characters() -> None:
    unit = Unit(element="text", regions=(0,), reference="r" * 10_000, pieces=("p" * 10_000,), compared=("p", "r"))
    packed = packed_match(Explanation(size=(1, 1), units=(unit,) * (UNIT_LIMIT + 7)))
    assert len(packed["units"]) == UNIT_LIMIT and packed["hiddenUnits"] == 7
    kept = sum(len(text[0] if isinstance(text, list) else text) for each in packed["units"]
               for text in (each["reference"], *each["pieces"], *each["compared"]))  # fmt: skip
    assert kept <= BUDGET
    assert packed["units"][0]["reference"] == ["r" * 4_000, 6_000]


@pytest.mark.parametrize(("size", "ratio", "shown"), [
    ((877, 620), 0.707, (620, 877)), ((620, 877), 0.707, (620, 877)), ((877, 620), 1.41, (877, 620)),
    ((877, 620), 0.0, (877, 620)), ((0, 0), 0.7, (30.0, 40.0)),
])  # fmt: skip
def test_the_shape_of_the_picture_says_which_side_is_the_width(
    size: tuple[float, float], ratio: float, shown: tuple[float, float]
) -> None:
    region = Region(polygon=(1, 1, 30, 1, 30, 40, 1, 40), category="text")
    page = packed_page([None, Explanation(size=size, regions=(region,))], ratio)
    assert page is not None and tuple(page["size"]) == shown
    assert all(math.isfinite(value) for value in page["regions"][0][0])
    assert packed_page([None], ratio) is None


def test_an_answer_full_of_tables_is_drawn_in_part() -> None:
    table = cells(*["x|y|z"] * 300)
    unit = Unit(element="table", regions=(), reference=table, pieces=(table,), tables=(table, table))
    units = packed_match(Explanation(size=(1, 1), units=(unit,) * 40))["units"]
    assert [each["grids"] is not None for each in units] == [True] * 2 + [False] * 38
    assert units[2]["reference"] == [table[:4_000], len(table) - 4_000]


def mean_of_what_is_there(values: Values) -> Values:
    there = [np.asarray(values[name], float) for name in ("text", "table") if values.get(name) is not None]
    stacked = np.stack(np.broadcast_arrays(*there))
    return {"whole": np.nanmean(stacked, axis=0)}


def test_a_headline_that_is_no_composite_has_costs_too() -> None:
    rows = [row("a", table=0.5), row("b", table=1.0)]
    assert costs(MEASURES, Counts(rows), headline="table", summarize=mean_of_what_is_there).by_sample == {
        "a": pytest.approx(0.25)
    }


def test_a_task_that_does_not_occur_is_left_out_of_a_mean_and_costs_nothing() -> None:
    table_and_other = (WHOLE, Measure(name="text"), TABLE)
    rows = [row("a", table=0.5), row("b", table=1.0)]
    found = costs(table_and_other, Counts(rows), headline="whole", summarize=mean_of_what_is_there)
    assert found.by_sample == {"a": pytest.approx(0.25)}
    assert found.lost == pytest.approx(0.25)


def result_with(figures: dict[str, Any]) -> Result:
    facts: dict[str, Any] = {key: {} for key in ("measures", "directions", "units")}
    return Result(benchmark="b", version="1", engine="e", signature="s", headline="h", figures=figures, **facts)


def test_official_figures_are_the_score_with_its_own_interval_pass_rates_and_whole_numbers() -> None:
    figures = {
        "overall": 0.943,
        "tests": 1200,
        "cdm_profile": "unimernet",
        "categories": {"old_scans": {"passed": 87, "total": 99, "rate": 87 / 99}},
        "types": {"math": {"rate": 0.5, "tests": 12}},
        "interval": {"low": 0.9, "high": 0.976, "half_width": 0.038, "level": 0.95, "samples": 1000, "seed": 0},
    }
    shown = official_table([("engine", result_with(figures)), ("other", None)])
    assert (shown.header, shown.rows) == (
        ("figure", "engine"),
        [
            ("overall", "94.3 % ± 3.8"),
            ("tests", "1,200"),
            ("category old_scans", "87.9 % (87 of 99)"),
            ("type math", "50.0 % (of 12)"),
        ],
    )
    shown = official_table([("engine", result_with({"headline": {"CDM": 0.5, "TEDS": None, "pages": 3}}))])
    assert shown.header == ("figure", "headline")
    assert shown.rows == [("CDM", "0.500"), ("TEDS", "not computed"), ("pages", "3")]
    share = {"corrected": {"corrected": 0, "n": 2, "low": 0.0, "high": 0.842}}
    assert not official_table([("engine", result_with(share))]).rows, "a share of ours is nobody's official figure"
