"""The tables of `loupe select`, with what stands under them, and the same as one JSON document."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loupe.benchmarks.folders.selection.prompts import FIELDS
from loupe.benchmarks.folders.selection.questions import Phase
from loupe.benchmarks.folders.selection.truth_files import Truth
from loupe.results.sections import Section, format_range
from loupe.studies.select.model_lists import ModelList
from loupe.studies.select.progress_line import clock
from loupe.studies.select.standings import Pair, Standing, document_verdicts, like_neighbours, no_ground_truth

TITLES: dict[Phase, str] = {"a": "vision models, by image", "b": "text models, by text"}
_HEAD = ("#", "model", "score", "max", "%")
_TAIL = ("timeouts", "err", "unp", "s/doc (median)", "elapsed")
_COLUMNS: dict[Phase, tuple[str, ...]] = {
    "a": ("TP", "FN", "TN", "FP"),
    "b": ("cat. correct", "extr. correct", "date ok", "name ok"),
}
_COUNTS: dict[Phase, tuple[str, ...]] = {
    "a": ("TP", "FN", "TN", "FP"),
    "b": ("categorised", "extracted", "date", "name"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The outcome of one phase, and how it came about. `unread`: the ground truth that no person has confirmed."""

    phase: Phase
    document_type: str
    field: str
    positives: int
    negatives: int
    timeout: float
    models: ModelList
    served: str
    standings: list[Standing]
    unread: Sequence[Truth] = ()

    @property
    def drafters(self) -> Counter[str]:
        """How many of the unread files each model has drafted, alone or with another one."""
        return Counter(model for truth in self.unread for model in {truth.text_model, truth.vlm_model} - {""})


def sections(ranked: Ranked) -> list[Section]:
    """The table of a phase and all that stands under it."""
    header = (*_HEAD, *_COLUMNS[ranked.phase], *_TAIL)
    rows = [_row(ranked, standing) for standing in ranked.standings]
    found = [Section(title=f"{ranked.document_type}: {TITLES[ranked.phase]}", header=header, rows=rows, keys=2)]
    found += [Section(title="", rows=[(line,) for line in _notes(ranked)])]
    placed = [each for each in ranked.standings if each.position is not None]
    if placed:
        kind = "Wilson" if ranked.phase == "a" else "bootstrap over documents"
        intervals = [(str(each.position), name_of(each), _percent(each.share), _interval(each)) for each in placed]
        header = ("#", "model", "%", "95 % interval")
        found.append(Section(title=f"95 % interval of % ({kind})", header=header, rows=intervals, keys=2))
    if len(placed) > 1:
        found.append(_neighbours(ranked, like_neighbours(ranked.standings)))
    wrong = [(name_of(each), each.assessment.status, each.assessment.reason) for each in ranked.standings]
    wrong = [row for row in wrong if row[1]]
    if wrong:
        found.append(Section(title="not finished", header=("model", "status", "why"), rows=wrong, alarm=True))
    return found


def name_of(standing: Standing) -> str:
    """The model's id, with a mark where it is trained to transcribe."""
    model = standing.assessment.model
    return f"{model.id} (OCR)" if model.kind == "ocr" else model.id


def _row(ranked: Ranked, standing: Standing) -> tuple[str, ...]:
    place = str(standing.position) if standing.position is not None else standing.assessment.status
    elapsed = clock(standing.assessment.elapsed)
    if not standing.assessment.asked:
        return (place, _row_name(ranked, standing), *["–"] * (len(_HEAD) + len(_COLUMNS[ranked.phase]) + 2), elapsed)
    counts = [_count(ranked, standing, name) for name in _COUNTS[ranked.phase]]
    seconds = "–" if standing.seconds is None else f"{standing.seconds:.2f}"
    return (
        *(place, _row_name(ranked, standing), str(standing.score), str(standing.most), _percent(standing.share)),
        *counts,
        *(str(standing.timeouts), str(standing.errors), str(standing.unparsable), seconds, elapsed),
    )


def _row_name(ranked: Ranked, standing: Standing) -> str:
    """The name, marked where the model is measured by what it has written itself."""
    return name_of(standing) + (" *" if ranked.drafters[standing.assessment.model.id] else "")


