"""Read the result of a run as people may see it: marked if its scores came from elsewhere, and checked against them.

Whoever shows, compares or exports a result reads it here, so nothing that came with a pack or a copied folder passes
for a number of this machine. A seal proves which results are our own (loupe.data.seals).
"""

from __future__ import annotations

import os
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from loupe.errors import word
from loupe.files.folder import Folder
from loupe.runs.folder import PREDICTIONS, RESULT, RUN, SCORES, SEAL, RunFolder
from loupe.types import Result

#: The mark beside every number whose scores came from elsewhere.
NOT_HERE = "not scored here"
#: The marks of data that is not proven to be the published set.
_PACK, _UNKNOWN = "data from a pack", "data of unknown origin"
_UNPROVEN = MappingProxyType({"pack": _PACK, "unknown": _UNKNOWN, "named": _UNKNOWN})
#: More runs than people list at once: a result is proven by hashing the answers and scores of its run.
_MOST = 1024
Stamp: TypeAlias = tuple[int, int, int] | None


def result_of(folder: RunFolder, *, whole: bool = True) -> Result | None:
    """Return the result of a run, marked if it was not made here; None if there is none.

    Not `whole`: for a list, without slices and figures of a run from elsewhere. Raises RunError for a damaged file.
    """
    return _result_of(
        folder.files, whole, tuple(_stamp(folder, name) for name in (RUN, PREDICTIONS, RESULT, SCORES, SEAL))
    )


def marked(text: str, *results: Result | None) -> str:
    """Return a text about results, with the marks of all of them.

    >>> marked("cer 1.20 %")
    'cer 1.20 %'
    """
    found = ", ".join(dict.fromkeys(mark for result in results if result and (mark := marks(result))))
    return f"{text} ({found})" if found else text


def marks(result: Result, *, every: bool = False) -> str:
    """Return the mark beside every number of a result whose scores or data came from elsewhere; else "".

    With `every`, also that of data that the user named, of which a warning is enough.
    """
    if not result.scored_here:
        return NOT_HERE
    return _UNPROVEN.get(result.data_origin, "") if every or result.data_origin != "named" else ""


def where_scored(result: Result | None) -> str:
    """Return `here` for scores that were made here, with the mark of their data; else the mark of the scores."""
    if result is None or not result.scored_here:
        return NOT_HERE
    return marked("here", result)


def _stamp(folder: RunFolder, name: str) -> Stamp:
    """Return what differs as soon as a file is replaced or changed, or None if there is no file.

    No program can set the time of a change (ctime).
    """
    try:
        facts = os.lstat(folder.path / name)
    except OSError:
        return None
    return facts.st_ino, facts.st_ctime_ns, facts.st_size


@lru_cache(maxsize=_MOST)
def _result_of(files: Folder, whole: bool, stamps: tuple[Stamp, ...]) -> Result | None:
    folder = RunFolder.open(files)
    if (own := folder.sealed_result()) is not None:
        return msgspec.structs.replace(own[1], scored_here=True)
    stored = folder.stored_result()
    if stored is None:
        return None
    from loupe.results.given_by_scores import given_by_scores  # imports the statistics, which our own results need not

    given = given_by_scores(folder, stored, whole=whole)
    said = f"{NOT_HERE}: the scores came from elsewhere; score the answers here: loupe score {word(folder.path)}"
    return msgspec.structs.replace(given, warnings=[said, *given.warnings], scored_here=False)
