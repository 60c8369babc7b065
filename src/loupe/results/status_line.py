"""Show what a run is doing right now, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loupe.quantities import duration
from loupe.results.sections import format_value

if TYPE_CHECKING:
    from loupe.inference.progress import Progress


def status_line(progress: Progress, *, brief: bool = False) -> str:
    """All counters in one line; what is zero is left out. `brief` leaves out what the bar shows."""
    parts = [] if brief else [f"{progress.resumed + progress.done:,}/{progress.total:,}"]
    parts.append(f"{progress.pages_per_second:.2f} pages/s{_live_rate(progress)}")
    if progress.tokens_per_second:
        parts.append(f"{progress.tokens_per_second:,.0f} tokens/s")
    # While a server is waited for, nobody knows.
    if progress.eta is not None and not brief and not progress.note:
        parts.append(f"{duration(progress.eta)} left")
    limit = f" of at most {progress.limit():,}" if progress.limit else ""
    counts = {
        f"in flight{limit}": progress.in_flight,
        "already done": progress.resumed,
        "retries": progress.retries,
        "failed": progress.failed,
        "refused": progress.outcomes["refused"],
        "truncated": progress.outcomes["truncated"],
        "empty": progress.outcomes["empty"],
        "loops": progress.outcomes["repeated"],
    }
    parts += [f"{count:,} {name}" for name, count in counts.items() if count]
    if progress.headline is not None:
        # Without an interval: of the pages so far, in the order of the set, it would be another one than at the end.
        measure, found = progress.headline
        parts.append(f"{measure.name} {format_value(found.value, measure.unit)} on {found.n:,} so far")
    parts += [tell() for tell in (progress.spent, progress.status) if tell is not None]
    parts.append(progress.note)
    return " · ".join(filter(None, parts))


def _live_rate(progress: Progress) -> str:
    """The rate of the last seconds, where it is not the mean."""
    live = progress.live_rate
    return "" if live is None else f" (now {live:.2f})"
