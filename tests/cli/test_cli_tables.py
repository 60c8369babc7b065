"""Tables for the terminal: what a person sees of a result, and what must never be hidden."""

from __future__ import annotations

import io

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from loupe.errors import UsageError
from loupe.results.headline import format_headline
from loupe.results.sections import failed_count, format_margin, format_value, result_sections
from loupe.results.slices import slices_section
from loupe.results.tables.record import Table
from loupe.results.tables.terminal import fitted, rich_tables, tab_separated
from loupe.types import Estimate, Failure, Result

RESULT = Result(
    benchmark="toy",
    version="1",
    engine="reader",
    signature="toy:1|n:40",
    headline="similarity",
    measures={
        "cer": Estimate(value=0.125, low=0.1, high=0.16, n=40),
        "similarity": Estimate(value=0.875, low=0.84, high=0.9, n=40),
        "score": Estimate(value=861.5, low=840, high=880, n=1000),
        "teds": Estimate(value=None, n=0),
    },
    directions={"similarity": True, "cer": False},
    units={"similarity": "fraction", "cer": "fraction", "score": "number"},
    total=40,
    outcomes={"ok": 40},
)


def lines(result: Result) -> list[str]:
    return list(tab_separated(result_sections(result)))


def test_the_headline_comes_first_with_value_margin_interval_and_n() -> None:
    assert lines(RESULT)[:3] == [
        "# reader on toy@1, 40 samples",
        "measure\tvalue\t±\t95 % interval\tn",
        "similarity ↑\t87.50 %\t± 3.00\t84.00 … 90.00\t40",
    ]


def test_lower_is_better_is_shown_and_numbers_are_not_percentages() -> None:
    assert "cer ↓\t12.50 %\t± 3.00\t10.00 … 16.00\t40" in lines(RESULT)
    assert "score ↑\t861.5\t± 20\t840 … 880\t1,000" in lines(RESULT)


def test_a_measure_that_was_not_computed_is_named_and_no_zero() -> None:
    shown = lines(RESULT)
    assert shown[shown.index("# not computed: nothing here to measure") + 1] == "teds"
    assert not any(line.startswith("teds ") for line in shown)
    assert format_value(None, "fraction") == "–"
    reasons = msgspec.structs.replace(RESULT, not_computed={"teds": "TEDS is switched off"}, published_total=99)
    shown = lines(msgspec.structs.replace(reasons, official="official: 12"))
    assert shown[shown.index("# not computed") + 1] == "teds\tTEDS is switched off"
    assert "official: 12" in shown and any(line.startswith("only 40 of the 99 samples of toy@1") for line in shown)


def test_all_slices_of_a_tag_stand_in_one_table() -> None:
    slices = {
        "lang": {
            "en": {"cer": Estimate(value=0.2, n=2)},
            "zh": {"cer": Estimate(value=0.5, n=30), "score": Estimate(value=3.0, n=4)},
        }
    }
    result = msgspec.structs.replace(RESULT, slices=slices)
    section = slices_section(result, "lang")
    assert section.header == ("lang", "n", "cer ↓", "score ↑")
    assert section.rows == [("zh", "30", "50.00 %", "3 (4)"), ("en", "2", "20.00 %", "–")]
    assert section.title.endswith("; –: nothing here to measure")
    with pytest.raises(UsageError, match="no slices by 'lnag'; did you mean 'lang'") as refused:
        slices_section(result, "lnag")
    assert refused.value.hint == "use --by with one of: lang"


def test_the_headline_in_one_line() -> None:
    assert format_headline(RESULT) == "similarity 87.50 % ± 3.00"


def test_a_result_without_trouble_says_nothing_of_trouble() -> None:
    assert not any("failed" in line for line in lines(RESULT))


@pytest.mark.parametrize(("failed", "alarm"), [(2, False), (3, True)])
def test_more_than_five_percent_failed_is_an_alarm(failed: int, alarm: bool) -> None:
    result = msgspec.structs.replace(RESULT, outcomes={"ok": 40 - failed, "error": failed})
    section = next(item for item in result_sections(result) if item.title == "failed or incomplete answers")
    assert section.alarm is alarm
    assert tuple(section.rows[0]) == ("failed", f"{failed} of 40", f"{100 * failed / 40:.1f} %", "scored as empty")


