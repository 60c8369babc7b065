"""The sentence on top of a report: it says what the comparisons say, no more; and nothing internal stands beside it."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from loupe.cli.compare import sections
from loupe.report.collect import collect
from loupe.report.html import write_report
from loupe.results.comparing.runs import compare_runs
from loupe.results.tables.terminal import rich_tables, tab_separated
from loupe.results.verdict import Contender, verdict
from loupe.runs.folder import RunFolder
from loupe.stats.comparison import Difference
from loupe.stats.ranks import Standings
from loupe.types import Estimate, Measure, Result
from tests.support.command_line import loupe
from tests.support.report_runs import misread, toy_pages

ACCURACY = Measure(name="accuracy", title="fields right")


def contender(name: str, value: float, *, failed: int = 0, unverified: int = 0) -> Contender:
    result = Result(
        benchmark="b",
        version="1",
        engine=name,
        signature="",
        headline="accuracy",
        measures={"accuracy": Estimate(value=value, low=value - 0.1, high=value + 0.1)},
        directions={"accuracy": True},
        units={"accuracy": "fraction"},
        total=40,
        outcomes={"error": failed},
        figures={"truth": {"samples": {"unverified": unverified}}} if unverified else {},
    )
    return Contender(name, name, result)


def pairs(*found: tuple[str, str, float, float | None]) -> Standings:
    """(one, other, one minus other, corrected p-value) of each pair."""
    return Standings(
        {},
        {
            (a, b): {
                "accuracy": Difference(
                    difference=d, low=d - 0.01, high=d + 0.02, p=p, p_holm=p, shared=40, needed=90, detectable=0.1
                )
            }
            for a, b, d, p in found
        },
        untold=False,
    )


def test_a_winner_is_named_with_how_far_ahead_how_sure_and_what_comes_next() -> None:
    found = verdict(
        [contender("small", 0.7), contender("large", 0.9, failed=3)], ACCURACY, pairs(("small", "large", -0.2, 0.012))
    )
    assert found.winner == "large"
    assert found.sentence == (
        "large wins with 90.00 % fields right, 20.00 points better than small, a significant difference "
        "(interval 18.00 … 21.00, p = 0.012); next, run it again for the 3 of 40 samples that failed."
    )


@pytest.mark.parametrize(
    ("value", "unit", "higher", "perfect"),
    [
        (1.0, "fraction", True, True),
        (0.99999, "fraction", True, True),  # shown as 100.00 %
        (0.9999, "fraction", True, False),
        (0.0, "fraction", False, True),
        (0.01, "fraction", False, False),
        (40.0, "count", True, True),
        (39.0, "count", True, False),
        (0.0, "number", False, True),
        (7.0, "number", True, False),
    ],
)
def test_nobody_is_sent_to_the_wrong_samples_of_a_winner_that_has_none(
    value: float, unit: Any, higher: bool, perfect: bool
) -> None:
    measure = Measure(name="accuracy", unit=unit, higher_is_better=higher)
    best, other = contender("best", value), contender("other", 0.5)
    found = {"accuracy": Estimate(value=value, n=40)}
    best = replace(best, result=msgspec.structs.replace(best.result, measures=found))
    said = verdict([best, other], measure, pairs(("best", "other", 0.2 if higher else -0.2, 0.001)))
    assert said.winner == "best"
    assert said.sentence.endswith(
        "; next, add harder samples: it gets all of these right."
        if perfect
        else "; next, look at the samples it still gets wrong."
    )


def test_a_value_over_other_samples_does_not_win_over_what_pairs_show() -> None:
    """`broad` has read harder samples too: its value is lower, and on the shared ones it is better."""
    both = [contender("few", 0.9), contender("broad", 0.7)]
    found = verdict(both, ACCURACY, pairs(("few", "broad", -0.07, 0.001)))
    assert found.winner == "" and found.sentence.startswith("No winner: each engine leads on different samples")
    ranked = replace(pairs(("few", "broad", -0.07, 0.001)), ranks={"broad": 1, "few": 2})
    assert verdict(both, ACCURACY, ranked).winner == "broad"


def test_what_may_be_chance_is_no_win() -> None:
    three = [contender("a", 0.9), contender("b", 0.85), contender("c", 0.2)]
    found = verdict(three, ACCURACY, pairs(("b", "a", -0.05, 0.3), ("c", "a", -0.7, 0.001), ("c", "b", -0.65, 0.001)))
    assert found.winner == ""
    assert found.sentence == (
        "No clear winner: a is ahead with 90.00 % fields right, 5.00 points better than b, which may be due to chance "
        "(interval 3.00 … 6.00, p = 0.300); c is clearly worse; next, add documents (it takes about 90), or choose by "
        "speed or cost."
    )
    level = verdict([*three[:1], contender("twin", 0.9)], ACCURACY, pairs(("twin", "a", 0.0, 1.0)))
    assert level.sentence == (
        "No winner: a and twin are level with 90.00 % fields right; next, choose by speed or cost."
    )
    third = pairs(("twin", "a", 0.0, 1.0), ("same", "a", -0.00001, 1.0), ("c", "a", -0.7, 0.001))
    level = verdict([three[0], contender("twin", 0.9), contender("same", 0.89999), three[2]], ACCURACY, third)
    assert level.sentence == (
        "No winner: a, twin and same are level with 90.00 % fields right; c is clearly worse; "
        "next, choose by speed or cost."
    )
    shorter = verdict([three[0], contender("twin", 0.8)], ACCURACY, pairs(("twin", "a", 0.0, 1.0)))
    assert shorter.sentence.startswith("No winner: a and twin are level on the samples read by all; next")


def test_one_run_alone_unverified_truth_and_too_few_samples_have_no_winner() -> None:
    alone = verdict([contender("a", 0.9)], ACCURACY, pairs())
    assert alone.sentence.endswith("next, run a second engine on the same samples.") and not alone.winner
    both = [contender("a", 0.9, unverified=2), contender("b", 0.1)]
    drafts = verdict(both, ACCURACY, pairs(("b", "a", -0.8, 0.001)))
    assert drafts.sentence.startswith("No winner yet: the ground truth is unverified") and not drafts.winner
    few = verdict([contender("a", 0.9), contender("b", 0.1)], ACCURACY, Standings({}, {}, untold=True))
    assert few.sentence.startswith("No winner: too few samples") and not few.winner
    twins = [contender("a", 0.4444), contender("b", 0.4444), contender("c", 0.1)]
    level = verdict(twins, ACCURACY, replace(pairs(("b", "a", 0.0, None), ("c", "a", -0.3, None)), untold=True))
    assert "though a and b are level with 44.44 %" in level.sentence and "ahead" not in level.sentence
    assert verdict([], ACCURACY, pairs()).sentence == ""


def test_runs_without_a_rank_neither_win_nor_hinder_the_others() -> None:
    three = [contender("a", 0.9), contender("b", 0.5), contender("short", 0.95)]
    found = pairs(("b", "a", -0.4, 0.001), ("short", "a", 0.01, None), ("short", "b", 0.4, None))
    ranked = replace(found, ranks={"a": 1, "b": 2, "short": None})
    assert verdict(three, ACCURACY, ranked).winner == "a"
    alone = replace(found, ranks={"a": 1, "short": None})
    assert "no other run has read as many samples" in verdict([three[0], three[2]], ACCURACY, alone).sentence
    broken = Standings({"a": None}, {}, untold=False, failed=frozenset({"a"}))
    assert verdict([contender("a", 0.0, failed=40)], ACCURACY, broken).sentence.startswith("No winner: every sample")


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=5))
def test_there_is_a_winner_exactly_where_every_difference_to_it_is_clear(drawn: list[tuple[float, float]]) -> None:
    drawn = sorted(drawn, reverse=True)
    runs = [contender(str(place), value) for place, (value, _) in enumerate(drawn)]
    others = [(str(place), "0", value - drawn[0][0], p) for place, (value, p) in enumerate(drawn) if place]
    found = verdict(runs, ACCURACY, pairs(*others))
    assert (found.winner == "0") == all(p < 0.05 for _, p in drawn[1:])


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Runs of one engine that reads all, and of another that misreads much."""
    toy = toy_pages(tmp_path, 12)
    for name, every in (("good", 80), ("poor", 6)):
        toy.run(name, {sample.id: misread(sample.truth, every) for sample in toy.samples})
    return toy.runs


