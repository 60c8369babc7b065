"""`loupe report`: runs as one self-contained HTML file that opens from file:// without a network (docs/report.md).

The file carries a Content-Security-Policy that admits its own style and script by hash and nothing else. Samples are
streamed through worker processes to disk; only what the grid shows of each one stays in memory.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from loupe.benchmarks.published import published_rows
from loupe.errors import UsageError, cannot_write, is_refusal
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.report.collect import SampledGroup, collect, image_bytes, sample_jobs
from loupe.report.page import PAYLOADS, page
from loupe.report.samples import compressed, pack_all
from loupe.results.changed_references import CHANGED, is_other_truth

#: Reports whose page images weigh no more than this in all carry them, so that a small report can be sent to somebody.
CARRIED_IMAGES = 4_000_000
#: Widest first; the shape of the cards follows the middle one of the pages' ratios of width to height.
_SHAPES = ((2.5, "strip"), (1.15, "landscape"), (0.87, "square"), (0.0, "portrait"))


def write_report(
    runs: Sequence[Path],
    output: Path,
    *,
    embed: bool = False,
    carry: int = CARRIED_IMAGES,
    published: bool = False,
    measure: str = "",
) -> None:
    """Write the report of these runs to `output`, whole or not at all. `embed` puts the full page images in;
    without it they are linked, unless all of them together weigh at most `carry` bytes. `published` adds to each
    leaderboard what others have published on the benchmark. `measure` ranks the runs of each benchmark that has it.

    Raises RunError for a path without a run, UsageError for an output that cannot be one, WriteError for a full disk.
    """
    if not runs:
        raise UsageError("no run given", hint="run: loupe report runs/ENGINE/BENCHMARK -o report.html")
    groups = collect(runs, measure)
    for group in groups:
        info = group.entrants[0].run.info
        group.published = published_rows(info.benchmark_id, info.version) if published else []
        if group.benchmark is not None and group.results and is_other_truth(group.benchmark, info):
            group.changed = CHANGED
    write_groups(groups, output, embed=embed, carry=carry)


def write_groups(
    groups: Sequence[SampledGroup], output: Path, *, embed: bool = False, carry: int = CARRIED_IMAGES
) -> None:
    """The same for runs that were grouped already."""
    embed = embed or sum(image_bytes(group, carry) for group in groups) <= carry
    folder = real_path(output.absolute().parent)
    try:
        Folder(folder).check(output.name)
        with Folder(folder).draft(output.name) as draft, tempfile.TemporaryFile(dir=folder) as samples:
            shapes = _pack(groups, samples, folder=folder, embed=embed)
            before, after = page(groups, shapes, embedded=embed).split(PAYLOADS)
            draft.file.write(before.encode())
            samples.seek(0)
            shutil.copyfileobj(samples, draft.file)
            draft.file.write(after.encode())
            draft.replace()
    except OSError as error:
        if is_refusal(error):
            raise cannot_write(output, error) from None
        if error.errno == errno.ENAMETOOLONG:
            raise
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from None


def _pack(groups: Sequence[SampledGroup], file: IO[bytes], *, folder: Path, embed: bool) -> list[str]:
    """Write all samples to `file` as UTF-8; returns the shape of each group's cards."""
    number = 0
    shapes: list[str] = []
    for group in groups:
        ratios = []
        total = max(len(entrant.predictions) for entrant in group.entrants)
        for packed in pack_all(sample_jobs(group, folder=folder, embed=embed), total=total):
            file.write(f'<script type="text/plain" id="t{number}">{packed.thumbnail.data}</script>\n'.encode())
            file.write(f'<script type="text/plain" id="d{number}">{packed.payload}</script>\n'.encode())
            group.has_layouts = group.has_layouts or packed.has_layout
            ratios += [packed.thumbnail.ratio] if packed.thumbnail.ratio else []
            number += 1
        for key, payload in group.formulas.blocks():
            file.write(f'<script type="text/plain" id="f{key}">{payload}</script>\n'.encode())
        if group.formulas.runs:
            summary = compressed(group.formulas.summary())
            file.write(f'<script type="text/plain" id="formulas-{len(shapes)}">{summary}</script>\n'.encode())
        if group.facts.rows:
            tests = compressed(group.facts.packed())
            file.write(f'<script type="text/plain" id="facts-{len(shapes)}">{tests}</script>\n'.encode())
        middle = sorted(ratios)[len(ratios) // 2] if ratios else 0.8
        shapes.append(next(name for ratio, name in _SHAPES if middle >= ratio))
    return shapes
