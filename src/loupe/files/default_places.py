"""Places that Loupe writes to if the user names none: in the working folder, and never reached through a link.

The working folder may come from a stranger. A link that the user names (`--runs link`) is followed; a default is not.
"""

from __future__ import annotations

from pathlib import PosixPath


class DefaultPlace(PosixPath):
    """A relative path that the user did not name. `Folder` refuses a link in any part of it.

    `option` is what names the same place on purpose, for the hint.
    """

    option = ""


def default_place(name: str, option: str = "") -> DefaultPlace:
    """Return a default place, and for a folder what names it on purpose: `-o NAME`, or the name for an argument."""
    place = DefaultPlace(name)
    place.option = option
    return place


#: The root of runs.
RUNS = default_place("runs", "--runs runs")
