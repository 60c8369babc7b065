"""Turn samples into figures, as each version does: which figures exist, which pages count, and CDM of formulas."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from loupe.benchmarks.omnidocbench.aggregation import OFFICIAL_METRICS, ElementMetrics, headline_row, summary_row
from loupe.benchmarks.omnidocbench.delimiters import closing_braces, passes_over
from loupe.benchmarks.omnidocbench.formula_lines import rows_of
from loupe.benchmarks.omnidocbench.formula_normalization import without_delimiters, without_tags
from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage
from loupe.benchmarks.shared.formula_images import (
    CdmOutcome,
    cdm_outcomes,
    cdm_warnings,
    prepare_formulas,
)

Row: TypeAlias = Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoning:
    """One version; `pages` is how many its data has."""

    name: str
    pages: int
    metrics: Mapping[str, ElementMetrics]
    #: The row of the official table, of all that the evaluator writes.
    headline: Callable[[Mapping[str, Mapping[str, Any]]], Row]
    #: Whether there is a `run_summary.json`.
    summary: bool
    #: Whether a page without a prediction is an empty answer, and not left out.
    missing_is_empty: bool
    #: Whether a page that has tables or formulas in the ground truth, but no sample of them, counts as 0; pages are
    #: then told apart by the whole names of their images.
    unsampled_is_zero: bool
    #: Whether the text is also measured with the marks that its rules hide (docs/protocols/mdpbench.md#hidden-marks).
    marks_beside: bool
    #: The engine of CDM, and what it gets of a formula's ground truth and prediction.
    cdm_profile: str
    cdm_inputs: Callable[[str, str], CdmInputs]
    #: What of it stands in the official sample.
    cdm_fields: Callable[[str, str], dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CdmInputs:
    """The inputs of CDM for one formula. `alternative` is the prediction spelled otherwise ("": none); the better
    counts.
    """

    prediction: str
    reference: str
    alternative: str = ""


def stripped_inputs(gt: str, pred: str) -> CdmInputs:
    """A formula as the official caller of 1.5 cleans it: dollars and blanks are stripped twice."""
    return CdmInputs(
        prediction=cdm_reference(cdm_prediction(pred)),
        reference=cdm_reference(cdm_reference(gt)),
    )


def no_fields(gt: str, pred: str) -> dict[str, str]:
    """Return the fields that an official sample of 1.5 has for CDM beside the formulas: nothing."""
    del gt, pred
    return {}


RECKONING_1_5: Final = Reckoning(
    name="1.5",
    pages=1_355,
    metrics=OFFICIAL_METRICS,
    headline=headline_row,
    summary=False,
    missing_is_empty=False,
    unsampled_is_zero=False,
    marks_beside=False,
    cdm_profile="omnidocbench",
    cdm_inputs=stripped_inputs,
    cdm_fields=no_fields,
)


def cdm_inputs(gt: str, pred: str) -> CdmInputs:
    """Return what CDM gets for a formula, given as the official sample has it."""
    fields = cdm_fields(gt, pred)
    return CdmInputs(
        reference=_bare(fields.gt_cdm or gt),
        prediction=_bare(inside_last_fence_like_official(pred)),
        alternative=_bare(inside_last_fence_like_official(fields.pred_cdm_alt)) if fields.pred_cdm_alt else "",
    )


def official_fields(gt: str, pred: str) -> dict[str, str]:
    """Those that the official sample has, by name."""
    fields = cdm_fields(gt, pred)
    named = {"gt_cdm": fields.gt_cdm, "pred_cdm_alt": fields.pred_cdm_alt}
    return {name: value for name, value in named.items() if value}


RECKONING_1_6: Final = Reckoning(
    name="1.6",
    pages=1_651,
    metrics={
        **OFFICIAL_METRICS,
        "display_formula": ElementMetrics(metric=("Edit_dist", "CDM")),
        "table": ElementMetrics(metric=("TEDS", "Edit_dist"), group_structure=True),
    },
    headline=summary_row,
    summary=True,
    missing_is_empty=True,
    unsampled_is_zero=True,
    marks_beside=True,
    cdm_profile="omnidocbench_v16",
    cdm_inputs=cdm_inputs,
    cdm_fields=official_fields,
)

RECKONINGS: Final = {each.name: each for each in (RECKONING_1_5, RECKONING_1_6)}


#: What a failure of the ground truth begins with.
OF_REFERENCE: Final = "ground truth "


def prepare_pages(matches: Sequence[PageMatch], reckoning: Reckoning) -> None:
    """Draw the formulas of many pages at once."""
    inputs = (inputs_of(sample, reckoning) for match in matches for sample in match.display_formula)
    pairs = (pair for each in inputs for pair in _pairs(each))
    prepare_formulas(pairs, profile=reckoning.cdm_profile)


def with_cdm(match: PageMatch, reckoning: Reckoning) -> PageMatch:
    """The match with the CDM of every display formula, None where it cannot be computed here."""
    inputs = [inputs_of(sample, reckoning) for sample in match.display_formula]
    pairs = [pair for each in inputs for pair in _pairs(each)]
    outcomes = iter(cdm_outcomes(pairs, profile=reckoning.cdm_profile))
    formulas = []
    for sample, each in zip(match.display_formula, inputs, strict=True):
        outcome = _better([next(outcomes) for _ in _pairs(each)])
        failure = outcome.failure or _of_reference(outcome)
        formulas.append(replace(sample, cdm=outcome.f1, cdm_failure=failure))
    return replace(match, display_formula=tuple(formulas))


def _pairs(inputs: CdmInputs) -> Iterator[tuple[str, str]]:
    """Prediction and ground truth; where there is another spelling of the prediction, that as well."""
    yield inputs.prediction, inputs.reference
    if inputs.alternative:
        yield inputs.alternative, inputs.reference


def _better(outcomes: Sequence[CdmOutcome]) -> CdmOutcome:
    """The first, unless another spelling is worth more."""
    return max(outcomes, key=lambda outcome: -1.0 if outcome.f1 is None else outcome.f1)


def page_cdm(match: PageMatch) -> float | None:
    """The mean over the formulas of a page; None without any, or where CDM is not computed."""
    values = [sample.cdm for sample in match.display_formula if sample.cdm is not None]
    return sum(values) / len(values) if values else None


def formula_warnings(pages: Sequence[ScoredPage], profile: str) -> list[str]:
    """Warn about formulas that are not drawn, by page; nothing if CDM was not asked for."""
    outcomes: Mapping[str, CdmOutcome] = {
        f"{page.stem}:{number}": CdmOutcome(f1=sample.cdm, failure=sample.cdm_failure)
        for page in pages
        for number, sample in enumerate(page.match.display_formula)
        if sample.cdm is not None or sample.cdm_failure
    }
    return cdm_warnings(outcomes, profile=profile)


def _of_reference(outcome: CdmOutcome) -> str:
    return f"{OF_REFERENCE}{outcome.reference_failure}" if outcome.reference_failure else ""


def inputs_of(sample: MatchedSample, reckoning: Reckoning) -> CdmInputs:
    """Prediction and ground truth as the official caller cleans them."""
    return reckoning.cdm_inputs(sample.gt, sample.pred)


def cdm_prediction(prediction: str) -> str:
    """A predicted formula without its fence and its dollars."""
    return cdm_reference(inside_last_fence_like_official(prediction))


def cdm_reference(reference: str) -> str:
    """A formula without the dollars around it, and without blanks around that.

    >>> cdm_reference("$$ x^2 $$")
    'x^2'
    """
    return reference.strip("$").strip()


def inside_last_fence_like_official(prediction: str) -> str:
    """Return what follows the last opening LaTeX fence, up to the next fence mark
    (docs/protocols/omnidocbench.md#metrics).
    """
    return prediction.split("```latex")[-1].split("```")[0]


_MATRICES: Final = ("matrix", "bmatrix", "pmatrix", "vmatrix", "Vmatrix", "smallmatrix")
_MATRIX: Final = "|".join(_MATRICES)
_ARRAY: Final = r"\begin{array}"
_MATRIX_BEGIN = re.compile(rf"\\begin\{{(?:{_MATRIX})\}}")
_EMPTY_SPEC = re.compile(r"\\begin\{array\}\s*\{\s*\}")
_ONE_LEFT_COLUMN = re.compile(r"\s*\\begin\{array\}\s*\{\s*l\s*\}(.*)\\end\{array\}\s*", re.DOTALL)
_DOUBLE_INDEX = re.compile(r"_\{_\{([^{}]+)\}\}")
_FONT = re.compile(r"\\(?:boldsymbol|mathbf|mathrm|mathit|mathsf|mathtt|textbf)\s*\{([^{}]+)\}")
_DETERMINANT = re.compile(r"\\operatorname\s*\{\s*det\s*\}")
#: What the cells of an environment follow: its name, and the columns of an array.
_ARRAY_CELLS = re.compile(r"\\begin\{(array)\}\s*(\{[^}]*\})")
_MATRIX_CELLS = re.compile(rf"\\begin\{{({_MATRIX})\}}()")
_BREAK_FIRST = re.compile(rf"(\\begin\{{(?:{_MATRIX})\}})\s*\\\\")
_BREAK_LAST = re.compile(rf"\\\\\s*(\\end\{{(?:{_MATRIX})\}})")
_ALIGNED_MATRIX = re.compile(
    rf"\s*\\begin\{{aligned\*?\}}\s*&?\s*(\\begin\{{(?:{_MATRIX})\}}.*?\\end\{{(?:{_MATRIX})\}})"
    r"\s*(?:\\\\\s*)?\\end\{aligned\*?\}\s*",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CdmFields:
    """`gt_cdm` and `pred_cdm_alt` of the official sample; "" where it has no such field."""

    gt_cdm: str = ""
    pred_cdm_alt: str = ""


def cdm_fields(gt: str, pred: str) -> CdmFields:
    """The fields that the official sample has for CDM alone."""
    reference, prediction = _undelimited(gt), _undelimited(pred)
    if not (_has_matrix(reference) or _has_matrix(prediction)):
        return CdmFields(gt_cdm=reference)
    respelled = _respelled(reference, reference) or reference
    alternative = _respelled(prediction, respelled)
    return CdmFields(
        gt_cdm=respelled if _EMPTY_SPEC.search(reference) else reference,
        pred_cdm_alt=alternative if alternative != prediction else "",
    )


def _bare(latex: str) -> str:
    latex = latex.strip().strip("$").strip().strip("$").strip()
    for begin, end in ((r"\[", r"\]"), (r"\(", r"\)")):
        if latex.startswith(begin) and latex.endswith(end):
            latex = latex[2:-2].strip()
    return without_tags(latex).strip()


def _undelimited(latex: str) -> str:
    return without_tags(without_delimiters(latex).strip())


def _has_matrix(latex: str) -> bool:
    """True if there is a matrix, or an array that may be meant as one."""
    if _MATRIX_BEGIN.search(latex):
        return True
    return _ARRAY in latex and any(mark in latex for mark in (r"\left[", r"\right]", "&"))


def _respelled(latex: str, context: str) -> str:
    """A formula in the one spelling of matrices, if it or `context` has any; "" if nothing is left."""
    latex = _undelimited(latex)
    if not _has_matrix(latex) and not _has_matrix(without_tags(context)):
        return latex.strip()
    latex = _one_spelling(latex)
    if whole := _ONE_LEFT_COLUMN.fullmatch(latex):
        rows = [_one_spelling(row) for row in rows_of(whole[1], escapes=False)]
        if any(map(_has_matrix, rows)):
            latex = r" \qquad ".join(rows)
    return _one_spelling(latex).strip()


def _one_spelling(latex: str) -> str:
    latex = _EMPTY_SPEC.sub(lambda _: r"\begin{array}{l}", _without_outer_braces(latex))
    latex = _DOUBLE_INDEX.sub(r"_{\1}", latex.replace(r"\dfrac", r"\frac"))
    latex = _DETERMINANT.sub(lambda _: r"\det", _without_fonts(latex))
    for cells in (_ARRAY_CELLS, _MATRIX_CELLS):
        latex = _with_close_cells(latex, cells)
    latex = _BREAK_LAST.sub(r" \1", _BREAK_FIRST.sub(r"\1 ", latex))
    if aligned := _ALIGNED_MATRIX.fullmatch(latex):
        latex = aligned[1]
    return latex.strip()


def _without_fonts(latex: str) -> str:
    for _ in passes_over(latex):
        before, latex = latex, _FONT.sub(r"\1", latex)
        if latex == before:
            break
    return latex


def _without_outer_braces(latex: str) -> str:
    latex = latex.strip()
    if not latex.startswith("{"):
        return latex
    closing, start, end = closing_braces(latex), 0, len(latex)
    while closing.get(start) == end - 1 and (inside := _stripped(latex, start + 1, end - 1)):
        start, end = inside
    return latex[start:end]


def _stripped(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the start and end of a part of a text without the blanks around it; None if it has nothing else."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def _with_close_cells(latex: str, begins: re.Pattern[str]) -> str:
    """Without blanks and outer braces around the cells of these environments, each up to its first end."""
    parts, cursor = list[str](), 0
    endless = set[str]()
    begin = begins.search(latex)
    while begin:
        name, columns = begin.groups()
        mark = rf"\end{{{name}}}"
        end = -1 if name in endless else latex.find(mark, begin.end())
        if end < 0:
            endless.add(name)
            begin = begins.search(latex, begin.start() + 1)
            continue
        body = latex[begin.end() : end]
        rows = ("&".join(map(_without_outer_braces, _parts(row, "&"))) for row in _parts(body, r"\\"))
        parts += (latex[cursor : begin.start()], rf"\begin{{{name}}}", columns, r"\\".join(rows), mark)
        cursor = end + len(mark)
        begin = begins.search(latex, cursor)
    return "".join([*parts, latex[cursor:]])


def _parts(text: str, separator: str) -> Iterator[str]:
    """The parts of a text between separators outside braces and environments; an empty last one is left out."""
    start, braces, environments = 0, 0, 0
    place = 0
    while place < len(text):
        if text.startswith(r"\begin{", place):
            environments += 1
            place = text.find("}", place) + 1 or len(text)
        elif text.startswith(r"\end{", place):
            environments = max(environments - 1, 0)
            place = text.find("}", place) + 1 or len(text)
        elif text.startswith(separator, place) and not braces and not environments:
            yield text[start:place].strip()
            start = place = place + len(separator)
        else:
            braces = max(braces + (text[place] == "{") - (text[place] == "}"), 0)
            place += 1
    if last := text[start:].strip():
        yield last
