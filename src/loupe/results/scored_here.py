"""The result of a run as people may see it: marked, and of scores from elsewhere only what these scores give.

Whoever shows, compares or exports a result reads it here, so nothing that came with a pack or a copied folder passes
for a number of this machine. A seal proves which results are our own (loupe.data.seals).
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TypeAlias

import msgspec

from loupe.files.folder import Folder
from loupe.runs.folder import RESULT, RUN, SCORES, SEAL, RunFolder
from loupe.types import Result

#: What stands beside every number of scores that came from elsewhere.
NOT_HERE = "not scored here"
Stamp: TypeAlias = tuple[int, int, int] | None


def result_of(folder: RunFolder) -> Result | None:
    """Return the result of a run, marked if it was not made here; None if there is none.

    Raises RunError for a damaged file.
    """
    return _result_of(folder.files, tuple(_stamp(folder, name) for name in (RUN, RESULT, SCORES, SEAL)))


def marked(text: str, *results: Result | None) -> str:
    """Return a text about results, with the mark if one of them was not made here.

    >>> marked("cer 1.20 %")
    'cer 1.20 %'
    """
    return f"{text} ({NOT_HERE})" if any(result and not result.scored_here for result in results) else text


def _stamp(folder: RunFolder, name: str) -> Stamp:
    """What another file of this name, or another content, does not have: nobody can set the time of a change."""
    try:
        facts = os.lstat(folder.path / name)
    except OSError:
        return None
    return facts.st_ino, facts.st_ctime_ns, facts.st_size


@lru_cache(maxsize=64)
def _result_of(files: Folder, stamps: tuple[Stamp, ...]) -> Result | None:
    folder = RunFolder.open(files)
    stored = folder.stored_result()
    if stored is None:
        return None
    if folder.made_from() is not None:
        return msgspec.structs.replace(stored, scored_here=True)
    from loupe.results.given_by_scores import given_by_scores  # brings in the statistics, which our own need not

    return given_by_scores(folder, stored)
