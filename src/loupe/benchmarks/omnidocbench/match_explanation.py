"""A stored match as something to look at: which box of the page was held against which piece of the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from loupe.benchmarks.omnidocbench import page_flags
from loupe.benchmarks.omnidocbench.figures import OF_REFERENCE, RECKONING_1_5, Reckoning, inputs_of
from loupe.benchmarks.omnidocbench.ground_truth import FORMULA, IGNORED, TABLE, TEXTS, AnnoId
from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage, from_details, scored_tables, scored_texts
from loupe.benchmarks.shared.formula_images import wants_cdm
from loupe.explanation import Explanation, Flag, FormulaPair, Region, Unit, Unscored
from loupe.quantities import counted, percent
from loupe.types import Sample, SampleScores

_SCORED = {FORMULA, TABLE, *TEXTS} - set(IGNORED)
_MISSING = Flag(
    name="missing-prediction", meaning="pages without a prediction, in none of the official numbers", count=1.0
)


@dataclass(frozen=True, slots=True)
class _Places:
    """The places of blocks on the page: regions by anno_id, and by the order that is annotated."""

    regions: tuple[Region, ...]
    by_id: Mapping[AnnoId, tuple[int, ...]]
    by_order: Mapping[float, int]

    def of(self, anno_ids: Sequence[Sequence[AnnoId]]) -> tuple[int, ...]:
        """The regions of all blocks of a sample, each once."""
        found = (region for parts in anno_ids for anno_id in parts for region in self.by_id.get(anno_id, ()))
        return tuple(dict.fromkeys(found))

    def in_order(self, orders: Sequence[float]) -> tuple[int, ...]:
        """The regions that have these orders; under an index shift, those that upstream took them from."""
        return tuple(self.by_order[order] for order in orders if order in self.by_order)


def explain(page: Sample, scores: SampleScores, reckoning: Reckoning = RECKONING_1_5) -> Explanation | None:
    """The match of one page; None where none is stored."""
    scored = from_details(scores)
    return None if scored is None else explain_match(page, scored, reckoning)


def explain_match(
    page: Sample,
    scored: ScoredPage,
    reckoning: Reckoning,
    flags: Sequence[page_flags.Flag] = page_flags.FLAGS,
) -> Explanation:
    """The same of a page with its match; `flags` are those that it may have."""
    info, places = page.truth["page_info"], _places(page.truth["layout_dets"])
    match = scored.match
    order = match.reading_order
    return Explanation(
        size=(float(info.get("width") or 0), float(info.get("height") or 0)),
        regions=places.regions,
        units=tuple(_units(match, places, wants_cdm(page), reckoning)),
        unscored=tuple(
            Unscored(text=each.piece.content, reason=each.reason, regions=places.of([each.anno_ids]))
            for each in match.unscored
        ),
        true_order=places.in_order(order.gt) if order else (),
        predicted_order=places.in_order(order.pred) if order else (),
        flags=tuple(_flags(scored, flags)),
    )


def _places(elements: Sequence[Mapping[str, Any]]) -> _Places:
    regions: list[Region] = []
    by_id: dict[AnnoId, tuple[int, ...]] = {}
    by_order: dict[float, int] = {}
    for element in elements:
        category, order, polygon = element["category_type"], element.get("order"), element.get("poly") or ()
        if len(polygon) < 6:
            continue
        by_id[element.get("anno_id")] = (*by_id.get(element.get("anno_id"), ()), len(regions))
        if order is not None and category in _SCORED:
            by_order.setdefault(order, len(regions))
        regions.append(
            Region(polygon=tuple(map(float, polygon)), category=category, order=order, scored=category in _SCORED)
        )
    return _Places(tuple(regions), by_id, by_order)


def _units(match: PageMatch, places: _Places, draws: bool, reckoning: Reckoning) -> Iterator[Unit]:
    """All samples of the page, as they follow each other on it; with formulas to draw if `draws`."""
    units = [_text_unit("text", sample, places) for sample in match.text_block]
    choice = match.facts.formula_choice
    note = f"Formulas paired by {choice}." if choice else ""
    units += [replace(_formula_unit(sample, places, draws, reckoning), note=note) for sample in match.display_formula]
    units += [_text_unit("formula as text", sample, places) for sample in match.formulas_as_text]
    units += [_table_unit(sample, places) for sample in match.table]

    def place(unit: Unit) -> float:
        orders = (places.regions[region].order for region in unit.regions)
        return min((order for order in orders if order is not None), default=float("inf"))

    yield from sorted(units, key=place)


def _text_unit(element: str, sample: MatchedSample, places: _Places) -> Unit:
    prediction, reference = scored_texts(sample)
    return Unit(
        element=element,
        regions=places.of(sample.anno_ids),
        reference=sample.gt,
        pieces=tuple(piece.content for piece in sample.pieces),
        step=sample.step,
        distance=sample.distance if sample.pieces else None,
        value=1 - sample.edit_num / sample.upper_len if sample.upper_len else None,
        verdict=f"{counted(sample.edit_num, 'edit')} in {sample.upper_len:,} characters",
        compared=(prediction, reference),
    )


def _formula_unit(sample: MatchedSample, places: _Places, draws: bool, reckoning: Reckoning) -> Unit:
    unit = _text_unit("formula", sample, places)
    if not draws or not sample.pieces:
        return unit
    inputs = inputs_of(sample, reckoning)
    of_reference = sample.cdm_failure.startswith(OF_REFERENCE)
    pair = FormulaPair(
        prediction=inputs.prediction,
        reference=inputs.reference,
        profile=reckoning.cdm_profile,
        f1=sample.cdm,
        prediction_failure="" if of_reference else sample.cdm_failure,
        reference_failure=sample.cdm_failure.removeprefix(OF_REFERENCE) if of_reference else "",
    )
    cdm = "CDM not computed" if sample.cdm is None else f"CDM F1 {percent(sample.cdm)}"
    return replace(unit, formulas=pair, verdict=f"{cdm}, {unit.verdict}")


def _table_unit(sample: MatchedSample, places: _Places) -> Unit:
    zeroed = sample.latex_zeroed and bool(sample.pieces)
    return Unit(
        element="table",
        regions=places.of(sample.anno_ids),
        reference=sample.gt,
        pieces=tuple(piece.content for piece in sample.pieces),
        step=sample.step,
        distance=sample.distance if sample.pieces else None,
        value=sample.teds,
        verdict=f"TEDS {percent(sample.teds or 0.0)}, structure {percent(sample.teds_structure_only or 0.0)}",
        note="A table in LaTeX: upstream never converts it, so it scores 0." if zeroed else "",
        tables=scored_tables(sample),
    )


def _flags(page: ScoredPage, flags: Sequence[page_flags.Flag]) -> Iterator[Flag]:
    if not page.answered:
        yield _MISSING
    for flag in flags:
        if flag.name in page.flags:
            yield Flag(name=flag.name, meaning=flag.counted, count=page.flags[flag.name])
