r"""Set many formulas in few TeX runs, so that nothing that one formula does reaches another.

Only formulas that are known to be harmless share a run, and even these are believed only as far as the log confirms
every page, and if a known formula looks the same on the last page as on the first. Formulas that look broken, that
spoilt such a run, or that have commands which TeX does not know, share runs made for that (see `broken_formulas`). What
is not confirmed there, either, is set alone. Alone, one is rendered if there is a PDF, whatever TeX complained about
(docs/protocols/cdm.md#rendering). One whose command looks for its arguments beyond the page is not: alone, it would
look on to the end of the document and swallow that, too.

Formulas that look broken share a run, each as if it were alone. Alone, a formula is followed by the end of its
document, and what TeX makes of a broken one depends on that. So here, too, each is followed by `\end{document}`,
which does all that it does alone except to end the run; then open groups are closed, and a known formula is set. A
verdict is believed if every known formula before it looks like the first, so that it began in the state in which it
would have begun alone, and if TeX came to the end of the document with nothing left on the page. Where errors are
endless, TeX is helped out (see `endless_errors`); a broken formula from which it does not come back ends the run.

Most are broken in one way: the argument of a `\mathcolor` never ends. Alone TeX looks for the end of it until there is
no more file, and makes no page. Here a mark stands in place of that command, and what is open there is closed. If TeX
comes to the mark as to a command, with no page shipped, it would have come to the command, and that is proof enough.

TeX is answered at its errors, so that one that it reports for ever does not end the run. Alone, TeX gives up at 100
errors in one paragraph, and makes no page. In an alignment that is broken there are two ways to them, both of
primitive commands alone, with no paragraph ended in between: TeX inserts what it then refuses, and is where it was.
That such a pair was reported 100 times is proof enough, so a run that others share says so in its log and is helped
out: TeX counts braces in a cell, and a brace in a condition that is false changes the count only (The TeXbook,
appendix D). A known formula after it shows whether all is as it was.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from loupe.metrics.cdm.drawing.harmless_formulas import NUMBERED, begun, is_whole, unheard_names
from loupe.metrics.cdm.drawing.limited_processes import Answers
from loupe.metrics.cdm.drawing.pdf_pages import PageReader
from loupe.metrics.cdm.drawing.tex_processes import Failure, TexRun, run_tex
from loupe.metrics.cdm.drawing.tex_setup import (
    BLACK,
    BrokenTexError,
    PageReport,
    Template,
    batch_document,
    displayed,
    is_overfull,
    is_refused,
    page_reports,
    preamble,
    single_document,
    unknown_names,
)

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
    """The place where a formula has been drawn: `pages` pages of this PDF from `page` (from 0) on; or why not.

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
        """Return what is believed of the runs, by formula."""
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
    """True if the log tells of every page of the PDF, and the last page looks like the first."""
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


# Taken before it is written: while TeX writes, it is in no mode.
_STATE: Final = (
    r"\the\ReadonlyShipoutCounter\space\the\currentiflevel\space"
    r"\ifvmode\ifinner inner\else outer\fi\else other\fi\space\the\lastnodetype"
)
#: `\LoupePage` comes after each formula. Where the end of the document was not reached, nothing can be put right any
#: more, and a file that is not there ends the run from wherever TeX is.
_SET_UP: Final = r"""\makeatletter\let\LoupeInput\@@input
\def\LoupeTake#1\clearpage#2\LoupeTake{\def\enddocument{#1\clearpage\LoupeOver}}
\expandafter\LoupeTake\enddocument\LoupeTake
\def\LoupeSay#1{\xdef\LoupeState{STATE}\immediate\write-1{NONCE #1 \LoupeState}}
\def\LoupeOver{\LoupeSay{over}\ifvmode\ifinner\else\gdef\LoupeWhere{over}\fi\fi
\begingroup\@endpefalse\def\@currenvir{document}}
\makeatother\def\LoupeWhere{over}\let\LoupeReached\LoupeWhere\def\LoupeHere{here}
\protected\def\LoupeRunsOn#1{\ifx#1\LoupeHere\LoupeSay{ran}\fi}
\def\LoupeLoop{\LoupeSay{loop}\gdef\LoupeWhere{over}}
\def\LoupeClose{\ifnum\currentgrouplevel>0 \ifcase\numexpr\currentgrouptype-14\relax
\endgroup\or$\or\right.\else\egroup\fi\expandafter\LoupeClose\fi}
\outer\def\LoupePage#1.{\ifx\LoupeWhere\LoupeReached\else\LoupeSay{lost}\LoupeInput LoupeStop \fi
\LoupeSay{close}\LoupeClose\global\count0=1 \setcounter{equation}{0}BLACK\gdef\LoupeWhere{#1}\LoupeSay{#1}}
\errorcontextlines=-1 \errorstopmode
"""
#: What the helper says in the log of endless errors.
MARK: Final = r"\LoupeLoop"
_SWALLOWED: Final = re.compile(r"^! (?:Forbidden control sequence found|Incomplete \\if)", re.MULTILINE)
_GIVEN_UP: Final = re.compile(r"^(?:\(That makes 100 errors|\*\*\* \(interwoven)", re.MULTILINE)

