"""Find the documents in a folder of one's own, and what is left out, with the reason.

Left out without a word are only hidden files, what systems and Loupe itself put there, and runs.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from loupe.benchmarks.folders.own.config import CONFIG, SAMPLES
from loupe.benchmarks.folders.own.facts import FACTS
from loupe.data.foreign_kinds import NOT_AN_IMAGE, SYSTEM_FILES, UNKNOWN, why_not_a_page
from loupe.data.pages import IMAGE_SUFFIXES, frames, has_pages, page_count
from loupe.errors import DatasetError, PageError, word
from loupe.files.file_names import same_form
from loupe.files.foreign import is_inside

#: Folders that sort documents by what they are.
SORTED = ("positive", "negative")
#: A folder with this file is a run.
_RUN = "run.json"
_NAMED, _LINES = 3, 20


@dataclass(frozen=True, slots=True)
class Document:
    """An image or a PDF file below the folder; `path` is as samples write it."""

    path: str
    pages: int = 1

    @property
    def is_numbered(self) -> bool:
        """True if samples write the numbers of its pages."""
        return self.path.lower().endswith(".pdf") or self.pages > 1

    @property
    def sorted_into(self) -> str:
        """The folder right below the top that it lies in, "" at the top."""
        return self.path.partition("/")[0] if "/" in self.path else ""


@dataclass(frozen=True, slots=True)
class Found:
    """The content of a folder: documents in the order of their paths, files left out, with why, and further remarks."""

    documents: tuple[Document, ...]
    left_out: Mapping[str, str]
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def folders(self) -> list[str]:
        """Folders right below the top that hold documents."""
        return list(dict.fromkeys(one.sorted_into for one in self.documents if one.sorted_into))

    @property
    def is_sorted(self) -> bool:
        """True if somebody has sorted the documents into `positive/` and `negative/`."""
        return set(self.folders) == set(SORTED)


def find_documents(folder: Path) -> Found:
    """Every image and PDF below the folder whose header can be read. Raises DatasetError if there is none."""
    found = look_through(folder)
    if not found.documents:
        left = [f"left out {line}" for line in reasons(found.left_out)]
        raise DatasetError(
            f"{folder}: no page can be read here" if left else f"{folder}: no images or PDF files here",
            listed=left,
            hint=f"put images or PDF files into it, then: loupe init {word(folder)}",
        )
    return found


def look_through(folder: Path, but: Collection[str] = ()) -> Found:
    """Look at every file below the folder, but for those of these names. A file with several names is one document."""
    documents: list[Document] = []
    left_out: dict[str, str] = {}
    remarks: dict[str, str] = {}
    names = sorted(names_below(folder, left_out), key=lambda name: Path(name).parts)
    linked = linked_names(folder, names, but)
    for name in names:
        path = folder / name
        if same_form(name) in but or not path.is_file():
            continue
        try:
            if name in linked:
                raise PageError(f"a link: it is the same file as {linked[name]}")
            documents.append(_document(folder, path, name, remarks))
        except PageError as error:
            reason = error.message.removeprefix(f"{path}").lstrip(": ").removeprefix("is ")
            left_out[name] = f"{reason}: {error.hint}" if error.hint else reason
    return Found(tuple(documents), left_out, remarks)


def names_below(folder: Path, left_out: dict[str, str]) -> Iterator[str]:
    """Names of files as samples write them, without what nobody put there as a document."""

    def closed(error: OSError) -> None:
        left_out[f"{Path(str(error.filename)).relative_to(folder).as_posix()}/"] = "this folder may not be read"

    for place, folders, files in os.walk(folder, onerror=closed):
        inside = Path(place).relative_to(folder)
        if _RUN in files and inside.parts:
            folders.clear()
            continue
        for name in folders:
            if (Path(place) / name).is_symlink():
                left_out[f"{(inside / name).as_posix()}/"] = "a link to a folder is not followed"
        folders[:] = [name for name in folders if not name.startswith((".", "__MACOSX"))]
        own = {CONFIG, SAMPLES, FACTS} if not inside.parts else set()
        for name in files:
            if not name.startswith(".") and name.lower() not in SYSTEM_FILES and name not in own:
                yield (inside / name).as_posix()


def linked_names(folder: Path, names: Iterable[str], but: Collection[str] = ()) -> dict[str, str]:
    """Return the names that are links, also hard ones, to a file of another name, with that name.

    It is one in `but`, if there is one, else the first that is no symbolic link.
    """

    def rank(name: str) -> tuple[bool, bool, tuple[str, ...]]:
        return same_form(name) not in but, (folder / name).is_symlink(), Path(name).parts

    first: dict[tuple[int, int], str] = {}
    linked: dict[str, str] = {}
    for name in sorted(names, key=rank):
        with suppress(OSError):
            found = (folder / name).stat()
            linked[name] = first.setdefault((found.st_dev, found.st_ino), name)
    return {name: other for name, other in linked.items() if name != other and same_form(name) not in but}


def _document(folder: Path, path: Path, name: str, remarks: dict[str, str]) -> Document:
    if "\\" in name or "#page=" in name or any(ord(char) < 32 or 0xD800 <= ord(char) < 0xE000 for char in name):
        raise PageError("its name cannot be written into samples.jsonl; rename it")
    if not is_inside(path, folder):
        raise PageError("it is a link that leaves the folder")
    reason = "" if path.suffix.lower() in IMAGE_SUFFIXES | {".pdf"} else why_not_a_page(path)
    if reason not in ("", UNKNOWN):
        raise PageError(reason)
    try:
        pages = page_count(path)
        kind, pictures = ("PDF", 1) if path.suffix.lower() == ".pdf" else frames(path)
    except PageError as error:
        # A file of any other name may be an image all the same.
        raise PageError(reason) if reason and error.message.endswith(NOT_AN_IMAGE) else error from None
    if not pages:
        raise PageError("it has no pages")
    if pictures > 1:
        remarks[name] = moving(kind, pictures)
    if pages > 1 and not has_pages(path):
        remarks[name] = misnamed(path, pages)
        pages = 1
    return Document(name, pages)


def reasons(left_out: Mapping[str, str], most: int = _LINES) -> list[str]:
    """Return what was left out in lines: files of one kind with one reason in one of them."""
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, why in left_out.items():
        alike[Path(name).suffix.lower(), why].append(name)
    lines = []
    for (suffix, why), names in alike.items():
        kind = f"{suffix.lstrip('.').upper()} files" if suffix else "files"
        lines.append(
            f"{names[0]}: {why}" if len(names) == 1 else f"{len(names):,} {kind} ({first_names(names)}): {why}"
        )
    rest = sum(map(len, list(alike.values())[most:]))
    return [*lines[:most], *([f"{rest:,} more files, each for a reason of its own"] if rest else [])]


def first_names(names: list[str]) -> str:
    """The first names of a list, for a line."""
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def misnamed(file: Path, pages: int) -> str:
    """Return the message about a TIFF file of several pages whose name is that of another kind."""
    return f"is a TIFF file of {pages:,} pages, of which only the first is read: rename it to {file.stem}.tif"


def moving(kind: str, pictures: int) -> str:
    """Return the message about a file whose pictures are frames."""
    return f"moves ({kind}): only the first of its {pictures:,} pictures is read"
