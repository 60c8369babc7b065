"""What lies in a folder of one's own and no sample shows: files, with the lines to add, and pages of documents."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from loupe.benchmarks.folders.own.config import SAMPLES, FolderConfig, read_config
from loupe.benchmarks.folders.own.folder_files import (
    first_names,
    linked_names,
    look_through,
    misnamed,
    moving,
    names_below,
    reasons,
)
from loupe.benchmarks.folders.own.rows import file_name, page_source, paths_of, read_rows
from loupe.benchmarks.folders.own.starting import Beginning, labels_of_folders, sample_lines
from loupe.benchmarks.folders.own.truth import is_skipped
from loupe.data.pages import IMAGE_SUFFIXES, frames, has_pages, page_count
from loupe.errors import LoupeError, PageError, UnsafeFileError, word
from loupe.files.file_names import same_form
from loupe.files.foreign import data_lines, is_inside, open_data, stored_file
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE, DocumentPage

#: Files that a run looks into before it begins.
_LOOKED_AT = 1_000
#: Lines to add that are shown.
_LINES_SHOWN = 20


def not_in_samples(folder: Path) -> list[str]:
    """Return lines about what lies in the folder and no sample shows: files, with why, and pages of documents.

    Files that may be asked about come with the very lines to add. The last line counts skipped samples.
    """
    config = read_config(folder)[0] or FolderConfig()
    ids: list[str] = []
    named: set[str] = set()
    paths: list[str] = []
    skipped = 0
    has_samples = (folder / SAMPLES).is_file()
    for row in read_rows(folder / SAMPLES, config) if has_samples else ():
        here = paths_of(row.values) or ()
        ids.append(row.ident)
        named.update(same_form(file_name(path)) for path in here)
        paths += () if row.wrong else here
        skipped += is_skipped(row.values)
    found = look_through(folder, named)
    lines = [_in_no_line([one.path for one in found.documents])] if found.documents else []
    if lines and has_samples:
        beginning = Beginning(task=config.task, labels=labels_of_folders(found, config))
        add = [json.dumps(line, ensure_ascii=False) for line in sample_lines(found, beginning, ids)]
        more = [f"… and {len(add) - _LINES_SHOWN:,} more"] if len(add) > _LINES_SHOWN else []
        lines = [f"{lines[0]}; add {'this line' if len(add) == 1 else 'these lines'}:", *add[:_LINES_SHOWN], *more]
    left_out = [f"left out {line}" for line in reasons(found.left_out)]
    samples = "1 sample is skipped, and its" if skipped == 1 else f"{skipped:,} samples are skipped, and their"
    unopened = [f"{samples} pages are not opened"] if skipped else []
    return [*lines, *left_out, *reasons(_unread(folder, paths)), *unopened]


def _in_no_line(names: list[str]) -> str:
    files = "1 file is" if len(names) == 1 else f"{len(names):,} files are"
    return f"{files} in no line of {SAMPLES}: {first_names(names)}"


def unlisted_files(folder: Path) -> list[str]:
    """Return a line about images and PDF files, by their names, that no sample shows: for runs, so it opens none."""
    named: set[str] = set()
    with suppress(OSError, LoupeError):
        for _, line in data_lines(folder / SAMPLES):
            with suppress(*UNDECODABLE):
                found = json_decoder(_Named).decode(line)
                named |= {same_form(file_name(path)) for path in (found.image, *found.images) if path}
    kinds = IMAGE_SUFFIXES | {".pdf"}
    there = [name for name in names_below(folder, {}) if Path(name).suffix.lower() in kinds] if named else []
    linked = linked_names(folder, there, named)
    names = sorted(name for name in there if same_form(name) not in named and name not in linked)
    return [f"{_in_no_line(names)}; to see what to add: loupe bench check {word(folder)}"] if names else []


class _Named(msgspec.Struct):
    """The files that a line names."""

    image: str = ""
    images: tuple[str, ...] = ()


def unread_pages(folder: Path) -> list[str]:
    """Return lines about pages that nobody has chosen not to read: a document named without a page, moving pictures."""
    plain = (path for path in _paths(folder) if "#page=" not in path)
    return reasons(_unread(folder, islice(filter(_may_hold_more, plain), _LOOKED_AT)))


def _paths(folder: Path) -> list[str]:
    config = read_config(folder)[0] or FolderConfig()
    rows = read_rows(folder / SAMPLES, config) if (folder / SAMPLES).is_file() else ()
    return [path for row in rows if not row.wrong for path in paths_of(row.values) or ()]


def _unread(folder: Path, paths: Iterable[str]) -> dict[str, str]:
    """Say which pages of these files are not read. Files that cannot be opened are left to those who read them."""
    named: dict[str, set[int]] = defaultdict(set)
    for path in paths:
        source = page_source(Path(), path)
        named[file_name(path)].add(source.page if isinstance(source, DocumentPage) else 1)
    found: dict[str, str] = {}
    for name, pages in named.items():
        file = stored_file(folder, name)
        if not is_inside(file, folder) or not (_may_hold_more(name) or _is_tiff(file)):
            continue
        with suppress(PageError):
            count = page_count(file)
            if count > 1 and not has_pages(name):
                found[name] = misnamed(file, count)
            elif count > len(pages):
                found[name] = f"{len(pages):,} of its {count:,} pages {'is' if len(pages) == 1 else 'are'} in {SAMPLES}"
            elif not has_pages(name) and (pictures := frames(file))[1] > 1:
                found[name] = moving(*pictures)
    return found


def _is_tiff(file: Path) -> bool:
    with suppress(OSError, UnsafeFileError), open_data(file) as opened:
        return opened.read(4) in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
    return False


def _may_hold_more(name: str) -> bool:
    return has_pages(name) or name.lower().endswith((".gif", ".webp", ".png", ".apng", ".avif"))
