"""Compute the official figures of a run: `P_metric_result.json`, the headline table and `P_run_summary.json`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from loupe.benchmarks.omnidocbench.records import MatchedSample
from loupe.benchmarks.omnidocbench.scored_pages import PageSample, ScoredPage, samples_by_element

Figures: TypeAlias = dict[str, Any]

#: Upstream writes this string where an element has no sample; a value that cannot be computed is a bare NaN.
NO_SAMPLE = "NaN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementMetrics:
    """The metrics of one element: `Edit_dist`, `TEDS`, `CDM`, `CDM_plain` in order, and groups of attributes.

    `CDM_plain` is upstream's default, which only writes the formulas down; `CDM` scores them, where it was computed.
    """

    metric: tuple[str, ...]
    group: tuple[Mapping[str, Any], ...] = ()
    #: Whether TEDS of the structure alone is told of each group, too (1.6).
    group_structure: bool = False


#: `configs/end2end.yaml` of the official evaluator.
OFFICIAL_METRICS: Mapping[str, ElementMetrics] = {
    "text_block": ElementMetrics(metric=("Edit_dist",)),
    "display_formula": ElementMetrics(metric=("Edit_dist", "CDM", "CDM_plain")),
    "table": ElementMetrics(metric=("TEDS", "Edit_dist")),
    "reading_order": ElementMetrics(metric=("Edit_dist",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageNames:
    """Under which name a sample is put together with others: for its edits, and in `page` (with whose attributes)."""

    of_edits: Callable[[PageSample], str]
    of_attributes: Callable[[PageSample], tuple[str, Mapping[str, Any]]]


def metric_result(
    pages: Sequence[ScoredPage], metrics: Mapping[str, ElementMetrics] = OFFICIAL_METRICS
) -> dict[str, Figures]:
    """`all`, `group` and `page` of every configured element, over the pages given."""
    samples, names = samples_by_element(pages), _official_names(pages)
    found = {
        element: element_figures(samples[element], wanted, names, _annotated(pages, element))
        for element, wanted in metrics.items()
    }
    for element, wanted in metrics.items():
        if "CDM" in wanted.metric and not samples[element] and any(map(_draws_formulas, pages)):
            # With no formula to draw, upstream's CDM (1.6) has no value, and leaves no group either.
            found[element] |= {"all": {**found[element]["all"], "CDM": {}}, "group": {}}
    return found


def element_figures(
    samples: Sequence[PageSample], wanted: ElementMetrics, names: PageNames, annotated: Sequence[ScoredPage] = ()
) -> Figures:
    """`all`, `group` and `page` of one element; `annotated` are pages that count as 0 without a sample of it (1.6)."""
    return {
        "all": _all(samples, wanted, names),
        "group": _group(samples, wanted),
        "page": _page(samples, wanted, names, annotated),
    }


def per_page_edit(samples: Sequence[PageSample], name: Callable[[PageSample], str] | None = None) -> dict[str, float]:
    """Edits over lengths within each page, by name; nan for a page whose texts are all empty."""
    name = name or _edit_name
    pages: dict[str, list[PageSample]] = defaultdict(list)
    for sample in samples:
        pages[name(sample)].append(sample)
    return {page: edit_rate(of_page) for page, of_page in sorted(pages.items())}


def _official_names(pages: Sequence[ScoredPage]) -> PageNames:
    attributes = {_attribute_key(page): page.attributes for page in pages}

    def of_attributes(sample: PageSample) -> tuple[str, Mapping[str, Any]]:
        key = _attribute_key(sample.page)
        # Upstream ends here with a KeyError where no page has this name; we go on with the page's own attributes.
        return key, attributes.get(key, sample.page.attributes)

    return PageNames(of_edits=_edit_name, of_attributes=of_attributes)


def _edit_name(sample: PageSample) -> str:
    return page_key(sample.page.image)


def page_key(image: str) -> str:
    """Return the key by which upstream tells pages apart; endings but .jpg and .png lose all behind the last underscore
    (#aggregation).
    """
    return image if image.endswith((".jpg", ".png")) else _cut_at_last_underscore_like_official(image)


def sample_metrics(sample: PageSample, wanted: ElementMetrics) -> dict[str, float]:
    """The values of one sample by the names that upstream gives them; those without any text have no edit distance."""
    found: dict[str, float] = {}
    matched = sample.matched
    for metric in wanted.metric:
        if metric == "Edit_dist" and matched.upper_len:
            found["Edit_dist"] = matched.edit_num / matched.upper_len
        elif metric == "TEDS" and isinstance(matched, MatchedSample):
            found["TEDS"] = matched.teds or 0.0
            found["TEDS_structure_only"] = matched.teds_structure_only or 0.0
        elif metric == "CDM" and isinstance(matched, MatchedSample) and matched.cdm is not None:
            found["CDM"] = matched.cdm
    return found


def _all(samples: Sequence[PageSample], wanted: ElementMetrics, names: PageNames) -> Figures:
    found: Figures = {}
    for metric in wanted.metric:
        if metric == "TEDS":
            found |= _all_teds(samples, wanted)
        elif metric == "Edit_dist":
            found["Edit_dist"] = _all_edits(samples, names)
        elif metric == "CDM" and (values := _all_cdm(samples, wanted)):
            found["CDM"] = _means(values)
    return found


def _all_cdm(samples: Sequence[PageSample], wanted: ElementMetrics) -> dict[str, list[float]]:
    """F1 of every formula, and of those in a configured group; nothing where CDM was not computed."""
    found: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        if (value := sample_metrics(sample, wanted).get("CDM")) is not None:
            for name in ("all", *(str(dict(group)) for group in wanted.group if _is_in_group(sample, group))):
                found[name].append(value)
    return found


def _all_edits(samples: Sequence[PageSample], names: PageNames) -> Figures:
    if not samples:
        return {"ALL_page_avg": NO_SAMPLE}
    return {
        "ALL_page_avg": _mean(per_page_edit(samples, names.of_edits).values()),
        "edit_whole": edit_rate(samples),
        "edit_sample_avg": _mean(_ratio(each.matched.edit_num, each.matched.upper_len) for each in samples),
    }


def _all_teds(samples: Sequence[PageSample], wanted: ElementMetrics) -> Figures:
    """Means over tables; groups that are configured have an entry of their own."""
    teds: dict[str, list[float]] = defaultdict(list)
    structure: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        values = sample_metrics(sample, wanted)
        names = ("all", *(str(dict(group)) for group in wanted.group if _is_in_group(sample, group)))
        for name in names:
            teds[name].append(values["TEDS"])
        for name in names if wanted.group_structure else ("all",):
            structure[name].append(values["TEDS_structure_only"])
    return {"TEDS": _means(teds), "TEDS_structure_only": _means(structure)}


def _is_in_group(sample: PageSample, group: Mapping[str, Any]) -> bool:
    """Every ground-truth part has attributes, and they all are as the group wants them."""
    attributes = _attributes(sample)
    return all(part and part.get(name) == value for part in attributes for name, value in group.items())


def _group(samples: Sequence[PageSample], wanted: ElementMetrics) -> Figures:
    """Means over the samples with an attribute; a joined sample counts once for every label of its parts."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        labels = {f"{name}: {value}" for part in _attributes(sample) for name, value in part.items()}
        for metric, value in sample_metrics(sample, wanted).items():
            for label in labels:
                found[metric][label].append(value)
    counts = {label: len(values) for of_metric in found.values() for label, values in of_metric.items()}
    result: Figures = {metric: _means(of_metric) for metric, of_metric in found.items()}
    return {**dict(sorted(result.items())), "sample_count": dict(sorted(counts.items()))}


def _draws_formulas(page: ScoredPage) -> bool:
    """True if a version that counts what it has no sample of computes CDM here (1.6)."""
    return page.annotated is not None and page.cdm_computed


def _annotated(pages: Sequence[ScoredPage], element: str) -> list[ScoredPage]:
    return [page for page in pages if element in (page.annotated or ())]


def _page(
    samples: Sequence[PageSample], wanted: ElementMetrics, names: PageNames, annotated: Sequence[ScoredPage]
) -> Figures:
    """Means over the pages with a label of what their samples are worth together."""
    rows: dict[str, dict[tuple[str, str], list[tuple[float, int]]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        key, attributes = names.of_attributes(sample)
        labels = _page_labels(attributes)
        for metric, value in sample_metrics(sample, wanted).items():
            for label in labels:
                rows[metric][key, label].append((value, sample.matched.upper_len))
    for page in annotated:
        for metric in _scored_metrics(wanted, page):
            for label in _page_labels(page.attributes):
                # Without a row of its own, a page with such an element counts as 0 (1.6).
                rows[metric].setdefault((_attribute_key(page), label), [(0.0, 0)])
    return {
        metric: _mean_over_pages(rows[metric], _weighted if metric == "Edit_dist" else _unweighted)
        for metric in sorted(rows)
    }


def _scored_metrics(wanted: ElementMetrics, page: ScoredPage) -> list[str]:
    """The metrics that score a page without samples as 0: all but the edit distance; CDM where it was computed."""
    teds = ["TEDS", "TEDS_structure_only"] if "TEDS" in wanted.metric else []
    return teds + (["CDM"] if "CDM" in wanted.metric and page.cdm_computed else [])


def _mean_over_pages(
    rows: Mapping[tuple[str, str], Sequence[tuple[float, int]]], of_page: Callable[[Sequence[tuple[float, int]]], float]
) -> dict[str, float]:
    labels: dict[str, list[float]] = defaultdict(list)
    for (_, label), values in rows.items():
        labels[label].append(of_page(values))
    return _means(labels)


def _page_labels(attributes: Mapping[str, Any]) -> list[str]:
    """`ALL`, plain attributes as "key: value", and every entry of lists but for those about tables."""
    labels = ["ALL"]
    for name, value in attributes.items():
        if isinstance(value, list):
            labels += [str(entry) for entry in value if "table" not in str(entry)]
        else:
            labels.append(f"{name}: {value}")
    return labels


def _attribute_key(page: ScoredPage) -> str:
    """The name under which upstream looks for the attributes of a page (#aggregation); its whole name in 1.6."""
    image = page.image
    if page.annotated is not None:
        return image
    return image[:-4] if image.endswith((".jpg", ".png")) else _cut_at_last_underscore_like_official(image)


def _cut_at_last_underscore_like_official(image: str) -> str:
    """The name of a page of an image neither .jpg nor .png: `a_7.jpeg` is `a`, `a.jpeg` is nothing (#aggregation)."""
    return "_".join(image.split("_")[:-1])


def _attributes(sample: PageSample) -> Sequence[Mapping[str, Any]]:
    return sample.matched.gt_attribute if isinstance(sample.matched, MatchedSample) else ()


def edit_rate(samples: Sequence[PageSample]) -> float:
    """Edits over lengths of all samples; nan where all texts are empty."""
    return _ratio(sum(each.matched.edit_num for each in samples), sum(each.matched.upper_len for each in samples))


def _weighted(values: Sequence[tuple[float, int]]) -> float:
    return _ratio(sum(value * length for value, length in values), sum(length for _, length in values))


def _unweighted(values: Sequence[tuple[float, int]]) -> float:
    return _mean(value for value, _ in values)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _means(values: Mapping[Hashable, Sequence[float]] | Mapping[str, Sequence[float]]) -> dict[Any, float]:
    return {name: _mean(of_name) for name, of_name in sorted(values.items(), key=lambda item: str(item[0]))}


def _mean(values: Iterable[float]) -> float:
    """The mean of all that are numbers, as pandas takes it; nan for none."""
    kept = [value for value in values if not math.isnan(value)]
    return sum(kept) / len(kept) if kept else math.nan


#: Column of the official table: element, metric, and where the notebook takes it from.
_COLUMNS = (
    ("text_block", "Edit_dist"),
    ("display_formula", "CDM"),
    ("table", "TEDS"),
    ("table", "TEDS_structure_only"),
    ("reading_order", "Edit_dist"),
    # Not in the official table, and no part of the overall; shown because its CDM needs tools that are often absent.
    ("display_formula", "Edit_dist"),
    ("table", "Edit_dist"),
)

#: Those that the official table has, overall apart.
OFFICIAL_COLUMNS = tuple(f"{element}_{metric}" for element, metric in _COLUMNS[:5])


def headline_row(result: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """One row of the official table, and two more edit distances: these as fractions, the others in percent.

    Rounded to 3 decimals; `overall` is computed from rounded values, and None without CDM (the official notebook would
    take it as 0).
    """
    row = {f"{element}_{metric}": _rounded(_value(result, element, metric)) for element, metric in _COLUMNS}
    text, cdm = row["text_block_Edit_dist"], row["display_formula_CDM"]
    teds = _zero_if_missing_like_official(row["table_TEDS"])
    # Made of numbers with three decimals; what is beyond the twelfth is noise.
    overall = None if text is None or cdm is None else round(((1 - text) * 100 + cdm + teds) / 3, 12)
    return {**row, "overall": overall}


def unrounded_row(result: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """The same columns before rounding, without `overall`."""
    return {f"{element}_{metric}": _value(result, element, metric) for element, metric in _COLUMNS}


def summary_row(result: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """The row of version 1.6, which rounds nothing; `overall` is None where any of its three parts is."""
    row = unrounded_row(result)
    text, cdm, teds = row["text_block_Edit_dist"], row["display_formula_CDM"], row["table_TEDS"]
    if text is None or cdm is None or teds is None:
        return {**row, "overall": None}
    return {**row, "overall": ((1 - text) * 100 + cdm + teds) / 3}


def official_value(result: Mapping[str, Mapping[str, Any]], element: str, metric: str) -> float | None:
    """A figure of the evaluator as a fraction; None where it has none, or no number."""
    figures = result.get(element, {})
    if metric == "Edit_dist":
        value = figures.get("all", {}).get(metric, {}).get("ALL_page_avg")
    else:
        # The mean over pages, not the mean over samples that stands under "all".
        value = figures.get("page", {}).get(metric, {}).get("ALL")
    return value if isinstance(value, float) and math.isfinite(value) else None


def _value(result: Mapping[str, Mapping[str, Any]], element: str, metric: str) -> float | None:
    value = official_value(result, element, metric)
    return value if value is None or metric == "Edit_dist" else value * 100


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(np.round(value, 3))


def _zero_if_missing_like_official(value: float | None) -> float:
    """Without any table, the notebook takes TEDS as 0 (#aggregation); the measure `overall` is then absent."""
    return 0.0 if value is None else value


def run_summary(
    pages: Sequence[ScoredPage], metrics: Mapping[str, ElementMetrics], result: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """`page_denominators` and `notebook_metric_summary`; a figure that there is not is None."""
    samples = samples_by_element(pages)
    denominators: dict[str, dict[str, dict[str, int]]] = {
        element: {
            metric: {"ALL": _pages_that_count(element, metric, pages, samples[element], wanted)}
            for metric in _metrics(wanted)
        }
        for element, wanted in metrics.items()
    }
    row = summary_row(result)
    return {
        "page_denominators": denominators,
        "notebook_metric_summary": {
            "metrics": {
                f"{element}_{metric}": {
                    "raw": official_value(result, element, metric),
                    "page_denominator": denominators.get(element, {}).get(metric, {}).get("ALL"),
                    "notebook_value": row[f"{element}_{metric}"],
                }
                for element, metric in _COLUMNS[:5]
            },
            "overall_notebook": row["overall"],
        },
    }


def _metrics(wanted: ElementMetrics) -> list[str]:
    return [*wanted.metric, *(["TEDS_structure_only"] if "TEDS" in wanted.metric else [])]


def _pages_that_count(
    element: str, metric: str, pages: Sequence[ScoredPage], samples: Sequence[PageSample], wanted: ElementMetrics
) -> int:
    """Pages with such an element in the ground truth; where that is not counted, those with a value."""
    if annotated := sum(element in (page.annotated or ()) for page in pages):
        return annotated
    return len({page_key(each.page.image) for each in samples if metric in sample_metrics(each, wanted)})
