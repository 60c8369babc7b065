"""Faults of form that an output adapter mends: found by applying it, so that a price is what the adapter would bring.

Protocol: docs/adapters.md. Benchmarks add what only their own rules know (`Benchmark.faults`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from loupe.benchmarks.folders.own.faults import PAGES
from loupe.engines.adapters.steps import STEPS, apply_adapters
from loupe.engines.shared.foreign_formats import foreign_format
from loupe.features.lint.mended_answers import edits_between
from loupe.runs.folder import RunFolder
from loupe.types import FAILED, Benchmark, Edit, FormatFault

#: Answers of a run that are looked at for a suggestion, and the share of them that makes one.
_LOOKED_AT = 200
_ENOUGH = 0.1


def _mended_by(step: Callable[[str], str], mark: str, text: str) -> Sequence[Edit]:
    """Return what the step changes; nothing if its mark is not there, or if it would leave nothing."""
    mended = step(text) if mark in text else text
    return edits_between(text, mended) if mended.strip() and mended.strip() != text.strip() else ()


def _fault(name: str, adapter: str, meaning: str, mark: str = "") -> FormatFault:
    return FormatFault(name=name, meaning=meaning, edits=partial(_mended_by, STEPS[adapter], mark), adapter=adapter)


#: In the order in which the adapters run. A mark is what an answer must hold besides: some steps do several things.
FAULTS = (
    _fault("thinking", "think", "the model's reasoning before the answer", "think>"),
    _fault("stop-token", "end_tokens", "end-of-answer tokens"),
    _fault("front-matter", "front_matter", "YAML front matter above the page"),
    _fault("olmocr-json", "olmocr_json", "JSON around the page, as the first olmOCR writes it", "natural_text"),
    _fault("service-json", "service_json", "JSON of a service around the text"),
    _fault("grounding", "deepseek_grounding", "grounding marks: labels and boxes of blocks", "<|ref|>"),
    _fault("layout-json", "dots_layout", "JSON with boxes around the texts"),
    _fault("otsl-table", "paddle_tables", "tables as OTSL tokens"),
    _fault("nanonets-tags", "nanonets_tags", "tags around page numbers, watermarks, signatures, images"),
    _fault("html-text", "html_text", "headings and paragraphs in HTML"),
    _fault("html-comment", "html_comments", "HTML comments, which no reader shows"),
)


def _foreign(text: str) -> Sequence[Edit]:
    """Mark the start of an answer that is no text; nothing mends it here."""
    return (Edit(0, 0, ""),) if foreign_format(text) is not None else ()


#: No fix is known for it, so its cost is not known either.
FOREIGN = FormatFault(name="foreign-format", meaning="no text: JSON of a service, hOCR, ALTO, PAGE XML", edits=_foreign)


def is_linted(benchmark: Benchmark) -> bool:
    """Return whether answers to a benchmark are pages, or it knows faults of its own."""
    return bool(benchmark.faults) or benchmark.task in PAGES


def faults_of_pages(benchmark: Benchmark) -> tuple[FormatFault, ...]:
    """Return what is looked for in the answers to a benchmark: these faults first, then its own."""
    return (*_mendable(benchmark), FOREIGN, *benchmark.faults) if is_linted(benchmark) else ()


def _mendable(benchmark: Benchmark) -> list[FormatFault]:
    return [fault for fault in FAULTS if fault.name not in benchmark.harmless]


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """Adapters that a run lacks: what they would take away, from how many of the answers looked at, and all steps."""

    faults: list[str]
    answers: int
    looked_at: int
    adapters: list[str]


def suggestion(folder: RunFolder, benchmark: Benchmark) -> Suggestion | None:
    """Suggest an adapter for the answers of a run, by up to 200 of them; None if there is nothing, or no pages."""
    if not is_linted(benchmark):
        return None
    places = [place for place in folder.prediction_places().values() if place.mark not in FAILED]
    chosen = places[:: max(1, -(-len(places) // _LOOKED_AT))]
    answers = [apply_adapters(one.text, folder.info.adapters) for one in folder.read_predictions(chosen)]
    found = _common_faults(answers, _mendable(benchmark))
    if not found:
        return None
    wanted = {*folder.info.adapters, *(fault.adapter for fault in found)}
    return Suggestion(
        faults=[fault.meaning for fault in found],
        answers=sum(any(fault.edits(text) for fault in found) for text in answers),
        looked_at=len(answers),
        adapters=[step for step in STEPS if step in wanted],
    )


def _common_faults(answers: Iterable[str], faults: Sequence[FormatFault]) -> list[FormatFault]:
    """Those that at least a tenth of the answers have: a single page may show such marks."""
    counts: Counter[str] = Counter()
    total = 0
    for text in answers:
        total += 1
        counts.update(fault.name for fault in faults if fault.edits(text))
    return [fault for fault in faults if counts[fault.name] >= max(1, _ENOUGH * total)]
