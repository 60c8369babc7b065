"""The slices of a report: every number says which measure it is, and none stands beside one of another measure."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec

from loupe.report.collect import collect
from loupe.report.html import environment, group_context
from loupe.report.leaderboard import slice_tables
from loupe.types import Estimate
from tests.support.report_runs import toy_pages

HALF, WHOLE = Estimate(value=0.5, n=2), Estimate(value=1.0, n=3)


def test_a_slice_without_the_headline_says_by_which_measure_it_is_told(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 2)
    runs = [toy.run(name, {sample.id: sample.truth for sample in toy.samples}) for name in ("a", "b")]
    (group,) = collect(runs)
    slices = [
        {"kind": {"table": {"teds": HALF}, "prose": {"cer": WHOLE, "teds": HALF}, "form": {}}},
        {"kind": {"table": {"cer": WHOLE, "teds": WHOLE}, "prose": {"teds": HALF}}},
    ]
    assert not any(table.named for table in slice_tables(group))
    group.benchmark = None
    group.entrants = [
        replace(
            entrant,
            result=msgspec.structs.replace(
                entrant.result,
                slices=found,
                measures={"cer": WHOLE, "teds": WHOLE},
                units={"cer": "number", "teds": "fraction"},
                directions={"cer": False, "teds": True},
            ),
        )
        for entrant, found in zip(group.entrants, slices, strict=True)
        if entrant.result is not None
    ]
    (table,) = slice_tables(group)
    shown = {name: (measure.name, [cell.text for cell in cells]) for name, measure, _, cells in table.rows}
    assert not table.named and shown == {"prose": ("cer", ["1", "–"]), "table": ("cer", ["–", "1"])}
    reasons = {name: [cell.note for cell in cells] for name, _, _, cells in table.rows}
    assert reasons == {"prose": ["", "nothing here to measure"], "table": ["nothing here to measure", ""]}
    slices[1]["kind"]["table"].pop("cer")
    (table,) = slice_tables(group)
    shown = {name: (measure.name, [cell.text for cell in cells]) for name, measure, _, cells in table.rows}
    assert table.named and shown == {"prose": ("cer", ["1", "–"]), "table": ("teds", ["50.00 %", "100.00 %"])}
    html = environment().get_template("group.html").render(group=group_context(group), groups=[group])
    row = html[html.index("<bdi>table</bdi>") :]
    assert row[: row.index("</tr>")].count("teds ↑") == 1 and '<th scope="col">measure</th>' in html


def test_where_engines_have_scored_different_counts_each_tells_its_own_n(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 8)
    few = [sample for sample in toy.samples if sample.tags["kind"] != "table" or sample is toy.samples[1]]
    runs = [toy.run(name, {each.id: each.truth for each in of}) for name, of in (("all", toy.samples), ("few", few))]
    (group,) = collect(runs)
    table = next(table for table in slice_tables(group) if table.tag == "kind")
    shown = {name: (n, [cell.n for cell in cells]) for name, _, n, cells in table.rows}
    assert shown == {"form": ("2", [2, 2]), "prose": ("3", [3, 3]), "table": ("", [3, 1])}
    html = environment().get_template("group.html").render(group=group_context(group), groups=[group])
    row = html[html.index("<bdi>table</bdi>") :]
    assert re.findall(r">n (\d+)<", row[: row.index("</tr>")]) == ["3", "1"]
    row = html[html.index("<bdi>form</bdi>") :]
    assert '<td class="number muted" data-of="n">2</td>' in row[: row.index("</tr>")]
    assert not re.search(r">n \d+<", row[: row.index("</tr>")])
