"""Results on truth that nobody has verified: what has to stand beside their numbers.

An engine that drafted the truth is compared with itself, so its numbers look perfect; those of the others say how far
they agree with it. Neither says which of them is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from loupe.benchmarks.folders.own.config import CONFIG
from loupe.benchmarks.folders.own.folder_benchmark import ACCEPTED, DRAFTERS, TRUTH_TAG
from loupe.benchmarks.folders.own.survey import review_command
from loupe.errors import LoupeError, word
from loupe.results.group_titles import listed
from loupe.runs.info import RunInfo
from loupe.types import Result

OWN = "drafted the ground truth"


def review_of(run: RunInfo) -> str:
    """The command that verifies the truth of a run, as it is typed in this folder."""
    path = Path(run.benchmark)
    if not (path.is_absolute() and (path / CONFIG).is_file()):
        return "loupe review"
    try:
        return review_command(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    except (LoupeError, OSError):
        return f"loupe review {word(path)}"


def unverified(result: Result) -> int:
    """Count the samples that were compared with drafts that nobody has checked."""
    count = _part(result, "samples").get("unverified", 0)
    return count if isinstance(count, int) else 0


def drafted_truth(result: Result) -> bool:
    """True if the engine drafted truth that it is compared with."""
    return bool(unverified(result) and _part(result, DRAFTERS).get(result.engine))


def truth_cell(result: Result) -> str:
    """The truth of one run, for a column of a table."""
    count = unverified(result)
    if not count:
        return "verified"
    return OWN if drafted_truth(result) else f"{count:,} of {result.total:,} unverified"


def unverified_warning(results: Iterable[Result]) -> str:
    """Return the warning above a table of these results; "" if all their truth is verified."""
    found = [result for result in results if unverified(result)]
    if not found:
        return ""
    most = max(found, key=unverified)
    own = list(dict.fromkeys(result.engine for result in found if drafted_truth(result)))
    said = f"Unverified truth: {unverified(most):,} of {most.total:,} samples are scored against unreviewed drafts"
    if not own:
        return f"{said}, so these numbers do not rank engines."
    verb = "has" if len(own) == 1 else "have"
    return f"{said}. {listed(own)} {verb} drafted that truth and {verb} been compared with it, which proves nothing."


def accepted_drafts(results: Iterable[Result]) -> str:
    """That verified truth is the draft of engines to the letter; "" where no reference is."""
    found: dict[str, tuple[int, int]] = {}
    # The run over most samples tells, in whatever order they stand: one with `--limit` has seen few references.
    for result in sorted(results, key=lambda result: result.total):
        found |= {name: (count, result.total) for name, count in _part(result, ACCEPTED).items()}
    if not found:
        return ""
    most = sorted(found.items(), key=lambda item: -item[1][0])
    said = [
        f"{count:,} of {total:,} references {'matches' if count == 1 else 'match'} the draft of {name} word for word"
        for name, (count, total) in most
    ]
    return f"{listed(said)}: that favours {'it' if len(said) == 1 else 'them'}."


def _part(result: Result, name: str) -> Mapping[str, Any]:
    figures = result.figures.get(TRUTH_TAG)
    part = figures.get(name) if isinstance(figures, Mapping) else None
    return part if isinstance(part, Mapping) else {}
