"""Decide which runs may be compared, and what else differs between them."""

from __future__ import annotations

from loupe.errors import UsageError
from loupe.runs.folder import RunFolder


def refuse_strangers(folders: list[RunFolder]) -> None:
    """Raise UsageError, naming the parts, unless all runs are of one benchmark, version and data."""
    first = folders[0]
    for other in folders[1:]:
        pairs = {
            "benchmark": (first.info.benchmark_id, other.info.benchmark_id),
            "version": (first.info.version, other.info.version),
            "data": (first.info.reference_digest[:12], other.info.reference_digest[:12]),
        }
        wrong = [f"{part} ({mine} | {theirs})" for part, (mine, theirs) in pairs.items() if mine != theirs]
        if wrong:
            same = first.info.benchmark_id == other.info.benchmark_id and first.info.version != other.info.version
            versions = "a version has rules of its own, so the same answers score differently: " if same else ""
            raise UsageError(
                f"{first.path} and {other.path} cannot be compared; they differ in {', '.join(wrong)}",
                hint=f"{versions}compare runs of one benchmark, version and data: loupe runs",
            )


def differing_parts(folders: list[RunFolder]) -> dict[str, list[str]]:
    """Every part of the signatures that is not the same in all runs, but for the engine's name; and other images."""
    parts = [dict(field.partition(":")[::2] for field in folder.info.signature.split("|")) for folder in folders]
    names = dict.fromkeys(name for part in parts for name in part)
    values = {name: [part.get(name, "none") for part in parts] for name in names if name != "engine"}
    pages = [_pages(folder) for folder in folders]
    if len(set(pages) - {""}) > 1:
        values["pages"] = [each or "unknown" for each in pages]
    return {name: found for name, found in values.items() if len(set(found)) > 1}


def _pages(folder: RunFolder) -> str:
    """The digest of data and images of a run that has read them; "" for answers that came from elsewhere."""
    return "" if folder.info.profile.get("kind") == "predictions" else folder.info.data_digest[:8]
