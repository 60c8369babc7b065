"""Opening the run that a person names, or saying which one was meant."""

from __future__ import annotations

from pathlib import Path

from loupe.errors import RunError, UnsafeFileError, did_you_mean, word
from loupe.files.default_places import RUNS, DefaultPlace
from loupe.files.folder import Folder
from loupe.runs.folder import RunFolder


def place_of_run(path: Path, root: Path = RUNS) -> Path:
    """Return the place of a run or a folder of runs that is named without their root: `rapidocr/ocrbench`, `rapidocr`.

    A path that exists is that place itself; so is one at which there is no run either way. Raises UnsafeFileError if a
    run is reached only through a link below a default root.
    """
    there = root / path
    if ".." in path.parts or not path.parts or path.exists():
        return path
    if not (there / "run.json").exists() and not any(there.glob("*/run.json")):
        return path
    if isinstance(root, DefaultPlace):
        try:
            Folder(there).refuse_if_linked()
        except UnsafeFileError as error:
            raise UnsafeFileError(
                error.message, hint=f"remove the link, or name the whole path: {word(there)}"
            ) from None
    return there


def open_run(path: Path) -> RunFolder:
    """The run at `path`, which may lack the root of runs.

    Raises RunError where there is none, naming the runs below it or beside it.
    """
    path = place_of_run(path)
    if (path / "run.json").exists():
        return RunFolder.open(path)
    below = sorted(str(file.parent) for file in [*path.glob("*/run.json"), *path.glob("*/*/run.json")])
    if below:
        raise RunError(f"no run at {path}; did you mean {' or '.join(below[:3])}?", hint="list all runs: loupe runs")
    near = did_you_mean(str(path), (str(file.parent) for file in path.parent.parent.glob("*/*/run.json")))
    raise RunError(f"no run at {path}{near}", hint="list your runs: loupe runs")
