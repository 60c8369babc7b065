"""Choose the measure that ranks runs: the headline, or the first that they have if that is not computed.

Terminal, JSON, report, view, exports, notebook and Python all ask here (docs/statistics.md#which-measure-ranks).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from loupe.errors import UsageError, did_you_mean
from loupe.results.scored_here import marked
from loupe.results.sections import ALARMING, NOTHING_HERE, failed_count, format_estimate, format_margin
from loupe.types import Estimate, Result


class Headline(NamedTuple):
    """The measure that ranks runs; `note` says in one sentence why it is not the benchmark's own headline."""

    measure: str
    note: str = ""


def headline_of(results: Sequence[Result], wanted: str = "") -> Headline:
    """Choose the measure that ranks these runs of one benchmark.

    That is `wanted` if any run has it. Otherwise it is the one that most of the runs have: the benchmark's headline
    before all others, then in the order of the benchmark. Runs over fewer samples, or with more than 5 % failed, decide
    only if there are no others.
    """
    if not results:
        return Headline("")
    declared = results[0].headline
    if wanted and any(has_value(result, wanted) for result in results):
        asked = f"Headline: {wanted}, as asked for, in place of {declared}."
        return Headline(wanted, "" if wanted == declared else asked)
    valued = [result for result in results if any(one.value is not None for one in result.measures.values())]
    most = max((result.total for result in valued), default=0)
    sound = [each for each in valued if each.total == most and failed_count(each) <= ALARMING * each.total]
    deciding = sound or valued
    names = dict.fromkeys([declared, *(name for result in deciding for name in result.measures)])
    found = max(names, key=lambda name: sum(has_value(result, name) for result in deciding))
    if found == declared:
        return Headline(found)
    lacking = next(result for result in deciding if not has_value(result, declared))
    everywhere = "" if not any(has_value(result, declared) for result in results) else " in every run"
    reason = why_nothing(lacking, declared)
    return Headline(found, f"Headline: {found}, because {declared} is not computed{everywhere} ({reason}).")


def result_document(result: Result, wanted: str = "") -> dict[str, Any]:
    """Return a result for JSON, with the measure that ranks it as its headline and the note that says why."""
    found = headline_of([result], wanted)
    note = {"headline_note": found.note} if found.note else {}
    return {**msgspec.to_builtins(result), "headline": found.measure, **note}


def check_measure(wanted: str, results: Sequence[Result]) -> None:
    """Raise UsageError, with the measures that can be chosen, unless one of the runs has a value of this measure."""
    if not wanted or not results or any(has_value(result, wanted) for result in results):
        return
    known = list(dict.fromkeys(name for each in results for name in each.measures if has_value(each, name)))
    hint = f"choose one of these measures: {', '.join(known)}" if known else "look at the errors: loupe runs"
    lacking = next((result for result in results if wanted in result.measures), None)
    if lacking is not None:
        raise UsageError(f"{wanted} is not computed in these runs ({why_nothing(lacking, wanted)})", hint=hint)
    raise UsageError(f"no measure {wanted!r} in these runs{did_you_mean(wanted, known)}", hint=hint)


def has_value(result: Result, name: str) -> bool:
    """Return whether a measure was computed."""
    return result.measures.get(name, Estimate(value=None)).value is not None


def why_nothing(result: Result, name: str) -> str:
    """Return why a measure was not computed: the reason that stands beside its dash."""
    if result.not_computed.get(name):
        return result.not_computed[name]
    return "every sample failed" if result.total and failed_count(result) >= result.total else NOTHING_HERE


def format_headline(result: Result, wanted: str = "", *, reason: bool = True) -> str:
    """Format the measure that ranks a run, with its margin and, if the headline is not computed, the `reason`.

    As `overall 91.23 % ± 1.20`, `overall 0.00 % [0.00 … 84.19]` or `text_edit 0.123 (no overall: needs formula_cdm)`.
    """
    return marked(_headline(result, wanted, reason=reason), result)


def _headline(result: Result, wanted: str, *, reason: bool) -> str:
    found = headline_of([result], wanted).measure
    unit = result.units.get(found, "fraction")
    estimate = result.measures.get(found, Estimate(value=None))
    margin = format_margin(estimate, unit)
    margin = f"[{margin}]" if "…" in margin else margin
    shown = f"{found} {format_estimate(estimate, unit)} {margin}".rstrip()
    if has_value(result, result.headline):
        return shown
    why = why_nothing(result, result.headline)
    if found == result.headline:
        return f"{shown} ({why})"
    return f"{shown} (no {result.headline}{f': {why}' if reason else ''})"


def value_or_reason(result: Result, name: str) -> str:
    """Format the value of a measure; next to a dash stands why it was not computed."""
    estimate = result.measures.get(name, Estimate(value=None))
    shown = format_estimate(estimate, result.units.get(name, "fraction"))
    return shown if estimate.value is not None else f"{shown} ({why_nothing(result, name)})"
