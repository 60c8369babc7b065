"""The slices of a report: every number says which measure it is, and none stands beside one of another measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from loupe.report.collect import collect
from loupe.report.leaderboard import slice_tables
from loupe.report.page import environment, group_context
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
    slices[1]["kind"]["table"].pop("cer")
    (table,) = slice_tables(group)
    shown = {name: (measure.name, [cell.text for cell in cells]) for name, measure, _, cells in table.rows}
    assert table.named and shown == {"prose": ("cer", ["1", "–"]), "table": ("teds", ["50.00 %", "100.00 %"])}
    html = environment().get_template("group.html").render(group=group_context(group), groups=[group])
    row = html[html.index("<bdi>table</bdi>") :]
    assert row[: row.index("</tr>")].count("teds ↑") == 1 and '<th scope="col">measure</th>' in html
