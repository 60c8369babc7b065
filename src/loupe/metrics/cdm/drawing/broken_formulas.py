r"""Formulas that look broken, many in one TeX run, each as if it were alone.

Alone, a formula is followed by the end of its document, and what TeX makes of a broken one depends on that. So here,
too, each is followed by `\end{document}`, which does all that it does alone except to end the run; then open groups
are closed, and a known formula is set. A verdict is believed if every known formula before it looks like the first, so
that it began in the state in which it would have begun alone, and if TeX came to the end of the document with nothing
left on the page. Where errors are endless, TeX is helped out (see `endless_errors`); a broken formula from which it
does not come back ends the run.

Most are broken in one way: the argument of a `\mathcolor` never ends. Alone TeX looks for the end of it until there is
no more file, and makes no page. Here a mark stands in place of that command, and what is open there is closed. If TeX
comes to the mark as to a command, with no page shipped, it would have come to the command, and that is proof enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from loupe.metrics.cdm.drawing.endless_errors import is_endless, would_give_up
from loupe.metrics.cdm.drawing.pdf_pages import PageReader
from loupe.metrics.cdm.drawing.tex_documents import BLACK, Template, displayed, is_overfull, preamble
from loupe.metrics.cdm.formula_shape import begun

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
    """What came of one formula: the page that it began on, how many it takes, and whether it does not fit them."""

    verdict: Verdict
    page: int
    pages: int = 0
    overfull: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a run: the verdicts that are believed, in order.

    `is_sound`: all known formulas look alike. `stopped_at`: the formula that ended the run before its time, -1 where
    none did; `is_lost`: it would have ended alone as well, without a page, if all before it are as they should be.
    """

    verdicts: Sequence[Judged] = ()
    is_sound: bool = False
    stopped_at: int = -1
    is_lost: bool = False


def read_trial(formulas: Sequence[str], log: str, pdf: bytes, nonce: str) -> Trial:
    """What the log and the known formulas on the pages say of each of these."""
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
        _judged(tex, spans[2 * at + 1], spans[2 * at + 2][0].pages, state) for at, tex in enumerate(formulas[:unlike])
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


def _judged(tex: str, span: Sequence[_Event], pages_then: int, state: str) -> Judged:
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
    """Whether TeX came to the command whose argument never ends, with no page shipped."""
    return any(event.name == "ran" and event.pages == span[0].pages for event in span)


def _is_lost(tex: str, span: Sequence[_Event]) -> bool:
    """Whether a formula that ended the run ends it alone, too, and without a page."""
    if begun(tex) is not None:
        return _ran(span)
    began, last = span[0], span[-1]
    if last.name == "lost":
        # The end of the document was taken for a part of an argument: alone, TeX would look on to the end of the file.
        return len(span) == 2 and last.pages == began.pages and bool(_SWALLOWED.search(began.text))
    return len(span) == 1 and bool(_GIVEN_UP.search(last.text)) and "[1" not in last.text