def test_the_report_and_the_terminal_mark_the_winner(two: list[Path], tmp_path: Path) -> None:
    write_report(two, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.search(r'<p class="conclusion">good wins with ', html)
    assert re.findall(r'<bdi>(\w+)</bdi> <span class="badge-best">winner', html) == ["good"]
    assert html.index('class="conclusion"') < html.index('class="leaderboard stack"')
    compared = compare_runs(two)
    assert compared.winner == str(two[0]) and compared.verdict.startswith("good wins")
    tables = sections(compared)
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(*rich_tables(tables, 140))
    lines = console.export_text().splitlines()
    assert next(line for line in lines if "★" in line).split()[:3] == ["★", "1", "good"]
    plain = list(tab_separated(tables))
    assert plain[2].startswith("1\tgood\t"), "programs read the rank without a star"
    assert compared.verdict in plain


def test_no_internal_id_stands_in_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "inv"
    folder.mkdir()
    (folder / "loupe.toml").write_text('[benchmark]\ntitle = "Invoices"\ntask = "fields"\n[fields]\ntotal = "amount"\n')
    rows = [{"id": str(n), "text": "x", "reference": {"total": f"{n},00"}} for n in range(8)]
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("good", "poor"):
        answers = [{"id": str(n), "text": json.dumps({"total": f"{n if name == 'good' else 0}.0"})} for n in range(8)]
        (tmp_path / f"inv-{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
        done = loupe("score", "inv", f"inv-{name}.jsonl", cwd=tmp_path)
        assert done.returncode == 0 and "types=" not in done.stdout.splitlines()[0], done.stdout
    runs = [tmp_path / "runs" / f"inv-{name}" / "inv" for name in ("good", "poor")]
    assert "types=" not in loupe("compare", *map(str, runs), cwd=tmp_path).stdout
    write_report(runs, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    shown = re.sub(r'(?s)<script.*?</script>|<style.*?</style>|<details class="made">.*?</details>', "", html)
    assert "2 engines · 8 samples · version 1<" in shown
    assert "types=" not in shown and "inv-good" not in shown
    assert "field_score" not in re.sub(r'title="[^"]*"', "", shown)
    assert [entrant.label for entrant in collect(runs)[0].entrants] == ["good", "poor"]
    # Two runs of the same name stay apart; a run whose engine was renamed by hand is marked.
    folder_of = RunFolder.open(runs[1])
    folder_of.write_info(msgspec.structs.replace(folder_of.info, engine="inv_good"))
    assert [entrant.label for entrant in collect(runs)[0].entrants] == ["inv-good", "inv_good (not scored here)"]
