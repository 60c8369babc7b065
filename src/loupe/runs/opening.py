"""Opening the run that a person names, or saying which one was meant."""

from __future__ import annotations

from pathlib import Path

from loupe.errors import RunError, did_you_mean
from loupe.files.default_places import RUNS
from loupe.runs.folder import RunFolder


def place_of_run(path: Path, root: Path = RUNS) -> Path:
    """Return the place of a run or a folder of runs that is named without their root: `rapidocr/ocrbench`, `rapidocr`.

    A path that exists is that place itself; so is one at which there is no run either way.
    """
    there = root / path
    if ".." in path.parts or not path.parts or path.exists():
        return path
    return there if (there / "run.json").exists() or any(there.glob("*/run.json")) else path


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
    raise RunError(f"no run at {path}{near}", hint="loupe runs")
