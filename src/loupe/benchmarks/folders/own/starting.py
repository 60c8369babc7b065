"""Write first lines for documents: of a new folder, and of files that no sample shows."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.folders.own.config import CONFIG, SAMPLES, Fields, FolderConfig, Task, label_of, read_config
from loupe.benchmarks.folders.own.folder_files import (
    Document,
    Found,
    first_names,
    linked_names,
    look_through,
    misnamed,
    moving,
    names_below,
    reasons,
)
from loupe.benchmarks.folders.own.rows import file_name, is_skipped, page_source, paths_of, read_rows
from loupe.data.pages import IMAGE_SUFFIXES, frames, has_pages, page_count
from loupe.data.toml import parse_toml
from loupe.errors import LoupeError, PageError, UnsafeFileError, UsageError, word
from loupe.files.file_names import safe_name, same_form
from loupe.files.folder import Folder, is_unfinished, write_all_or_none
from loupe.files.foreign import data_lines, decode_text, is_inside, open_data, read_data, real_path, stored_file
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE, DocumentPage

#: Tasks that ask about a document as a whole, with the pages shown unless told otherwise: where fields stand differs,
#: what a document is shows on its first page.
FIRST_PAGES: Mapping[str, int] = {"fields": 4, "class": 1}
_ENDS = re.compile(r"\A[\s.]+|[\s.]+\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_NAMES = re.compile(r'[%\\:*?"<>|\x00-\x1f\x7f]+')


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """The questions of a folder. `labels` maps the folder of a document to its label, or a label to itself."""

    task: Task
    title: str = ""
    fields: Fields = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    pages: int | None = None


def settings(folder: Path, beginning: Beginning) -> str:
    """The text of `loupe.toml`."""
    # A name of a folder may be no text; of a file no sample is made then.
    title = _SURROGATE.sub("\ufffd", beginning.title or real_path(folder).name)
    lines = ["[benchmark]", f"title = {_toml(title)}", 'version = "1"', f'task = "{beginning.task}"']
    if beginning.task == "table":
        lines.append('headline = "teds"')
    if beginning.task == "class":
        lines.append(f"labels = [{', '.join(_toml(label) for label in dict.fromkeys(beginning.labels.values()))}]")
    if beginning.fields:
        lines += ["", "[fields]", *(f"{_toml_key(name)} = {_toml(kind)}" for name, kind in beginning.fields.items())]
    return "\n".join(lines) + "\n"


def sample_lines(found: Found, beginning: Beginning, taken: Iterable[str] = ()) -> list[dict[str, Any]]:
    """One line per page or document. Sorted documents have their label; all else waits for a draft.

    `taken` are the ids of samples that there are already.
    """
    used: dict[str, None] = dict.fromkeys(same_form(ident).casefold() for ident in taken)
    lines: list[dict[str, Any]] = []
    for document in found.documents:
        for name, pages in _shown(document, beginning):
            label = beginning.labels.get(document.sorted_into, "") if beginning.task == "class" else ""
            line: dict[str, Any] = {"id": _sample_id(name, document, used)}
            line |= {"image": pages[0]} if len(pages) == 1 else {"images": pages}
            if beginning.task not in FIRST_PAGES and document.pages > 1:
                line["group"] = _bare(document.path)
            line["reference"] = label or None
            line |= {} if label else {"truth": {"status": "draft"}}
            lines.append(line)
    return lines


def same_names(found: Found) -> list[tuple[str, str]]:
    """(document, the earlier one) where both have one name but for the kind of file, which tells their ids apart."""
    seen: dict[str, str] = {}
    pairs = [(one.path, seen.setdefault(same_form(_bare(one.path)).casefold(), one.path)) for one in found.documents]
    return [(path, first) for path, first in pairs if path != first]


def cut_documents(found: Found, beginning: Beginning) -> int:
    """Count the documents that have more pages than are shown."""
    most = beginning.pages or FIRST_PAGES.get(beginning.task)
    return sum(document.pages > most for document in found.documents) if most else 0


def _shown(document: Document, beginning: Beginning) -> Iterable[tuple[str, list[str]]]:
    """(name, pages) of each sample of a document."""
    most = beginning.pages or FIRST_PAGES.get(beginning.task) or document.pages
    pages = [
        f"{document.path}#page={number}" if document.is_numbered else document.path
        for number in range(1, min(most, document.pages) + 1)
    ]
    name = _bare(document.path)
    if beginning.task in FIRST_PAGES or document.pages == 1:
        return [(name, pages)]
    return [(f"{name}-p{number}", [page]) for number, page in enumerate(pages, 1)]


def _bare(path: str) -> str:
    """The path without the ending of its kind and without what file systems refuse."""
    parts = _NOT_IN_NAMES.sub("-", path.removesuffix(_ending(path))).split("/")
    cut = [_ENDS.sub("", part.encode()[:150].decode(errors="ignore")) or "document" for part in parts]
    return "/".join(cut)


def _ending(path: str) -> str:
    """The ending that says what kind of file it is, as it is written, "" if there is none."""
    suffix = Path(path).suffix
    return suffix if suffix.lower() in IMAGE_SUFFIXES | {".pdf"} else ""


def _sample_id(name: str, document: Document, used: dict[str, None]) -> str:
    """A name that no sample has yet: with the kind of the file behind it, then numbered."""
    longer = name + _ending(document.path).lower().replace(".", "-")
    tries = [name, longer, *(f"{longer}-{number}" for number in range(2, len(used) + 3))]
    ident = next(each for each in map(same_form, tries) if each.casefold() not in used)
    used[ident.casefold()] = None
    assert ident == safe_name(ident)
    return ident


def refuse_existing(folder: Path, *, begun: bool = False) -> None:
    """Raise UsageError if there are samples already: nothing is overwritten. Settings alone are kept.

    `begun`: a killed process wrote these samples.
    """
    there = [name for name in (CONFIG, SAMPLES) if (folder / name).exists()]
    if SAMPLES in there and not begun:
        raise UsageError(
            f"{folder} has {' and '.join(there)} already; nothing was changed",
            hint=f"to add pages, append the lines that this prints: loupe bench check {word(folder)}",
        )


def settled(folder: Path, found: Found, labels: Sequence[str], pages: int | None) -> Beginning:
    """Read the questions from the loupe.toml of a folder. `labels` (`FOLDER=NAME`) say what the documents of a folder
    are, unless its name is a label itself. Raises DatasetError for settings that are wrong, UsageError for those that
    ask nothing.
    """
    file = folder / CONFIG
    config, problems = read_config(folder)
    if config is None:
        raise problems[0].error()
    lacking = {
        '[benchmark]\ntask = "fields"': "benchmark" not in parse_toml(decode_text(read_data(file))),
        '[fields]\ntotal = "amount"': config.task == "fields" and not config.fields,
        'labels = ["invoice", "letter"]': config.task == "class" and len(config.labels) < 2,
        'prompt = "What is the total?"': config.task == "question" and not config.prompt,
    }
    if missing := next((text for text, is_lacking in lacking.items() if is_lacking), ""):
        raise UsageError(f"{file} does not say what is asked", hint=missing)
    named = labels_of_folders(found, config)
    given = label_map(found, labels) if labels else {}
    if unknown := next((label for label in given.values() if label not in config.labels), ""):
        raise UsageError(f"{unknown!r} is no label of {file}", hint=f"labels: {', '.join(config.labels) or 'none'}")
    return Beginning(task=config.task, fields=config.fields, labels=named | given, pages=pages)


def labels_of_folders(found: Found, config: FolderConfig) -> dict[str, str]:
    """The labels of folders whose name is one."""
    return {name: label for name in found.folders if (label := label_of(name, config.labels)) is not None}


def begin(folder: Path, found: Found, beginning: Beginning) -> int:
    """Write the samples, and the settings unless they are there, all or nothing; how many samples there are."""
    lines = sample_lines(found, beginning)
    contents = {SAMPLES: "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()}
    if not (folder / CONFIG).exists():
        contents |= {CONFIG: settings(folder, beginning).encode()}
    refuse_existing(folder, begun=is_unfinished(Folder(folder), contents))
    write_all_or_none(Folder(folder), contents)
    return len(lines)


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def label_map(found: Found, given: Sequence[str]) -> dict[str, str]:
    """Labels from `NAME` or `FOLDER=NAME`, else those of `positive/` and `negative/`.

    Raises UsageError for a folder that there is not.
    """
    by_folder = dict(each.split("=", 1) for each in given if "=" in each)
    plain = {each: each for each in given if "=" not in each}
    if wrong := next((name for name in by_folder if name not in found.folders), ""):
        raise UsageError(f"no documents in a folder {wrong!r}", hint=f"folders: {', '.join(found.folders) or 'none'}")
    usual = {name: name for name in found.folders} if found.is_sorted and not plain else {}
    return usual | by_folder | plain


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