def test_every_answer_that_was_not_scored_as_it_is_is_counted() -> None:
    outcomes = {"ok": 30, "timeout": 2, "missing": 1, "truncated": 3, "repeated": 4}
    failures = [Failure(sample="p1", outcome="timeout", error="no answer\nin 300 s")]
    failures += [Failure(sample="p2", outcome="missing", error="no answer")]
    text = "\n".join(lines(msgspec.structs.replace(RESULT, outcomes=outcomes, failures=failures)))
    assert "failed\t3 of 40\t7.5 %" in text
    assert "timeout\t2 of 40\t5.0 %\tno answer in time" in text
    assert "missing\t1 of 40" in text and "truncated\t3 of 40" in text and "repeated\t4 of 40" in text
    assert "p1\ttimeout\tno answer in 300 s" in text


def test_a_sample_whose_scorer_failed_counts_as_failed() -> None:
    failures = [Failure(sample=f"p{n}", outcome="scorer", error="ValueError: odd") for n in range(3)]
    result = msgspec.structs.replace(RESULT, outcomes={"ok": 39, "error": 1}, failures=failures)
    assert failed_count(result) == 4
    section = next(item for item in result_sections(result) if item.title == "failed or incomplete answers")
    assert section.alarm
    assert [tuple(row) for row in section.rows] == [
        ("failed", "4 of 40", "10.0 %", "scored as empty"),
        ("  error", "1 of 40", "2.5 %", "ended with an error"),
        ("  scorer", "3 of 40", "7.5 %", "scoring failed"),
    ]


@pytest.mark.parametrize(
    ("estimate", "margin"),
    [
        (Estimate(value=0.0, low=0.0, high=0.8419, n=2), "0.00 … 84.19"),
        (Estimate(value=1.0, low=0.8843, high=1.0, n=30), "88.43 … 100.00"),
        (Estimate(value=0.5, low=0.4, high=0.6, n=30), "± 10.00"),
        (Estimate(value=0.5, n=1), ""),
    ],
)
def test_an_interval_that_lies_on_one_side_of_the_value_is_shown_by_its_ends(estimate: Estimate, margin: str) -> None:
    assert format_margin(estimate, "fraction") == margin


def test_the_ends_of_an_interval_are_not_shown_twice_in_one_row() -> None:
    result = msgspec.structs.replace(RESULT, measures={"similarity": Estimate(value=0.0, low=0.0, high=0.8419, n=2)})
    assert lines(result)[2] == "similarity ↑\t0.00 %\t0.00 … 84.19\t2"
    assert format_headline(result) == "similarity 0.00 % [0.00 … 84.19]"


def test_the_worst_slices_stand_first() -> None:
    tags = {"lang": {"en": 0.9, "zh": 0.5, "de": 0.7}, "single": {"all": 0.1}}
    slices = {
        tag: {value: {"similarity": Estimate(value=score, n=10)} for value, score in values.items()}
        for tag, values in tags.items()
    }
    section = next(
        item for item in result_sections(msgspec.structs.replace(RESULT, slices=slices)) if "slices" in item.title
    )
    assert [row[0] for row in section.rows] == ["lang = zh", "lang = de"]


def slices_of(
    values: dict[str, tuple[float, int]], name: str = "similarity"
) -> dict[str, dict[str, dict[str, Estimate]]]:
    return {"lang": {label: {name: Estimate(value=value, n=n)} for label, (value, n) in values.items()}}


def test_a_slice_that_is_no_worse_than_the_whole_or_a_single_sample_is_no_worst_slice() -> None:
    slices = slices_of({"en": (0.875, 9), "zh": (0.1, 1), "de": (0.8, 2)})
    (section,) = (s for s in result_sections(msgspec.structs.replace(RESULT, slices=slices)) if "slices" in s.title)
    assert [row[0] for row in section.rows] == ["lang = de"]
    alone = slices_of({"en": (1.0, 1), "zh": (0.1, 1)})
    (section,) = (s for s in result_sections(msgspec.structs.replace(RESULT, slices=alone)) if "slices" in s.title)
    assert [row[0] for row in section.rows] == ["lang = zh"]


