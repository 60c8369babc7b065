"""Formulas as version 1.6 hands them to CDM: without delimiters and tags, matrices in one spelling.

Protocol: docs/protocols/omnidocbench_v16.md#cdm-input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loupe.benchmarks.omnidocbench.scores.cdm_files import CdmInputs, inside_last_fence_like_official
from loupe.benchmarks.omnidocbench.text.balanced_braces import closing_braces, passes_over
from loupe.benchmarks.omnidocbench.text.formula_delimiters import without_delimiters, without_tags
from loupe.benchmarks.omnidocbench.text.formula_rows import rows_of

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


def cdm_inputs(gt: str, pred: str) -> CdmInputs:
    """What the engine gets for a formula, given as the official sample has it."""
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
    """Whether there is a matrix, or an array that may be meant as one."""
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
    """Where a part of a text starts and ends without the blanks around it; None if it has nothing else."""
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
