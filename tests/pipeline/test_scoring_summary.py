"""The result of a run, on cases small enough to count by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loupe.scoring.summary import LARGEST_SLICING, Origin, summarise
from loupe.types import Benchmark, Failure, Measure, Outcome, Prediction, Result, Sample, SampleScores, Score, Values


def no_samples(root: Path) -> Iterator[Sample]:
    yield from ()


def no_scores(sample: Sample, prediction: Prediction) -> list[Score]:
    return []


def overall(values: Values) -> Values:
    return {"overall": (1 - values["cer"] + values["teds"]) / 2}


BENCHMARK = Benchmark(
    title="toy",
    version="7",
    task="markdown",
    measures=(
        Measure(name="cer", higher_is_better=False),
        Measure(name="teds"),
        Measure(name="cdm", unit="number"),
        Measure(name="overall"),
    ),
    headline="overall",
    summarize=overall,
    load=no_samples,
    score=no_scores,
)


def row(sample: str, *scores: Score, outcome: Outcome = "ok", **fields: Any) -> SampleScores:
    return SampleScores(sample=sample, scores=list(scores), outcome=outcome, **({"digest": "d"} | fields))


def cer(errors: float, length: float) -> Score:
    return Score(measure="cer", counts=(errors, length))


def teds(value: float, **tags: str) -> Score:
    return Score(measure="teds", counts=(value, 1.0), tags=tags)


def result(*rows: SampleScores, total: int = 0, missing: tuple[str, ...] = (), **options: Any) -> Result:
    return summarise(
        BENCHMARK,
        iter(rows),
        Origin(benchmark="toy", engine="me", signature="toy:7|n:2", total=total or len(rows) + len(missing)),
        missing=missing,
        **options,
    )


def values(estimates: Any) -> dict[str, float | None]:
    return {name: estimate.value for name, estimate in estimates.items()}


def test_counts_are_summed_before_they_are_divided() -> None:
    found = result(row("a", cer(1, 10), teds(1.0)), row("b", cer(3, 30), teds(0.5), teds(0.0)))
    assert values(found.measures) == {
        "cer": pytest.approx(4 / 40),
        "teds": pytest.approx(0.5),
        "cdm": None,
        "overall": pytest.approx((0.9 + 0.5) / 2),
    }
    assert {name: estimate.n for name, estimate in found.measures.items()} == {
        "cer": 2, "teds": 3, "cdm": 0, "overall": 2
    }  # fmt: skip


def test_the_interval_of_several_clusters_holds_the_value() -> None:
    found = result(*(row(str(number), cer(number, 10)) for number in range(10))).measures["cer"]
    assert found.low is not None and found.high is not None
    assert 0 < found.low < 4.5 / 10 < found.high < 1


def test_a_group_is_one_cluster() -> None:
    apart = result(*(row(str(number), cer(number, 10)) for number in range(10)))
    grouped = result(*(row(str(number), cer(number, 10), group=str(number % 2)) for number in range(10)))
    assert (apart.statistics["clusters"], grouped.statistics["clusters"]) == (10, 2)
    assert grouped.measures["cer"].value == apart.measures["cer"].value
    assert grouped.measures["cer"].low != apart.measures["cer"].low


def test_everything_that_defines_the_numbers_is_in_the_result() -> None:
    found = result(row("a", cer(0, 1)), draws=100, speed={"seconds_per_page": 2.0})
    assert (found.benchmark, found.version, found.engine, found.signature) == ("toy", "7", "me", "toy:7|n:2")
    assert found.headline == "overall"
    assert found.directions == {"cer": False, "teds": True, "cdm": True, "overall": True}
    assert found.units == {"cer": "fraction", "teds": "fraction", "cdm": "number", "overall": "fraction"}
    assert (found.statistics["seed"], found.statistics["draws"], found.statistics["level"]) == (0, 100, 0.95)
    assert found.speed == {"seconds_per_page": 2.0}


def test_slices_come_from_samples_and_from_single_scores() -> None:
    found = result(
        row("a", cer(1, 10), teds(1.0, table="big"), tags={"lang": "en"}),
        row("b", cer(2, 10), teds(0.0, table="small"), tags={"lang": "de"}),
    ).slices
    assert list(found) == ["lang", "table"]
    assert values(found["lang"]["en"]) == {"cer": pytest.approx(0.1), "teds": 1.0, "overall": pytest.approx(0.95)}
    assert values(found["table"]["small"]) == {"teds": 0.0}


def test_a_slice_of_a_few_pages_has_no_interval_that_spans_the_scale() -> None:
    """Two pages that are right are 100 % [15.81 … 100.00]: true, and of no use."""
    found = result(*(row(f"{n}", teds(1.0), tags={"pair": str(n // 2), "half": str(n % 2)}) for n in range(12)))
    assert [(one["teds"].n, one["teds"].low) for one in found.slices["pair"].values()] == 6 * [(2, None)]
    # Six pages are enough for a bound, and the whole run has one of its own.
    assert [one["teds"].low for one in found.slices["half"].values()] == [pytest.approx(0.5407, abs=3e-3)] * 2
    assert found.measures["teds"].low is not None


def test_a_score_may_refine_the_tag_of_its_sample() -> None:
    found = result(row("a", cer(1, 10), teds(1.0, lang="de"), tags={"lang": "en"})).slices
    assert values(found["lang"]["en"]) == {"cer": pytest.approx(0.1)}
    assert values(found["lang"]["de"]) == {"teds": 1.0}


def test_a_tag_with_a_value_per_sample_makes_no_slices() -> None:
    rows = [row(str(n), cer(0, 1), tags={"name": str(n), "parity": str(n % 2)}) for n in range(LARGEST_SLICING + 1)]
    assert set(result(*rows).slices) == {"parity"}
    assert len(result(*rows[:-1]).slices["name"]) == LARGEST_SLICING


def test_a_tag_that_makes_no_slices_is_named() -> None:
    rows = [row(str(n), cer(0, 1), tags={"name": str(n), "parity": str(n % 2)}) for n in range(LARGEST_SLICING + 1)]
    assert result(*rows).warnings == ["tag 'name' has more than 50 values: no slices of it"]
    assert result(*rows[:-1]).warnings == []


def test_every_sample_is_counted_in_one_class() -> None:
    found = result(
        row("a", cer(0, 1)),
        row("b", cer(1, 1), outcome="timeout", error="no answer in 300 s"),
        row("c", cer(1, 1), outcome="truncated"),
        missing=("d", "e"),
    )
    assert found.outcomes == {"ok": 1, "timeout": 1, "truncated": 1, "missing": 2}
    assert sum(found.outcomes.values()) == found.total == 5


def test_failures_are_listed_with_their_reasons() -> None:
    found = result(
        row("a", cer(1, 1), outcome="error", error="connection reset"),
        row("b", cer(1, 1), error="ValueError: odd", digest=""),
        row("c", error="no score within 120 s; an empty answer: no score within 120 s", digest=""),
    )
    assert found.failures == [
        Failure(sample="a", outcome="error", error="connection reset"),
        Failure(sample="b", outcome="scorer", error="ValueError: odd"),
        Failure(sample="c", outcome="scorer", error="no score within 120 s; an empty answer: no score within 120 s"),
    ]
    assert found.diagnostics["scorer_errors"] == 2
    assert found.warnings == [
        "3 of 3 samples failed, more than 5 %; each counts as an empty answer",
        "the scorer failed on 2 of 3 samples (b, c); see the failures",
        "1 of these could not even be scored as empty (c)",
    ]


def test_a_few_failures_in_many_samples_are_no_warning() -> None:
    rows = [row(str(number), cer(0, 1)) for number in range(19)]
    assert result(*rows, row("x", cer(1, 1), outcome="timeout")).warnings == []
    assert len(result(*rows[:18], row("x", cer(1, 1), outcome="timeout")).warnings) == 1


def test_a_partial_run_says_how_much_of_it_was_scored() -> None:
    found = result(row("a", cer(0, 1)), missing=("b", "c", "d", "e"))
    assert found.warnings == ["scored 1 of 5: 4 without a prediction (b, c, d, …)"]


def test_diagnostics_are_counts_shares_and_means_over_samples_that_have_them() -> None:
    found = result(
        row("a", diagnostics={"empty": 1.0, "insertion_rate": 0.5}),
        row("b", diagnostics={"empty": 0.0, "insertion_rate": 0.1, "text_on_blank": 1.0}),
        row("c", diagnostics={"empty": 0.0}),
        row("d", outcome="timeout"),
    )
    assert found.diagnostics == {
        "empty": 1.0,
        "empty_share": pytest.approx(1 / 3),
        "insertion_rate": pytest.approx(0.3),
        "text_on_blank": 1.0,
        "text_on_blank_share": 1.0,
    }


def test_a_run_without_any_score_has_no_values_but_a_result() -> None:
    found = result(missing=("a", "b"))
    assert values(found.measures) == {"cer": None, "teds": None, "cdm": None, "overall": None}
    assert found.slices == {} and found.statistics["clusters"] == 0


def test_the_result_survives_the_way_to_disk_and_back() -> None:
    found = result(
        row("a", cer(1, 10), teds(1.0), tags={"lang": "en"}), row("b", cer(2, 10), teds(0.5)), missing=("c",)
    )
    assert msgspec.json.decode(msgspec.json.encode(found), type=Result) == found


def test_points_of_failed_samples_are_named() -> None:
    failed = row("a", teds(1.0), outcome="timeout", error="no answer")
    found = result(failed, row("b", teds(0.5)), *(row(f"c{place}", teds(1.0)) for place in range(30)), total=32)
    assert [each for each in found.warnings if "earned points" in each] == [
        "1 failed sample earned points (a): the official rule counts no answer as right where none is wanted"
    ]
    assert not [each for each in result(row("b", teds(0.5))).warnings if "earned points" in each]
