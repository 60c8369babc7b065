"""What came of one test on one answer, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

#: Figures that explain an outcome: numbers, or texts of bounded length.
Figures: TypeAlias = Mapping[str, float | int | str]

#: The explanation of every test of a page without an answer, where that fails them all.
NO_ANSWER = "missing_file"
#: Longest text that is kept to explain a failure.
LONGEST_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """`explanation` is `pass`, or the class of the official explanation: `absent_found`, `table_none` and so on."""

    passed: bool
    explanation: str = "pass"
    figures: Figures = field(default_factory=dict)


PASSED = Outcome(True)


def failed(explanation: str, **figures: float | int | str) -> Outcome:
    """A test that failed, with what a report shows of it."""
    return Outcome(False, explanation, {name: _shortened(value) for name, value in figures.items()})


def _shortened(value: float | int | str) -> float | int | str:
    if not isinstance(value, str):
        return value
    shown = value if len(value) <= LONGEST_SHOWN else value[:LONGEST_SHOWN] + "…"
    # Answers may hold lone surrogates, which no file can.
    return shown.encode("utf-8", "replace").decode()


def threshold_of(text: str, max_diffs: int) -> float:
    """The similarity that is enough; in floating point exactly as upstream writes it.

    Protocol: docs/protocols/olmocr_bench.md#present-and-absent.
    """
    return 1.0 - (max_diffs / (len(text) if len(text) > 0 else 1))