def test_slices_are_not_ordered_by_a_sum_of_points() -> None:
    slices = slices_of({"en": (0.2, 9), "zh": (0.1, 3)}, "cer")
    slices["lang"]["en"]["score"] = Estimate(value=900, n=9)
    slices["lang"]["zh"]["score"] = Estimate(value=10, n=3)
    result = msgspec.structs.replace(RESULT, headline="score", slices=slices)
    (section,) = (s for s in result_sections(result) if "slices" in s.title)
    assert section.title == "worst slices by cer" and [row[0] for row in section.rows] == ["lang = en"]


def test_an_empty_answer_to_a_blank_page_is_no_trouble() -> None:
    outcomes, diagnostics = {"ok": 39, "empty": 1}, {"empty": 1.0, "empty_on_blank": 1.0}
    result = msgspec.structs.replace(RESULT, outcomes=outcomes, diagnostics=diagnostics)
    assert "# failed or incomplete answers" not in lines(result)
    one_more = msgspec.structs.replace(result, outcomes={"ok": 38, "empty": 2})
    assert "empty\t1 of 40\t2.5 %\tempty answer" in lines(one_more)


def test_lengths_have_a_unit_and_the_time_of_scoring_is_not_shown() -> None:
    diagnostics, speed = {"prediction_length": 1234.4}, {"scoring_seconds": 3.0, "seconds_per_page": 0.5}
    shown = lines(msgspec.structs.replace(RESULT, diagnostics=diagnostics, speed=speed))
    assert "prediction length\t1,234 characters" in shown and "seconds per page\t0.5" in shown
    assert not any("scoring" in line for line in shown)


def test_values_without_an_interval_are_named() -> None:
    bare = {"score": Estimate(value=0.5, low=0.4, high=0.6, n=40), "cer": Estimate(value=1.0, n=1)}
    without = "no interval for cer: too few pages or documents, or all alike"
    assert without in lines(msgspec.structs.replace(RESULT, headline="score", measures=bare))
    bare |= {"cer": Estimate(value=None)}
    assert without not in lines(msgspec.structs.replace(RESULT, headline="score", measures=bare))


def test_the_path_of_a_run_is_never_broken() -> None:
    path = "runs/an-engine-with-a-long-name/and-a-folder-with-a-long-name"
    section = Table(title="", header=("engine", "run"), rows=[("reader " * 9, path)])
    stream = io.StringIO()
    for renderable in rich_tables([section], 50):
        Console(file=stream, width=50).print(renderable, crop=False)
    assert path in stream.getvalue()


@given(
    st.lists(st.tuples(st.text("ab cd", max_size=30), st.sampled_from(["12.34 %", "–", "no clear"])), max_size=15),
    st.integers(20, 120),
)
def test_no_column_is_lost_in_a_narrow_terminal_and_no_number_folded(
    columns: list[tuple[str, str]], width: int
) -> None:
    header = ["engine", *(f"{name} n{number}".strip() for number, (name, _) in enumerate(columns))]
    rows = [[f"an-engine-{row}", *(cell for _, cell in columns)] for row in range(2)]
    section = Table(title="all", header=header, rows=rows)
    parts = list(fitted([section], width))
    assert [name for part in parts for name in part.header[1:]] == header[1:]
    assert all(part.header[0] == "engine" and len(part.rows) == 2 for part in parts)
    stream = io.StringIO()
    for renderable in rich_tables([section], width):
        Console(file=stream, width=width).print(renderable, crop=False)
    shown = stream.getvalue()
    for number, (_, cell) in enumerate(columns):
        assert f"n{number}" in shown and all(word in shown for word in cell.split())
    assert shown.count("12.34 %") == 2 * sum(cell == "12.34 %" for _, cell in columns)
    if len(columns) > 1:
        assert max(map(cell_len, shown.splitlines())) <= max(width, 40)


def test_cells_are_not_read_as_markup() -> None:
    failures = [Failure(sample="[red]a[/red]", outcome="error", error="[/bold] boom")]
    stream = io.StringIO()
    console = Console(file=stream, width=120)
    for renderable in rich_tables(result_sections(msgspec.structs.replace(RESULT, failures=failures)), 120):
        console.print(renderable)
    assert "[red]a[/red]" in stream.getvalue() and "[/bold] boom" in stream.getvalue()
