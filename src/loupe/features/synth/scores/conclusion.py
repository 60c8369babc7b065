"""What is said of all pages together: curves over the ladders, traps by kind, and what could not be made here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from loupe.features.synth.text.language import language, language_codes
from loupe.features.synth.text.rungs import RUNGS
from loupe.features.synth.tracks.damaged import CLEAN, UNORDERED
from loupe.features.synth.typeset.fonts import FACES, face_of, missing
from loupe.metrics import rate_of_sums
from loupe.stats import curves
from loupe.stats.proportions import exact_interval
from loupe.types import Conclusion, Measure, SampleScores

#: The keys of `Conclusion.figures`.
LADDERS, TRAPS, CORRECTED = "ladders", "traps", "corrected"
#: The error rate from which print counts as illegible.
ILLEGIBLE = 0.05
_CER = Measure(name="cer", higher_is_better=False, value=rate_of_sums)
_ACCURACY = Measure(name="accuracy")
_RANKS = {rung: float(rank) for rank, rung in enumerate(RUNGS)}


@dataclass(frozen=True, slots=True)
class _Ladder:
    """Which scores are on it, what its axis is, and which figures are read off it."""

    score: str
    measure: Measure
    axis: str
    hard_is_high: bool = True
    figures: tuple[str, ...] = ()


def _ladder(track: str, kind: str) -> _Ladder | None:
    if track == "prior":
        return _Ladder("cer", _CER, "rung", figures=("reliance",))
    if track == "legibility" and kind == "size":
        return _Ladder("cer", _CER, "x-height in px", hard_is_high=False, figures=("limit",))
    if track == "legibility":
        return _Ladder("cer", _CER, "contrast", hard_is_high=False, figures=("limit",))
    if track == "density":
        return _Ladder("density", _ACCURACY, "tokens", figures=("collapse",))
    if track == "degrade" and kind == UNORDERED:
        return _Ladder("degrade", _ACCURACY, "position")
    if track == "degrade" and kind != CLEAN:
        return _Ladder("degrade", _ACCURACY, "severity", figures=("area", "half_loss"))
    return None


def conclude(rows: Sequence[SampleScores]) -> Conclusion:
    """Figures `ladders`, `traps` and `corrected`: docs/synth.md#figures."""
    ladders = [_curve(track, kind, members) for (track, kind), members in sorted(_members(rows).items())]
    figures: dict[str, Any] = {LADDERS: [each for each in ladders if each is not None]}
    if traps := _traps(rows):
        figures[TRAPS] = traps
    wrong = [score.counts[0] for row in rows for score in row.scores if score.measure == "corrected"]
    if wrong:
        figures[CORRECTED] = _share(int(sum(wrong)), len(wrong), "corrected")
    return Conclusion(figures=figures, warnings=_left_out(rows))


def _members(rows: Sequence[SampleScores]) -> Mapping[tuple[str, str], list[SampleScores]]:
    """The pages of each ladder; a clean page is the first rung of every degradation that its base page has."""
    found: dict[tuple[str, str], list[SampleScores]] = defaultdict(list)
    for row in rows:
        track, kind = row.tags.get("track", ""), row.tags.get("kind", "")
        if _ladder(track, kind) is not None:
            found[track, kind].append(row)
    clean = [row for row in rows if row.tags.get("kind") == CLEAN and row.tags.get("track") == "degrade"]
    for (track, _), members in found.items():
        bases = {_base(row.sample) for row in members}
        members += [row for row in clean if _base(row.sample) in bases] if track == "degrade" else []
    return found


def _curve(track: str, kind: str, members: Sequence[SampleScores]) -> dict[str, Any] | None:
    ladder = _ladder(track, kind)
    assert ladder is not None
    rungs = [
        (_base(row.sample), _rank(row), score.counts)
        for row in members
        for score in row.scores
        if score.measure == ladder.score
    ]
    places = _places(rungs, hard_is_high=ladder.hard_is_high)
    if len(places) < 2:
        return None
    found = curves.curve(ladder.measure, rungs, places)
    samples: dict[float, list[str]] = defaultdict(list)
    names: dict[float, str] = {}
    for row in members:
        samples[_rank(row)].append(row.sample)
        names[_rank(row)] = row.tags["rung"]
    points = [
        {"rung": names[place], "rank": place, **_plain(value), "bases": value.n, "samples": samples[place]}
        for place, value in zip(places, curves.points(found), strict=True)
    ]
    about = {"track": track, "kind": kind, "measure": ladder.measure.name, "axis": ladder.axis}
    return {**about, "points": points, "summary": {name: _figure(name, found) for name in ladder.figures}}


def _figure(name: str, found: curves.Curve) -> Any:
    """A figure of a curve as plain values, by its name in `summary`."""
    if name == "reliance":
        return [msgspec.to_builtins(each) for each in curves.reliance(found)]
    if name == "limit":
        return msgspec.to_builtins(curves.limit(found, ILLEGIBLE))
    if name == "area":
        return msgspec.to_builtins(curves.area(found))
    return msgspec.to_builtins(curves.half_loss(found, log=name == "collapse"))


def _plain(value: Any) -> dict[str, Any]:
    return {"value": value.value, "low": value.low, "high": value.high}


def _places(rungs: Sequence[curves.Rung], *, hard_is_high: bool) -> list[float]:
    """The rungs that as many base pages have as any: a ladder that is only begun on a base page adds none."""
    bases: dict[float, set[str]] = defaultdict(set)
    for base, place, _ in rungs:
        bases[place].add(base)
    most = max(map(len, bases.values()), default=0)
    return sorted((place for place, found in bases.items() if len(found) == most), reverse=not hard_is_high)


def _base(sample: str) -> str:
    """The base page of a sample: the first two parts of its id."""
    return "-".join(sample.split("-")[:2])


def _rank(row: SampleScores) -> float:
    rung = row.tags["rung"]
    return _RANKS[rung] if row.tags["track"] == "prior" else float(rung)


def _traps(rows: Sequence[SampleScores]) -> dict[str, Any]:
    passed: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for score in row.scores:
            if score.measure == "traps":
                passed[row.tags["kind"]].append(score.counts[0])
    return {kind: _share(int(sum(each)), len(each), "passed") for kind, each in passed.items()}


def _share(count: int, n: int, name: str) -> dict[str, Any]:
    low, high = exact_interval(count, n) or (None, None)
    return {name: count, "n": n, "low": low, "high": high}


def _left_out(rows: Sequence[SampleScores]) -> list[str]:
    """The fonts that are not here, what was left out for them, and the command that brings them."""
    read = {row.tags["kind"] for row in rows if row.tags.get("track") == "languages"}
    there = {code for code in language_codes() if not missing([face_of(code)])}
    found = []
    if read and read >= there and there < set(language_codes()):
        for code in sorted(set(language_codes()) - there):
            face = face_of(code)
            found.append(f"left out: {language(code).name} ({code}), whose font {face.family} is not installed")
        packages = sorted(missing(face_of(code) for code in language_codes()))
        found.append(f"for these languages: sudo apt-get install {' '.join(packages)}")
    if any(row.tags.get("track") == "plain" for row in rows) and (lacking := missing(FACES)):
        names = ", ".join(name for families in lacking.values() for name in families)
        found.append(f"plain pages without {names}: sudo apt-get install {' '.join(sorted(lacking))}")
    return found
