"""Results of one test: its verdict, why, and what a report shows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

#: `unsupported` and `error` are in no score (docs/protocols/omni_parse_bench.md#outputs).
Verdict: TypeAlias = Literal["pass", "fail", "unsupported", "error"]
Figures: TypeAlias = Mapping[str, float | int | str]

#: Longest text that is kept to explain a failure.
LONGEST_SHOWN = 300


class GradingError(Exception):
    """Something in the answer at which the official program raises: the verdict of the test is `error`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`why` is a class of reasons: `not_found`, `no_tables` and so on; "" of a test that has passed."""

    verdict: Verdict
    why: str = ""
    figures: Figures = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """True if the test has passed."""
        return self.verdict == "pass"


PASSED = Outcome("pass")
UNSUPPORTED = Outcome("unsupported", "unsupported")


def failed(why: str, **figures: float | int | str) -> Outcome:
    """A test that failed, with what a report shows of it."""
    return Outcome("fail", why, {name: _shortened(value) for name, value in figures.items()})


def _shortened(value: float | int | str) -> float | int | str:
    if not isinstance(value, str):
        return value
    shown = value if len(value) <= LONGEST_SHOWN else value[:LONGEST_SHOWN] + "…"
    # Answers may hold lone surrogates, which no file can.
    return shown.encode("utf-8", "replace").decode()