def _count(ranked: Ranked, standing: Standing, name: str) -> str:
    """A count, with of how many it is where not every document has it."""
    if ranked.phase == "b" and name == "name" and not FIELDS[ranked.field].key:
        return "–"
    of = standing.counts.get(f"{name}_of")
    return str(standing.counts[name]) if of is None else f"{standing.counts[name]}/{of}"


def _notes(ranked: Ranked) -> list[str]:
    total = ranked.positives + ranked.negatives
    lines = [
        f"{total} documents ({ranked.positives} positive, {ranked.negatives} negative), time-out {ranked.timeout:g} s "
        f"per call, models: {ranked.models.source} list of {len(ranked.models.models)}, served by {ranked.served}"
    ]
    without = no_ground_truth(ranked.standings[0]) if ranked.phase == "b" and ranked.standings else []
    if without:
        lines.append(f"no ground truth, extraction not scored: {', '.join(without)}")
    if ranked.unread:
        drafted = ", ".join(f"{count} drafted by {model}" for model, count in ranked.drafters.items())
        lines += [f"* scored against its own drafts: {drafted}"] if drafted else []
        lines.append(
            f"ground truth of {len(ranked.unread)} of {ranked.positives} positive documents is unverified: "
            f"loupe review DIR --type {shlex.quote(ranked.document_type)}"
        )
    return lines


def _neighbours(ranked: Ranked, pairs: Sequence[Pair]) -> Section:
    """Neighbours that are alike by documents fully right; in phase B, where a document may be half right, by points."""
    in_full = "documents fully right" if ranked.phase == "b" else "documents"
    title = f"neighbours that are not significantly different by {in_full} (exact McNemar, p ≥ 0.05)"
    if not pairs:
        return Section(title=title, rows=[("none",)])
    header = ("#", "model", "model", "only first right", "only second right", "p")
    rows = [
        (
            *(f"{pair.first.position} and {pair.second.position}", name_of(pair.first), name_of(pair.second)),
            *(str(pair.only_first), str(pair.only_second), f"{pair.p:.3f}"),
            *([_by_points(pair)] if ranked.phase == "b" else []),
        )
        for pair in pairs
    ]
    return Section(title=title, header=(*header, *(["by points"] if ranked.phase == "b" else [])), rows=rows)


def _by_points(pair: Pair) -> str:
    if pair.points_p is None:
        return "too few documents"
    return f"p = {pair.points_p:.3f}: {'they differ' if pair.differs_in_points else 'no difference'}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _interval(standing: Standing) -> str:
    low, high = standing.interval or (None, None)
    return format_range(low, high, "fraction") or "–"


def json_document(ranked: Ranked) -> dict[str, Any]:
    """Everything of one phase; shares are fractions, times seconds."""
    return {
        "phase": ranked.phase,
        "type": ranked.document_type,
        "field": ranked.field,
        "positives": ranked.positives,
        "negatives": ranked.negatives,
        "timeout": ranked.timeout,
        "list": ranked.models.source,
        "served": ranked.served,
        "unread_ground_truth": {"documents": len(ranked.unread), "drafted_by": dict(ranked.drafters)},
        "models": [_json_model(each) for each in ranked.standings],
        "not_significantly_different": [
            {
                "models": [pair.first.assessment.model.id, pair.second.assessment.model.id],
                "p": pair.p,
                "only_first": pair.only_first,
                "only_second": pair.only_second,
                "points_p": pair.points_p,
            }
            for pair in like_neighbours(ranked.standings)
        ],
    }


def _json_model(standing: Standing) -> dict[str, Any]:
    assessment = standing.assessment
    return {
        "model": assessment.model.id,
        "kind": assessment.model.kind,
        "position": standing.position,
        "status": assessment.status or "ok",
        "reason": assessment.reason,
        "score": standing.score,
        "max": standing.most,
        "share": standing.share,
        "interval": list(standing.interval) if standing.interval else None,
        **standing.counts,
        "timeouts": standing.timeouts,
        "errors": standing.errors,
        "unparsable": standing.unparsable,
        "seconds_per_document": standing.seconds,
        "elapsed": assessment.elapsed,
        "server": assessment.facts,
        "calls": document_verdicts(standing),
    }
