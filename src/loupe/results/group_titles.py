"""Names of runs and versions where people read them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from loupe.runs.folder import RunFolder


def shown_version(version: str) -> str:
    """A version for people: without what only tells one setting of fields from another.

    >>> shown_version("1+ignore_case+types=491c34")
    '1+ignore_case'
    """
    return "+".join(part for part in version.split("+") if not part.startswith("types="))


def listed(names: Sequence[str]) -> str:
    """Names as a part of a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def run_names(runs: Sequence[RunFolder]) -> list[str]:
    """Return the names of runs of one benchmark: answers in `acme_text-good.jsonl` for the benchmark acme_text `good`.

    Runs of one name are told apart by what differs in their paths: `good (runs)` and `good (before)`.
    """
    infos = [run.info for run in runs]
    names = []
    for info in infos:
        start = re.match(rf"{re.escape(info.benchmark_id)}[-_. ]+(?=\w)", info.engine)
        made_up = start is not None and info.profile.get("kind") == "predictions"
        names.append(info.engine[start.end() :] if start and made_up else info.engine)
    if len({*names}) < len(names):
        names = [info.engine for info in infos]
    paths = {name: [run.path for run, its in zip(runs, names, strict=True) if its == name] for name in names}
    return [
        f"{name} ({_differing_part(run.path, paths[name])})" if len(paths[name]) > 1 else name
        for run, name in zip(runs, names, strict=True)
    ]


def _differing_part(path: Path, paths: Sequence[Path]) -> str:
    """A path without the folders at both ends that all of these share; the whole one where nothing would be left."""
    least = min(len(each.parts) for each in paths)
    start = next((place for place in range(least) if len({each.parts[place] for each in paths}) > 1), least)
    end = next((place for place in range(least) if len({each.parts[-1 - place] for each in paths}) > 1), least)
    kept = path.parts[start : len(path.parts) - end]
    return "/".join(kept) if all(len(each.parts) > start + end for each in paths) else str(path)
