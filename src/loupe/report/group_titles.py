"""What groups of runs of one benchmark are called in a report, where there are several of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loupe.report.collect import Group


def tell_apart(groups: Sequence[Group]) -> None:
    """Name what differs between groups of the same title: version, options, and where these do not differ, the data."""
    by_title: dict[str, list[Group]] = {}
    for group in groups:
        by_title.setdefault(group.title, []).append(group)
    for same in by_title.values():
        infos = [group.entrants[0].run.info for group in same]
        versions = [info.version for info in infos]
        options = [" ".join(f"{name}={value}" for name, value in sorted(info.options.items())) for info in infos]
        for group, info, version, option in zip(same, infos, versions, options, strict=True):
            parts = [version] if len(set(versions)) > 1 else []
            parts += [option or "default options"] if len(set(options)) > 1 else []
            parts += [f"data {info.reference_digest[:6]}"] if (version, option) in _repeated(versions, options) else []
            group.apart = ", ".join(parts) if len(same) > 1 else ""


def _repeated(versions: Sequence[str], options: Sequence[str]) -> set[tuple[str, str]]:
    both = list(zip(versions, options, strict=True))
    return {each for each in both if both.count(each) > 1}
