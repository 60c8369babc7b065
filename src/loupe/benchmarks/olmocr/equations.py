"""Comparing equations as rendered (protocol, section 8): the place where a renderer is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loupe.errors import MissingToolError


@dataclass(frozen=True, slots=True)
class MathOutcome:
    """Whether the reference is contained in one of the equations: `matched` is its index, None where in none."""

    matched: int | None = None


def render_and_match(reference: str, equations: Sequence[str]) -> MathOutcome:
    """Compare the rendered reference with each equation, in the order given.

    Raises MissingToolError where there is nothing that renders equations.
    """
    raise MissingToolError(
        "math tests of olmOCR-Bench need a renderer of equations, which is not installed",
        hint="without math tests: -o math=skip",
    )
