"""Running TeX on hostile input: in an empty folder, without shell, with limits, and with many formulas in one run.

A batch is believed only as far as its log confirms every page. A formula that is not confirmed is set alone, what was
set after it in a new batch: nothing that one formula does reaches another. Alone, one is rendered if there is a PDF
of one page, whatever TeX complained about (protocol page cdm.md, section D). One whose command looks for its arguments
beyond the page is not: alone, it would look on to the end of the document and swallow that, too.

Limits are in CPU time, never on the clock, so that a busy machine changes no score.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from loupe.metrics.cdm.pdf_pages import page_count
from loupe.metrics.cdm.tex_documents import (
    PageReport,
    Template,
    batch_document,
    is_lasting,
    is_refused,
    page_reports,
    single_document,
)

Failure = Literal["", "refused", "too large", "no page", "several pages", "too slow", "too much output", "crashed"]

#: Formulas in one run, at most.
LARGEST_BATCH: Final = 300
#: Upstream's limit is 30 s by the clock. A page takes milliseconds, the largest that can be coloured 2 s, with start.
_ALONE_SECONDS: Final = 8
_BATCH_SECONDS: Final = 4
_CHARACTERS_A_SECOND: Final = 50_000  # a quarter of what TeX sets
_MEMORY_KIB: Final = 3 << 20
_OUTPUT_BLOCKS: Final = 64 << 11  # of 512 bytes
_LOG_BYTES: Final = 64 << 20
_LARGEST_TEX: Final = 1 << 20
#: Nobody computes that long within the limits of CPU time; what waits for something is ended.
_WALL_SECONDS: Final = 600
_LIMITED: Final = 'ulimit -c 0; ulimit -t "$1"; ulimit -v "$2" 2>/dev/null; ulimit -f "$3"; shift 3; exec "$@"'


@dataclass(frozen=True, slots=True)
class PageSource:
    """Where a formula has been drawn: page `page` (from 0) of this PDF; or why not."""

    pdf: bytes = b""
    page: int = 0
    failure: Failure = ""


def set_formulas(template: Template, formulas: Sequence[str]) -> list[PageSource]:
    """Set every formula on a page of its own. Raises OSError where TeX cannot be started at all."""
    found = [PageSource(failure="no page")] * len(formulas)
    together: list[int] = []
    for index, tex in enumerate(formulas):
        if len(tex) > _LARGEST_TEX:
            found[index] = PageSource(failure="too large")
        elif is_refused(tex):
            found[index] = PageSource(failure="refused")
        elif is_lasting(tex):
            found[index] = _set_alone(template, tex)
        else:
            together.append(index)
    for start in range(0, len(together), LARGEST_BATCH):
        for index, page in _set_batch(template, formulas, together[start : start + LARGEST_BATCH]):
            found[index] = page
    return found


def _set_batch(template: Template, formulas: Sequence[str], batch: list[int]) -> Iterator[tuple[int, PageSource]]:
    """Set a batch, what spoils it alone, and what may have been spoilt in a batch again."""
    while len(batch) > 1:
        nonce = secrets.token_hex(12)
        run = _run_tex(
            template,
            batch_document(template, [formulas[index] for index in batch], nonce=nonce),
            seconds=_BATCH_SECONDS + sum(len(formulas[index]) for index in batch) // _CHARACTERS_A_SECOND,
        )
        reports = page_reports(run.log, nonce)
        if run.pages != sum(report.pages for report in reports) or not reports:
            # No PDF, as after a fatal error, or another one than the log tells of.
            reports = reports[: _first(reports, lambda report: not report.is_clean)]
            culprit = len(reports)
            if culprit == len(batch):
                yield from _set_batch(template, formulas, batch[: culprit // 2])
                yield from _set_batch(template, formulas, batch[culprit // 2 :])
                return
            yield batch[culprit], _set_alone(template, formulas[batch[culprit]])
            del batch[culprit]
            continue
        # Up to the first formula that leaves something behind, pages are what they are alone.
        sound = _first(reports, lambda report: report.pages != 1 or report.groups != 0)
        for position, report in enumerate(reports[:sound]):
            yield batch[position], PageSource(failure="no page") if report.ran_on else PageSource(run.pdf, position)
        culprits = {position for position, report in enumerate(reports) if not report.is_clean and position >= sound}
        culprits |= {len(reports)} if len(reports) < len(batch) else set()
        for position in sorted(culprits):
            yield batch[position], _set_alone(template, formulas[batch[position]])
        batch = [index for position, index in enumerate(batch) if position >= sound and position not in culprits]
    for index in batch:
        yield index, _set_alone(template, formulas[index])


def _first(reports: Sequence[PageReport], is_it: Callable[[PageReport], bool]) -> int:
    return next((position for position, report in enumerate(reports) if is_it(report)), len(reports))


def _set_alone(template: Template, tex: str) -> PageSource:
    run = _run_tex(template, single_document(template, tex), seconds=_ALONE_SECONDS)
    if run.failure:
        return PageSource(failure=run.failure)
    if run.pages != 1:
        return PageSource(failure="several pages" if run.pages else "no page")
    return PageSource(run.pdf)


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
        words = [template.program, "-no-shell-escape", "-interaction=batchmode", "formulas.tex"]
        limits = [str(seconds), str(_MEMORY_KIB), str(_OUTPUT_BLOCKS)]
        process = subprocess.Popen(
            ["/bin/sh", "-c", _LIMITED, "tex", *limits, *words],
            cwd=folder,
            env=_environment(folder, template.program),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(_WALL_SECONDS)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        finally:
            # Also what it may have started, such as the printer driver of XeTeX.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        pdf = _read(folder / "formulas.pdf")
        return _Run(pdf, page_count(pdf), _read(folder / "formulas.log").decode(errors="replace"), _ended(code))


def _ended(code: int) -> Failure:
    """What the exit code says, if TeX did not end by itself. The shell reports signals as 128 and more."""
    number = -code if code < 0 else code - 128
    if number in (signal.SIGXCPU, signal.SIGKILL):
        return "too slow"
    if number == signal.SIGXFSZ:
        return "too much output"
    return "crashed" if number > 0 else ""


def _read(path: Path) -> bytes:
    """A file that TeX has written, if it is there, is a file, and is of bounded size."""
    if path.is_symlink() or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(_LOG_BYTES)


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
