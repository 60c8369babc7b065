"""`loupe.report`: runs as one HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from loupe.api.runs import Run, path_of
from loupe.errors import UsageError


def report(
    runs: Sequence[Run | str | os.PathLike[str]] | Run | str | os.PathLike[str],
    output: str | os.PathLike[str] = "report.html",
    *,
    embed: bool = False,
    with_published: bool = False,
    measure: str = "",
) -> Path:
    """Write one HTML file with every number, page and answer of some runs, and return its path.

    `runs` are runs, or their folders. It opens from the disk, without a network. `embed` puts whole page images in;
    `with_published` adds what others have published. `measure` ranks the runs, instead of the headline of their
    benchmark. Raises LoupeError.

    >>> import loupe, tempfile
    >>> run = loupe.run("sample_pages", "pdf_text", limit=12, runs=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     loupe.report([run], f"{folder}/report.html").stat().st_size > 100_000
    True
    """
    from loupe.report.html import write_report

    if not isinstance(output, str | os.PathLike):
        raise UsageError(f"output is {type(output).__name__}", hint="write: loupe.report(runs, 'report.html')")
    listed = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    write_report([path_of(one) for one in listed], Path(output), embed=embed, published=with_published, measure=measure)
    return Path(output)
