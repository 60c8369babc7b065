"""What is said of all pages together: curves over the ladders, traps by kind, and what could not be made here."""

from __future__ import annotations

from collections.abc import Sequence

from loupe.types import Conclusion, SampleScores


def conclude(rows: Sequence[SampleScores]) -> Conclusion:
    """Figures `ladders` and `traps`: docs/synth.md#figures."""
    return Conclusion()
