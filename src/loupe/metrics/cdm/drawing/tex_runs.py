r"""Setting many formulas in few TeX runs, so that nothing that one formula does reaches another.

Only formulas that are known to be harmless share a run, and even these are believed only as far as the log confirms
every page, and if a known formula looks the same on the last page as on the first. Formulas that look broken, that
spoilt such a run, or that have commands which TeX does not know, share runs made for that (see `broken_formulas`). What
is not confirmed there, either, is set alone. Alone, one is rendered if there is a PDF, whatever TeX complained about
(docs/protocols/cdm.md#rendering). One whose command looks for its arguments beyond the page is not: alone, it would
look on to the end of the document and swallow that, too.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loupe.metrics.cdm.drawing.broken_formulas import MARK, Judged, broken_document, read_trial
from loupe.metrics.cdm.drawing.endless_errors import Helper
from loupe.metrics.cdm.drawing.harmless_formulas import NUMBERED, unheard_names
from loupe.metrics.cdm.drawing.limited_processes import Answers
from loupe.metrics.cdm.drawing.pdf_pages import PageReader
from loupe.metrics.cdm.drawing.tex_documents import (
    PageReport,
    Template,
    batch_document,
    is_overfull,
    is_refused,
    page_reports,
    single_document,
    unknown_names,
)
from loupe.metrics.cdm.drawing.tex_processes import Failure, TexRun, run_tex
from loupe.metrics.cdm.drawing.tex_tools import BrokenTexError
from loupe.metrics.cdm.formula_shape import is_whole

#: Formulas in one run, at most; of broken ones, of which one may end the run.
LARGEST_BATCH: Final = 300
_LARGEST_TRIAL: Final = 50
#: Upstream's limit is 30 s by the clock. A page takes milliseconds, the largest that can be coloured 2 s, with start.
_ALONE_SECONDS: Final = 8
_BATCH_SECONDS: Final = 4
_CHARACTERS_A_SECOND: Final = 50_000  # a quarter of what TeX sets
_LARGEST_TEX: Final = 1 << 20
#: A formula with what formulas have; it is set first and last in a batch, and where TeX is to be shown to work.
_CANARY: Final = (
    r"\mathcolor[RGB]{0,0,15}{x} \mathcolor[RGB]{0,0,30}{\frac{\mathrm{y}}{\mathbf{z}}}"
    r"\mathcolor[RGB]{0,0,45}{\sum_{i}^{n}} \mathcolor[RGB]{0,0,60}{\sqrt{2}} \mathcolor[RGB]{0,0,75}{"
    r"\left( \begin{array}{cc} a & b \\ c & \text{d} \end{array} \right)} = q"
    r"\mathcolor[RGB]{0,0,90}{x} ^ { \mathcolor[RGB]{0,0,105}{2} } _ { i }"
    r"\mathcolor[RGB]{0,0,120}{\int} \limits ^ { b } ' \mathcolor[RGB]{0,0,135}{\hat{y}} ' _ 1"
)


@dataclass(frozen=True, slots=True)
class PageSource:
    """Where a formula has been drawn: `pages` pages of this PDF from `page` (from 0) on; or why not.

    `overfull`: it does not fit its page.
    """

    pdf: bytes = b""
    page: int = 0
    failure: Failure = ""
    pages: int = 1
    overfull: bool = False

    @property
    def numbers(self) -> range:
        """Its pages in the PDF."""
        return range(self.page, self.page + self.pages)


def set_formulas(template: Template, formulas: Sequence[str], *, doubtful: Collection[int] = ()) -> list[PageSource]:
    """Set every formula on a page of its own. `doubtful`: those that look broken for a reason not seen here.

    Raises OSError where TeX cannot be started at all, BrokenTexError where it sets not even a formula known to be good.
    """
    found: dict[int, PageSource] = {}
    for index, tex in enumerate(formulas):
        if len(tex) > _LARGEST_TEX:
            found[index] = PageSource(failure="too large")
        elif is_refused(tex):
            found[index] = PageSource(failure="refused")
    rest = {index: tex for index, tex in enumerate(formulas) if index not in found}
    found |= _Shared(template, rest, doubtful).pages()
    worked = any(page.pdf for page in found.values())
    unproven = False
    for index in (index for index in range(len(formulas)) if index not in found):
        found[index] = _set_alone(template, formulas[index])
        unproven = bool(found[index].failure)
        if unproven and not worked:
            _check_that_it_works(template)
            worked, unproven = True, False
    if unproven:
        _check_that_it_works(template)
    return [found[index] for index in range(len(formulas))]


@dataclass
class _Shared:
    """Runs that formulas share. What is not in `pages` in the end is to be set alone."""

    template: Template
    formulas: Mapping[int, str]
    doubtful: Collection[int]
    unknown: set[str] = field(default_factory=set)  # names that TeX has been asked for and does not know
    spoilt: list[int] = field(default_factory=list)

    def pages(self) -> dict[int, PageSource]:
        """What is believed of the runs, by formula."""
        unheard = {index: names for index, tex in self.formulas.items() if (names := unheard_names(tex)) is not None}
        whole = [index for index, names in unheard.items() if not (names or self.looks_broken(index))]
        names = frozenset[str]().union(*unheard.values())
        found: dict[int, PageSource] = {}
        for start in range(0, max(len(whole), bool(names)), LARGEST_BATCH):
            found |= self.batch(whole[start : start + LARGEST_BATCH], names)
        rest = sorted({*unheard} - {*whole} | {*self.spoilt})
        broken = [index for index in rest if unheard[index] <= self.unknown | NUMBERED]
        for start in range(0, len(broken), _LARGEST_TRIAL):
            found |= self.trials(broken[start : start + _LARGEST_TRIAL])
        return found

    def looks_broken(self, index: int) -> bool:
        """A guess: where it is wrong, only time is lost."""
        return index in self.doubtful or not is_whole(self.formulas[index])

    def batch(self, batch: list[int], names: frozenset[str]) -> Iterator[tuple[int, PageSource]]:
        """Set a batch; what spoils it is put aside, the others are set again. TeX is asked for the names as well."""
        while len(batch) > 1 or names:
            nonce = secrets.token_hex(12)
            texts = [_CANARY, *(self.formulas[index] for index in batch), _CANARY]
            run = _run(self.template, batch_document(self.template, texts, nonce=nonce, names=names), texts)
            self.unknown |= unknown_names(run.log, nonce)
            names = frozenset()
            reports = page_reports(run.log, nonce)[1:]
            spoilt = {position for position, report in enumerate(reports[: len(batch)]) if not report.is_clean}
            spoilt |= {len(reports)} if len(reports) < len(batch) else set()
            if run.failure or not reports or not (spoilt or _is_sound(run, reports, len(batch))):
                # Something is wrong, and nothing says with which formula.
                _check_that_it_works(self.template)
                if len(batch) > 1:
                    yield from self.batch(batch[: len(batch) // 2], names)
                    yield from self.batch(batch[len(batch) // 2 :], names)
                return
            if not spoilt:
                for position, index in enumerate(batch):
                    yield index, _reported(reports[position], run.pdf, position + 1)
                return
            self.spoilt += (batch[position] for position in spoilt)
            batch = [index for position, index in enumerate(batch) if position not in spoilt]

    def trials(self, batch: list[int]) -> Iterator[tuple[int, PageSource]]:
        """Set formulas that look broken; one that ends the run is put aside, or known to have no page."""
        lost: list[int] = []
        while len(batch) > 1 or lost:
            nonce = secrets.token_hex(12)
            texts = [self.formulas[index] for index in batch]
            document = broken_document(self.template, texts, _CANARY, nonce=nonce)
            run = _run(self.template, document, texts, Helper(MARK))
            trial = read_trial(texts, run.log, run.pdf, nonce)
            if trial.stopped_at >= 0:
                lost += [batch[trial.stopped_at]] * (trial.is_lost and not run.failure)
                del batch[trial.stopped_at]
                continue
            for index, judged in zip(batch, trial.verdicts, strict=False):
                if judged.verdict != "unsure":
                    yield index, _judged(judged, run.pdf)
            if trial.is_sound:
                yield from ((index, PageSource(failure="no page")) for index in lost)
            if len(trial.verdicts) == len(batch) or not trial.verdicts:
                return
            batch, lost = batch[len(trial.verdicts) :], []


def _is_sound(run: TexRun, reports: Sequence[PageReport], formulas: int) -> bool:
    """Whether the log tells of every page of the PDF, and the last page looks like the first."""
    if len(reports) != formulas + 1 or not reports[-1].is_clean or run.pages != formulas + 2:
        return False
    with PageReader(run.pdf) as reader:
        first, last = reader.ink(0), reader.ink(run.pages - 1)
    return bool(first.colours) and (first.size, first.colours) == (last.size, last.colours)


def _run(template: Template, document: str, texts: Sequence[str], answers: Answers | None = None) -> TexRun:
    seconds = _BATCH_SECONDS + sum(map(len, texts)) // _CHARACTERS_A_SECOND
    return run_tex(template, document, seconds=seconds, answers=answers)


def _set_alone(template: Template, tex: str) -> PageSource:
    run = run_tex(template, single_document(template, tex), seconds=_ALONE_SECONDS)
    if run.pages and not run.failure:
        return PageSource(run.pdf, pages=run.pages, overfull=is_overfull(run.log))
    return PageSource(failure=run.failure or "no page")


def _reported(report: PageReport, pdf: bytes, page: int) -> PageSource:
    return PageSource(failure="no page") if report.ran_on else PageSource(pdf, page, overfull=report.overfull)


def _judged(judged: Judged, pdf: bytes) -> PageSource:
    if not judged.pages:
        return PageSource(failure="no page")
    return PageSource(pdf, judged.page, pages=judged.pages, overfull=judged.overfull)


def _check_that_it_works(template: Template) -> None:
    """No failure is believed of a TeX that does not set a known formula after it: it may have broken since the last."""
    if run_tex(template, single_document(template, _CANARY), seconds=_ALONE_SECONDS).pages != 1:
        raise BrokenTexError(template.program)
