"""Pair the files of two folders by name, or by the pages of a METS file.

Rules: docs/protocols/archives.md#loupe and #mets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import unquote

from lxml import etree

from loupe.errors import DatasetError
from loupe.transcripts.xml_source import elements

#: Of two files with one stem in one folder, the ending that comes first here counts.
ENDINGS: Final = (".gt.page.xml", ".page.xml", ".alto.xml", ".xml", ".hocr", ".html", ".gt.txt", ".txt", ".md")
_IMAGE_ENDING: Final = re.compile(r"\.(png|jpe?g|tiff?|webp|bmp|gif|jp2|pdf)$", re.IGNORECASE)
_DIGITS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class PairedNames:
    """Names of reference and prediction that belong together, and those that have no partner.

    `passed_over`: names with the stem of another file, which counts in their place.
    """

    pairs: tuple[tuple[str, str], ...]
    reference_only: tuple[str, ...] = ()
    prediction_only: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()


def stem_of(name: str) -> str:
    """A name without the endings of its format, of compression and of an image; sub-folders stay.

    >>> stem_of("v1/p1.tif.page.xml.gz")
    'v1/p1'
    """
    name = name[:-3] if name.lower().endswith(".gz") else name
    ending = next((ending for ending in ENDINGS if name.lower().endswith(ending)), "")
    return _IMAGE_ENDING.sub("", name[: len(name) - len(ending)])


def pair_names(reference: Sequence[str], prediction: Sequence[str]) -> PairedNames:
    """Pair names by stem, else by the running number at the only place where the names of one side differ.

    Raises DatasetError, with two names of each side, if nothing pairs or the number is ambiguous.
    """
    passed_over: list[str] = []
    sides = [_by_stem(names, passed_over) for names in (reference, prediction)]
    if not sides[0].keys() & sides[1].keys():
        numbered = [_by_number(list(side.values())) for side in sides]
        if not all(numbered) or not numbered[0].keys() & numbered[1].keys():
            examples = " and ".join(", ".join(sorted(names)[:2]) or "nothing" for names in (reference, prediction))
            raise DatasetError(
                f"no file of one side has the name of one of the other: {examples}",
                hint="give both files of a page the same name before the ending",
            )
        sides = numbered
    wanted, found = sides
    return PairedNames(
        tuple((wanted[stem], found[stem]) for stem in sorted(wanted.keys() & found.keys())),
        tuple(sorted(wanted[stem] for stem in wanted.keys() - found.keys())),
        tuple(sorted(found[stem] for stem in found.keys() - wanted.keys())),
        tuple(sorted(set(passed_over))),
    )


def _by_stem(names: Iterable[str], passed_over: list[str]) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (_rank(name), name)):
        if stem_of(name) in chosen:
            passed_over.append(name)
        else:
            chosen[stem_of(name)] = name
    return chosen


def _rank(name: str) -> int:
    lowered = name.lower().removesuffix(".gz")
    return next((rank for rank, ending in enumerate(ENDINGS) if lowered.endswith(ending)), len(ENDINGS))


def _by_number(names: Sequence[str]) -> dict[str, str]:
    """Names by the number at the only place where they differ; empty if there is none, or two names have the same."""
    stems = [stem_of(name) for name in names]
    if len(stems) == 1:
        numbers = [_DIGITS.findall(stems[0])[-1:]]
    else:
        frames = {_DIGITS.sub("0", stem) for stem in stems}
        rows = [_DIGITS.findall(stem) for stem in stems]
        if len(frames) != 1:
            return {}
        differing = [place for place, column in enumerate(zip(*rows, strict=True)) if len(set(column)) > 1]
        if len(differing) != 1:
            return {}
        numbers = [[row[differing[0]]] for row in rows]
    found = {str(int(number[0][:18])): name for number, name in zip(numbers, names, strict=True) if number}
    return found if len(found) == len(names) else {}


@dataclass(frozen=True, slots=True)
class MetsPages:
    """The pages of a METS file: id, file of the ground truth, file of an engine or None; by group of files.

    `refused`: addresses that are not below the folder of the METS file.
    """

    reference_group: str
    engines: Mapping[str, tuple[tuple[str, str, str | None], ...]]
    refused: tuple[str, ...] = field(default=())


def mets_pages(root: etree._Element, *, reference_group: str = "", prediction_group: str = "") -> MetsPages:
    """The pages that a METS file pairs. Nothing is opened or fetched: names of local files come back.

    Raises DatasetError, naming the groups, if the groups are not there or not clear.
    """
    groups, refused = _groups(root)
    if not any(groups.values()):
        raise DatasetError("METS without a usable file group", hint="export the pages as PAGE XML or ALTO")
    for name in (reference_group, prediction_group):
        if name and name not in groups:
            raise DatasetError(
                f"no group {name}; groups: {', '.join(groups)}", hint="name one of them: --gt-group, --ocr-group"
            )
    if not reference_group:
        truths = [name for name, files in groups.items() if name.startswith("OCR-D-GT-") and files]
        if len(truths) != 1:
            count = "two" if len(truths) == 2 else str(len(truths)) if truths else "no"
            raise DatasetError(
                f"{count} ground-truth group{'s' * (len(truths) != 1)}: --gt-group",
                hint=f"name one of {', '.join(groups)}: --gt-group NAME",
            )
        reference_group = truths[0]
    engines = (
        [prediction_group]
        if prediction_group
        else [name for name in groups if name != reference_group and groups[name]]
    )
    pages = _pages(root)
    return MetsPages(
        reference_group,
        {
            engine: tuple(
                (page, truth, _one_of(ids, groups[engine]))
                for page, ids in pages
                if (truth := _one_of(ids, groups[reference_group]))
            )
            for engine in engines
        },
        tuple(refused),
    )


def _groups(root: etree._Element) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Per group the local files of PAGE or ALTO by their id, and the addresses that were refused."""
    groups: dict[str, dict[str, str]] = {}
    refused: list[str] = []
    for group in root.iter("fileGrp"):
        files = groups.setdefault(group.get("USE", ""), {})
        for file in elements(group, "file"):
            if not _may_hold_text(file.get("MIMETYPE", "")):
                continue
            for place in elements(file, "FLocat"):
                address = place.get("{http://www.w3.org/1999/xlink}href", "")
                if (local := _local(address)) is None:
                    refused.append(address)
                else:
                    files.setdefault(file.get("ID", ""), local)
    return groups, refused


def _may_hold_text(kind: str) -> bool:
    return "xml" in kind or "html" in kind or kind == "text/plain"


def _local(address: str) -> str | None:
    """A path below the folder of the METS file, else None."""
    address = address.removeprefix("file:") if not address.startswith("file:/") else address
    path = unquote(address)
    parts = PurePosixPath(path).parts
    outside = not parts or path.startswith("/") or ".." in parts or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path)
    return None if outside or "\\" in path or "\0" in path else path


def _pages(root: etree._Element) -> list[tuple[str, list[str]]]:
    return [
        (page.get("ID", ""), [pointer.get("FILEID", "") for pointer in page.iter("fptr")])
        for structure in root.iter("structMap")
        if structure.get("TYPE") == "PHYSICAL"
        for page in structure.iter("div")
        if page.get("TYPE") == "page"
    ]


def _one_of(ids: Iterable[str], files: Mapping[str, str]) -> str | None:
    return next((files[each] for each in ids if each in files), None)
