"""The page of one run: how it went, sample after sample, what was set, and what of that is not as shipped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias
from urllib.parse import urlencode

import msgspec

from loupe.engines.registry import Profile, built_in, changed_settings, engine_module
from loupe.errors import LoupeError
from loupe.pipeline.spent import latency_figures, page_seconds, was_asked
from loupe.quantities import duration
from loupe.results.headline import format_headline
from loupe.results.scored_here import NOT_HERE
from loupe.results.sections import format_estimate, format_margin, format_value, notes_of
from loupe.results.speed import speed_rows, speed_text
from loupe.scoring.running import RunningScore
from loupe.typed import convert
from loupe.types import FAILED, Estimate
from loupe.web.view.board import Board, Cell
from loupe.web.view.grid import NOT_ANSWERED, OUTCOMES, counted_outcome
from loupe.web.view.run_reader import RunIndex
from loupe.web.view.sample_page import address

JsonObject: TypeAlias = dict[str, Any]

#: Columns of the health strip at most; one stands for several samples where there are more.
COLUMNS = 160
BARS = 32
#: From bottom to top.
_GOOD = ("ok", "blank", "empty", "truncated", "repeated")
_ORDER = (*_GOOD, "unfinished", "refused", "rejected", "scorer", "timeout", "error", "missing", "waiting", "unasked")
_LONGEST = 2_000


def run_context(board: Board, run: RunIndex) -> JsonObject:
    """Everything that the page of a run shows."""
    info = run.folder.info
    return {
        "run": run,
        "info": info,
        "label": board.labels[run.key],
        "state": run.state,
        "progress": progress(board, run),
        "headline": format_headline(run.result, board.group().headline) if run.result else "",
        "measures": _measures(board, run),
        "outcomes": [(name, counted_outcome(name, count), count) for name, count in ordered(board, run)],
        "strip": strip(board, run),
        "latency": latency(run),
        "speed": speed_rows(run.result) if run.result else _speed_so_far(run),
        "warnings": [
            *(run.result.warnings if run.result else info.notes),
            *(notes_of(run.result) if run.result else ()),
        ],
        "settings": settings(info.profile),
        "changed": changed(run),
        "prompts": dict(info.prompts),
        "questions": [sample.id for sample in list(board.samples().values())[: run.total] if sample.prompt],
        "wrong": errors(board, run),
        "address": lambda ident: address(board, "sample", ident) + "&" + urlencode({"a": run.key}),
        "facts": [*info.facts.items(), *((f"package {name}", text) for name, text in info.packages.items())],
        "host": dict(info.host),
        "signature": run.result.signature if run.result else info.signature,
    }


def classes(board: Board, run: RunIndex) -> dict[str, str]:
    """The class of each sample of the data, as the list of samples filters it; of a large run, of each answer."""
    if board.is_large:
        return {ident: answer.outcome for ident, answer in run.answers.items()}
    place = board.ordered().index(run)
    return {row.ident: row.cells[place].outcome for row in board.rows()}


def ordered(board: Board, run: RunIndex) -> list[tuple[str, int]]:
    """Classes of answers with their counts, good ones first."""
    known = classes(board, run)
    found = Counter(known.values())
    # Where the data is not at hand, samples are known by their answers alone.
    found["missing" if run.result else "waiting"] += max(0, run.total - len(known))
    return [(name, found[name]) for name in (*_ORDER, *sorted(found.keys() - set(_ORDER))) if found[name]]


def progress(board: Board, run: RunIndex) -> JsonObject:
    """The progress of a run: how far, how fast, and what the scores say so far."""
    done, total, rate = len(run.answers), max(run.total, 1), run.rate() if run.state == "running" else None
    return {
        "done": done,
        "total": run.total,
        "percent": round(100 * min(1.0, done / total), 1),
        "failed": run.failed(),
        "rate": f"{rate:.3g} pages/s" if rate else "",
        "left": duration((total - done) / rate) + " left" if rate and total > done else "",
        "headline": so_far(board, run),
    }


def so_far(board: Board, run: RunIndex) -> str:
    """The headline of what is scored already, while there is no result."""
    benchmark = board.group().benchmark
    if run.result is not None or benchmark is None or not run.scores or not run.holds_scores:
        return ""
    running = RunningScore(benchmark)
    for row in run.scores.values():
        running.add(row)
    found = running.estimate()
    if found is None:
        return ""
    measure, so_far = found
    mark = f" ({NOT_HERE})" if run.is_of_others else ""
    return f"{measure.name} {format_value(so_far.value, measure.unit)} on {so_far.n:,} so far{mark}"


def _measures(board: Board, run: RunIndex) -> list[tuple[str, str, str, int]]:
    result, known = run.result, board.measures()
    if result is None:
        return []
    headline = board.group().headline
    order = sorted(result.measures.items(), key=lambda item: item[0] != headline)
    return [
        (
            f"{(name in known and known[name].title) or name} {'↑' if result.directions.get(name, True) else '↓'}",
            format_estimate(estimate, result.units.get(name, "fraction")),
            _margin(estimate, result.units.get(name, "fraction")),
            estimate.n,
        )
        for name, estimate in order
        if estimate.value is not None
    ]


def _margin(estimate: Estimate, unit: str) -> str:
    return format_margin(estimate, unit) or "no interval"


def errors(board: Board, run: RunIndex) -> list[JsonObject]:
    """The errors, each once, those that differ in numbers alone together, the most frequent first."""
    place = board.ordered().index(run)
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in (row.cells[place] for row in board.rows()):
        if cell.outcome in NOT_ANSWERED:
            found.setdefault((cell.outcome, cell.alike), []).append(cell)
    return [
        {
            "outcome": OUTCOMES[outcome],
            "text": cells[0].error,
            "count": len(cells),
            "query": urlencode({"a": run.key, "outcome": outcome} | ({"error": alike} if alike else {})),
        }
        for (outcome, alike), cells in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def strip(board: Board, run: RunIndex) -> list[JsonObject]:
    """The samples in the order of the data as columns, each divided by class, the good below."""
    known = list(classes(board, run).items())
    if not known:
        return []
    width = max(1, -(-len(known) // COLUMNS))
    columns = []
    for start in range(0, len(known), width):
        part = [name for _, name in known[start : start + width]]
        pieces, bottom = [], 100.0
        for name in _ORDER:
            share = 100 * part.count(name) / len(part)
            if share:
                bottom -= share
                pieces.append((name, round(bottom, 2), round(share, 2)))
        said = [OUTCOMES.get(name, name) for name in sorted(set(part))]
        columns.append({"pieces": pieces, "first": known[start][0], "count": len(part), "classes": said})
    return columns


def latency(run: RunIndex) -> JsonObject:
    """The times of answers, as a histogram up to the 99th percentile."""
    seconds = seconds_of(run)
    figures = latency_figures(seconds)
    if len(seconds) < 2:
        return {}
    top = figures["latency_p99"]
    bars = [0] * BARS
    for value in seconds:
        bars[min(BARS - 1, int(BARS * value / top))] += 1
    most = max(bars)
    named = [("median", figures["latency_p50"]), ("p95", figures["latency_p95"])]
    return {
        "bars": [round(100 * bar / most, 1) for bar in bars],
        "top": f"{top:.3g} s",
        "named": [
            (name, speed_text("latency_", value), round(min(100.0, 100 * value / top), 1)) for name, value in named
        ],
        "n": len(seconds),
    }


def seconds_of(run: RunIndex) -> list[float]:
    """Return how long each answered page took: the pages of which the figures of speed tell."""
    asked = was_asked(run.folder)
    answered = [one for one in run.answers.values() if one.outcome not in FAILED]
    found = (page_seconds(one.seconds, one.began, one.ended) if asked else one.seconds for one in answered)
    return [each for each in found if each > 0]


def _speed_so_far(run: RunIndex) -> list[tuple[str, str]]:
    """The figures that the answers so far give; throughput and cost need all attempts, and come with the result."""
    answers = [one for one in run.answers.values() if one.outcome not in FAILED]
    figures = latency_figures(seconds_of(run))
    for name in ("input_tokens", "output_tokens"):
        known = [count for one in answers if (count := getattr(one, name)) is not None]
        figures[f"{name}_per_page"] = sum(known) / len(known) if known else 0.0
    return [(name.replace("_", " "), speed_text(name, value)) for name, value in figures.items() if value]


def settings(profile: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The settings, without empty ones."""
    kept = {name: value for name, value in profile.items() if value not in ("", None, [], {}, ())}
    return [(name, shown(value)) for name, value in sorted(kept.items()) if name not in ("prompts", "sources")]


def shown(value: Any) -> str:
    """A setting as text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def changed(run: RunIndex) -> JsonObject:
    """The settings unlike those of the profile that we ship, else from the kind of engine: (setting, there, here)."""
    stored = dict(run.folder.info.profile)
    version, kind = str(stored.get("version", "")), str(stored.get("kind", ""))
    name = f"profile {version.partition('+')[0]}" if version else f"defaults of the engine kind {kind}"
    try:
        settings_of: type[Profile] = engine_module(kind).Settings
        needed = {field.name: stored.get(field.name) for field in msgspec.structs.fields(settings_of) if field.required}
        base = built_in(version) if version else convert(needed, settings_of)
        if base is None:
            return {"base": name, "rows": [], "note": f"This version of Loupe has no {name}."}
        known = {key: value for key, value in stored.items() if key in settings_of.__struct_fields__}
        found = changed_settings(convert(known, settings_of), base)
    except (LoupeError, msgspec.ValidationError, ValueError) as error:
        return {"base": name, "rows": [], "note": f"The settings cannot be compared with a profile: {error}"}
    rows = [(key, shown(before), shown(after)) for key, (before, after) in found.items()]
    return {"base": name, "rows": rows, "note": "" if rows else f"No differences from the {name}."}
