"""Opening the run that a person names, or saying which one was meant."""

from __future__ import annotations

from pathlib import Path

from loupe.errors import RunError, did_you_mean
from loupe.runs.folder import RunFolder


def open_run(path: Path) -> RunFolder:
    """The run at `path`. Raises RunError where there is none, naming the runs below it or beside it."""
    if (path / "run.json").exists():
        return RunFolder.open(path)
    below = sorted(str(file.parent) for file in [*path.glob("*/run.json"), *path.glob("*/*/run.json")])
    if below:
        raise RunError(f"no run at {path}; did you mean {' or '.join(below[:3])}?", hint="list all runs: loupe runs")
    near = did_you_mean(str(path), (str(file.parent) for file in path.parent.parent.glob("*/*/run.json")))
    raise RunError(f"no run at {path}{near}", hint="loupe runs")