Verdict = Literal["drawn", "no page", "unsure"]


def broken_document(template: Template, formulas: Sequence[str], canary: str, *, nonce: str) -> str:
    """A document in which a known formula stands before each of these and after the last."""
    set_up = _SET_UP.replace("STATE", _STATE).replace("NONCE", nonce).replace("BLACK", BLACK[template.program])
    texts = [canary]
    for tex in formulas:
        start = begun(tex)
        texts += [tex if start is None else rf"{start.start}\LoupeRunsOn\LoupeHere {start.closing}", canary]
    pages = (f"\\LoupePage{at}.\n{displayed(template, tex)}\\end{{document}}\n" for at, tex in enumerate(texts))
    return f"{preamble(template)}{set_up}{''.join(pages)}\\LoupePage{len(texts)}.\n\\csname @@end\\endcsname\n"


@dataclass(frozen=True, slots=True)
class _Event:
    """A line of the log: what is said, the pages shipped so far, and the state of TeX; and the log up to the next."""

    name: str
    pages: int
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of one formula: the page that it began on, how many it takes, and whether it does not fit them."""

    verdict: Verdict
    page: int
    pages: int = 0
    overfull: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a run: the verdicts that are believed, in order.

    `is_sound`: all known formulas look alike. `stopped_at`: the formula that ended the run before its time, -1 where
    none did; `is_lost`: it would have ended alone as well, without a page, if all before it are as they should be.
    """

    verdicts: Sequence[Judged] = ()
    is_sound: bool = False
    stopped_at: int = -1
    is_lost: bool = False


def read_trial(formulas: Sequence[str], log: str, pdf: bytes, nonce: str) -> Trial:
    """Read from the log and the known formulas on the pages the verdict on each of these."""
    spans = _spans(log, nonce)
    if 1 < len(spans) < 2 * len(formulas) + 2:
        at = (len(spans) - 2) // 2
        return Trial(stopped_at=at, is_lost=len(spans) % 2 == 0 and _is_lost(formulas[at], spans[-1]))
    if len(spans) < 2 or not pdf:
        return Trial()
    with PageReader(pdf) as reader:
        if len(reader) != spans[-1][0].pages:
            return Trial()
        known = [_known(span, reader) for span in spans[:-1:2]]
    unlike = next((at for at, one in enumerate(known) if one is None or one != known[0]), len(known))
    state = known[0][0] if known[0] else ""
    verdicts = [
        _judged_alone(tex, spans[2 * at + 1], spans[2 * at + 2][0].pages, state)
        for at, tex in enumerate(formulas[:unlike])
    ]
    return Trial(verdicts, is_sound=unlike == len(known))


def _spans(log: str, nonce: str) -> list[list[_Event]]:
    """The events from the start of each formula to that of the next, as far as nothing is missing."""
    parts = re.split(rf"^{nonce} (\w+) (\d+) (\d+ \w+ -?\d+)$", log, flags=re.MULTILINE)
    spans: list[list[_Event]] = []
    for name, pages, state, text in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True):
        event = _Event(name, int(pages), state, text)
        if name == str(len(spans)):
            spans.append([event])
        elif name.isdigit():
            break
        elif spans:
            spans[-1].append(event)
    return spans


def _known(span: Sequence[_Event], reader: PageReader) -> tuple[str, object] | None:
    """The state in which TeX left the known formula, and how that looks; None where it is not one page."""
    end = next((event for event in span if event.name == "over"), None)
    if end is None or end.pages != span[0].pages + 1:
        return None
    ink = reader.ink(span[0].pages)
    return (end.state, (ink.size, ink.colours)) if ink.colours else None


