r"""Running TeX on hostile input: in an empty folder, without shell, with limits, and with many formulas in one run.

Only formulas that are known to be harmless share a run, and even these are believed only as far as the log confirms
every page, and if a known formula looks the same on the last page as on the first. What is not confirmed is set alone,
the others in a new batch: nothing that one formula does reaches another. Alone, one is rendered if there is a PDF of
one page, whatever TeX complained about (protocol page cdm.md, section D). One whose command looks for its arguments
beyond the page is not: alone, it would look on to the end of the document and swallow that, too.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from loupe.metrics.cdm.harmless_formulas import is_harmless
from loupe.metrics.cdm.limited_processes import Ending, read_bounded, run_limited
from loupe.metrics.cdm.pdf_pages import PageReader, page_count
from loupe.metrics.cdm.tex_documents import (
    PageReport,
    Template,
    batch_document,
    is_refused,
    page_reports,
    single_document,
)
from loupe.metrics.cdm.tex_tools import BrokenTexError
from loupe.metrics.cdm.xdv_specials import is_harmless_xdv

Failure = Ending | Literal["refused", "too large", "no page", "several pages"]

#: Formulas in one run, at most.
LARGEST_BATCH: Final = 300
#: Upstream's limit is 30 s by the clock. A page takes milliseconds, the largest that can be coloured 2 s, with start.
_ALONE_SECONDS: Final = 8
_BATCH_SECONDS: Final = 4
_CHARACTERS_A_SECOND: Final = 50_000  # a quarter of what TeX sets
_LARGEST_TEX: Final = 1 << 20
#: A formula with what formulas have; it is set first and last in a batch, and where TeX is to be shown to work.
_CANARY: Final = (
    r"\mathcolor[RGB]{0,0,15}{x} \mathcolor[RGB]{0,0,30}{\frac{\mathrm{y}}{\mathbf{z}}}"
    r"\mathcolor[RGB]{0,0,45}{\sum_{i}^{n}} \mathcolor[RGB]{0,0,60}{\sqrt{2}} \mathcolor[RGB]{0,0,75}{"
    r"\left( \begin{array}{cc} a & b \\ c & \text{d} \end{array} \right)}"
)


@dataclass(frozen=True, slots=True)
class PageSource:
    """Where a formula has been drawn: page `page` (from 0) of this PDF; or why not."""

    pdf: bytes = b""
    page: int = 0
    failure: Failure = ""


def set_formulas(template: Template, formulas: Sequence[str]) -> list[PageSource]:
    """Set every formula on a page of its own.

    Raises OSError where TeX cannot be started at all, BrokenTexError where it sets not even a formula known to be good.
    """
    found = [PageSource(failure="no page")] * len(formulas)
    failures = 0
    for index, page in _set_each(template, formulas):
        found[index] = page
        if page.failure not in ("", "too large", "refused"):
            failures += 1
            if failures == 1:
                _check_that_it_works(template)
    if failures > 1:
        _check_that_it_works(template)
    return found


def _set_each(template: Template, formulas: Sequence[str]) -> Iterator[tuple[int, PageSource]]:
    together: list[int] = []
    for index, tex in enumerate(formulas):
        if len(tex) > _LARGEST_TEX:
            yield index, PageSource(failure="too large")
        elif is_refused(tex):
            yield index, PageSource(failure="refused")
        elif not is_harmless(tex):
            yield index, _set_alone(template, tex)
        else:
            together.append(index)
    for start in range(0, len(together), LARGEST_BATCH):
        yield from _set_batch(template, formulas, together[start : start + LARGEST_BATCH])


def _set_batch(template: Template, formulas: Sequence[str], batch: list[int]) -> Iterator[tuple[int, PageSource]]:
    """Set a batch; what spoils it alone, the others again."""
    while len(batch) > 1:
        nonce = secrets.token_hex(12)
        texts = [_CANARY, *(formulas[index] for index in batch), _CANARY]
        seconds = _BATCH_SECONDS + sum(map(len, texts)) // _CHARACTERS_A_SECOND
        run = _run_tex(template, batch_document(template, texts, nonce=nonce), seconds=seconds)
        reports = page_reports(run.log, nonce)[1:]
        spoilt = {position for position, report in enumerate(reports[: len(batch)]) if not report.is_clean}
        spoilt |= {len(reports)} if len(reports) < len(batch) else set()
        if run.failure or not reports or not (spoilt or _is_sound(run, reports, len(batch))):
            # Something is wrong, and nothing says with which formula.
            _check_that_it_works(template)
            yield from _set_batch(template, formulas, batch[: len(batch) // 2])
            yield from _set_batch(template, formulas, batch[len(batch) // 2 :])
            return
        if not spoilt:
            for position, index in enumerate(batch):
                ran_on = reports[position].ran_on
                yield index, PageSource(failure="no page") if ran_on else PageSource(run.pdf, position + 1)
            return
        for position in sorted(spoilt):
            yield batch[position], _set_alone(template, formulas[batch[position]])
        batch = [index for position, index in enumerate(batch) if position not in spoilt]
    for index in batch:
        yield index, _set_alone(template, formulas[index])


def _is_sound(run: _Run, reports: Sequence[PageReport], formulas: int) -> bool:
    """Whether the log tells of every page of the PDF, and the last page looks like the first."""
    if len(reports) != formulas + 1 or not reports[-1].is_clean or run.pages != formulas + 2:
        return False
    with PageReader(run.pdf) as reader:
        first, last = reader.ink(0), reader.ink(run.pages - 1)
    return bool(first.colours) and (first.size, first.colours) == (last.size, last.colours)


def _set_alone(template: Template, tex: str) -> PageSource:
    run = _run_tex(template, single_document(template, tex), seconds=_ALONE_SECONDS)
    if run.pages == 1 and not run.failure:
        return PageSource(run.pdf)
    return PageSource(failure=run.failure or ("several pages" if run.pages else "no page"))


def _check_that_it_works(template: Template) -> None:
    """No failure is believed of a TeX that does not set a known formula after it: it may have broken since the last."""
    if _run_tex(template, single_document(template, _CANARY), seconds=_ALONE_SECONDS).pages != 1:
        raise BrokenTexError(template.program)


@dataclass(frozen=True, slots=True)
class _Run:
    pdf: bytes
    pages: int
    log: str
    failure: Failure


def _run_tex(template: Template, document: str, *, seconds: int) -> _Run:
    with tempfile.TemporaryDirectory(prefix="loupe-tex-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "formulas.tex").write_text(document, encoding="utf-8")
        environment = _environment(folder, template.program)
        driven = template.program == "xelatex"
        words = [template.program, "-no-shell-escape", "-interaction=batchmode", *["-no-pdf"] * driven, "formulas.tex"]
        failure: Failure = run_limited(words, folder, seconds=seconds, environment=environment)
        pdf = b"" if driven else read_bounded(folder / "formulas.pdf")
        if driven and not failure and (xdv := read_bounded(folder / "formulas.xdv")):
            pdf, failure = _driven(xdv, seconds=seconds) if is_harmless_xdv(xdv) else (b"", "refused")
        log = read_bounded(folder / "formulas.log").decode(errors="replace")
        return _Run(pdf, page_count(pdf), log, failure)


def _driven(xdv: bytes, *, seconds: int) -> tuple[bytes, Failure]:
    """XeTeX's output as PDF; in a folder of its own, where the formula cannot have left settings or fonts."""
    with tempfile.TemporaryDirectory(prefix="loupe-xdv-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "formulas.xdv").write_bytes(xdv)
        words = ["xdvipdfmx", "-q", "-E", "-o", "formulas.pdf", "formulas.xdv"]
        failure = run_limited(words, folder, seconds=seconds, environment=_environment(folder, "xelatex"))
        return read_bounded(folder / "formulas.pdf"), failure


def _environment(folder: Path, program: str) -> dict[str, str]:
    """Nothing of the user's own: no TeX tree, no settings, no keys. Fonts are never made, files stay in the folder."""
    found = shutil.which(program)
    programs = [str(Path(found).parent)] if found else []
    return {
        "PATH": os.pathsep.join([*programs, "/usr/bin", "/bin"]),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "SOURCE_DATE_EPOCH": "0",
        "openin_any": "p",
        "openout_any": "p",
        "shell_escape": "f",
        "max_print_line": "10000",
        **dict.fromkeys(("MKTEXPK", "MKTEXTFM", "MKTEXMF", "MKTEXTEX", "MKTEXFMT"), "0"),
    }
