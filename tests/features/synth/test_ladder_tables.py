"""Ladders and traps of generated pages as tables, from results that anybody may have written."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.features.synth.ladders import ladder_sections
from loupe.types import Estimate, Result


def result_with(figures: dict[str, Any]) -> Result:
    return Result(
        benchmark="synth",
        version="1",
        engine="reader",
        signature="",
        headline="overall",
        measures={"overall": Estimate(value=0.5)},
        directions={},
        units={},
        figures=figures,
    )


def ladder(track: str, kind: str, summary: dict[str, Any], *ranks: float) -> dict[str, Any]:
    points = [{"rung": f"{rank:g}", "rank": rank, "value": 0.25, "low": 0.1, "high": 0.4} for rank in ranks]
    return {"track": track, "kind": kind, "measure": "cer", "axis": "px", "points": points, "summary": summary}


def test_limits_robustness_and_traps_are_shown_with_their_intervals() -> None:
    limit = {"where": "within", "value": 7.4567, "low": 6.2, "high": None, "easiest": 24, "hardest": 5, "n": 2}
    half = {"where": "never", "value": None, "easiest": 0, "hardest": 5, "n": 2}
    figures = {
        "ladders": [
            ladder("legibility", "size", {"limit": limit}, 24, 5),
            ladder("degrade", "blur", {"area": {"value": 0.9, "low": 0.8, "high": 1.0}, "half_loss": half}, 0, 5),
            ladder("prior", "", {"reliance": [{"value": 0.0}, {"value": 0.07, "low": 0.01, "high": 0.1}]}, 0, 1),
        ],
        "traps": {"blank": {"passed": 3, "n": 6, "low": 0.118, "high": 0.882}},
        "corrected": {"corrected": 1, "n": 8, "low": 0.003, "high": 0.527},
    }
    shown = {section.title: section.rows for section in ladder_sections(result_with(figures))}
    assert shown["limits"] == [("legible down to (px of x-height)", "7.46", "from 6.2 on", "2")]
    assert shown["robustness, worst first"] == [("blur", "90.00 %", "80.00 … 100.00", "25 25", "beyond 5")]
    assert shown["prior reliance, by how little the text means"][1] == ("1", "25.00 %", "7.00 %", "1.00 … 10.00")
    assert shown["traps"] == [
        ("blank", "3 of 6", "11.80 … 88.20"),
        ("wrong check digits put right", "1 of 8", "0.30 … 52.70"),
    ]


@pytest.mark.parametrize(
    "figures",
    [
        {},
        {"ladders": 7, "traps": [1], "corrected": "x"},
        {"ladders": [{}, None, ladder("degrade", "blur", {"area": 3, "half_loss": []}, 0, 1)]},
        {"traps": {"blank": {"passed": 1, "n": 0}, "texture": None}},
        {"ladders": [ladder("legibility", "size", {"limit": {"value": "much"}}, 2, 1)]},
    ],
)
def test_figures_that_are_none_show_nothing(figures: dict[str, Any]) -> None:
    assert ladder_sections(result_with(figures)) == []
