"""What groups of runs of one benchmark are called in a report, where there are several of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loupe.report.collect import Group
    from loupe.runs.info import RunInfo


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def shown_version(version: str) -> str:
    """A version for people: without what only tells one setting of fields from another.

    >>> shown_version("1+ignore_case+types=491c34")
    '1+ignore_case'
    """
    return "+".join(part for part in version.split("+") if not part.startswith("types="))


def short_names(infos: Sequence[RunInfo]) -> list[str]:
    """What runs of one benchmark are called: answers in `acme_text-good.jsonl` for the benchmark acme_text `good`."""
    names = []
    for info in infos:
        start = re.match(rf"{re.escape(info.benchmark_id)}[-_. ]+(?=\w)", info.engine)
        made_up = start is not None and info.profile.get("kind") == "predictions"
        names.append(info.engine[start.end() :] if start and made_up else info.engine)
    return names if len({*names}) == len(names) else [info.engine for info in infos]


def tell_apart(groups: Sequence[Group]) -> None:
    """Name what differs between groups of the same title: version, options, and where these do not differ, the data."""
    by_title: dict[str, list[Group]] = {}
    for group in groups:
        by_title.setdefault(group.title, []).append(group)
    for same in by_title.values():
        infos = [group.entrants[0].run.info for group in same]
        versions = [shown_version(info.version) for info in infos]
        options = [" ".join(f"{name}={value}" for name, value in sorted(info.options.items())) for info in infos]
        for group, info, version, option in zip(same, infos, versions, options, strict=True):
            parts = [version] if len(set(versions)) > 1 else []
            parts += [option or "default options"] if len(set(options)) > 1 else []
            parts += [_lettered(infos, info)] if (version, option) in _repeated(versions, options) else []
            group.apart = ", ".join(parts) if len(same) > 1 else ""


def _lettered(infos: Sequence[RunInfo], one: RunInfo) -> str:
    """`data B`, `fields B` or both: letters for what only digests tell apart."""
    data = list(dict.fromkeys(info.reference_digest for info in infos))
    said = [f"data {_letter(data.index(one.reference_digest))}"] if len(data) > 1 else []
    if len({info.version for info in infos if info.reference_digest == one.reference_digest}) > 1 or not said:
        versions = list(dict.fromkeys(info.version for info in infos))
        said.append(f"fields {_letter(versions.index(one.version))}")
    return ", ".join(said)


def _letter(place: int) -> str:
    return _LETTERS[place] if place < len(_LETTERS) else str(place + 1)


def _repeated(versions: Sequence[str], options: Sequence[str]) -> set[tuple[str, str]]:
    both = list(zip(versions, options, strict=True))
    return {each for each in both if both.count(each) > 1}