def _judged_alone(tex: str, span: Sequence[_Event], pages_then: int, state: str) -> Judged:
    began = span[0].pages
    if begun(tex) is not None:
        return Judged("no page" if _ran(span) else "unsure", began)
    if span[1:] and span[1].name == "loop":
        is_lost = span[1].pages == began and is_endless(span[0].text)
        return Judged("no page" if is_lost else "unsure", began)
    end = next((event for event in span if event.name == "over"), None)
    if end is None or end.state != state or end.pages != pages_then or would_give_up(span[0].text):
        return Judged("unsure", began)
    if end.pages == began:
        return Judged("no page", began)
    return Judged("drawn", began, end.pages - began, any(is_overfull(event.text) for event in span))


def _ran(span: Sequence[_Event]) -> bool:
    """True if TeX came to the command whose argument never ends, with no page shipped."""
    return any(event.name == "ran" and event.pages == span[0].pages for event in span)


def _is_lost(tex: str, span: Sequence[_Event]) -> bool:
    """True if a formula that ended the run ends it alone, too, and without a page."""
    if begun(tex) is not None:
        return _ran(span)
    began, last = span[0], span[-1]
    if last.name == "lost":
        # The end of the document was taken for a part of an argument: alone, TeX would look on to the end of the file.
        return len(span) == 2 and last.pages == began.pages and bool(_SWALLOWED.search(began.text))
    return len(span) == 1 and bool(_GIVEN_UP.search(last.text)) and "[1" not in last.text


#: At so many errors TeX gives up; where they are known to be endless, fewer tell the same of the next pair.
_MOST: Final = 100
_FEW: Final = 4
#: TeX counts one or two braces too many: at `&` or `\cr`, in mathematics of its own and in the cell.
_IN_MATHEMATICS: Final = {"Missing } inserted.", "Extra }, or forgotten $."}
_IN_CELL: Final = {"Missing } inserted.", "Missing \\cr inserted."}
#: It counts more than two too many or too few.
_FAR: Final = {"Misplaced \\cr.", "Missing \\cr inserted."}
_UP: Final = r"\iffalse{\fi"
_DOWN: Final = r"\iffalse}\fi"
#: As nothing says which, one way is tried, and then further the other.
_TURNS: Final = (_DOWN,) * 8 + (_UP,) * 24 + (_DOWN,) * 64
_ERROR: Final = re.compile(r"^! (.*?) *$", re.MULTILINE)
_PROMPT: Final = "\n? "
#: TeX asks for another file, or has come to the end of this one.
_LAST: Final = ("file name: ", "\n*")
_SHIPPED: Final = re.compile(r"\[\d+")


def would_give_up(log: str) -> bool:
    """True if this part of a log has so many errors that TeX, where nobody answers, may give up."""
    return len(_ERROR.findall(log)) >= _MOST


def is_endless(log: str) -> bool:
    """True if this part of a log ends with so many errors of such a pair that TeX gives up."""
    return bool(_endless_pair(_ERROR.findall(log), _MOST))


def _endless_pair(errors: list[str], times: int) -> set[str]:
    """The pair of which the last errors are, so many times; an empty set where they are not."""
    last = errors[-times:]
    pair = set(last[-2:])
    alternating = len(last) == times and last == last[-2:] * (times // 2)
    return pair if alternating and pair in (_IN_MATHEMATICS, _IN_CELL, _FAR) else set()


class Helper:
    """Answers to TeX in one run: it goes on, until errors are endless. `mark` is the command that logs it."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._errors: list[str] = []
        self._is_endless = False
        self._turns = 0

    def __call__(self, said: str) -> str | None:
        """The answer; "" where TeX does not ask yet, None where there is none."""
        if not said.endswith(_PROMPT):
            return None if said.endswith(_LAST) else ""
        if _SHIPPED.search(said):
            self._errors, self._is_endless, self._turns = [], False, 0
        self._errors += _ERROR.findall(said)[-1:]
        pair = _endless_pair(self._errors, _FEW if self._is_endless else _MOST)
        if pair:
            mark = "" if self._is_endless else self._mark
            self._is_endless = True
            return f"i{mark}{self._way_out(pair)}\n"
        # Endless in another way, or beyond help: let TeX give up.
        return "q\n" if len(self._errors) > 4 * _MOST else "\n"

    def _way_out(self, pair: set[str]) -> str:
        if pair == _FAR:
            self._turns += 1
            return _TURNS[self._turns % len(_TURNS)]
        return _DOWN if pair == _IN_CELL else _UP * 3
