"""How long a model is waited for, and when it is given up. Source: docs/select.md."""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds that may be chosen for one call, and what is taken where nobody chooses.
TIMEOUTS, USUAL_TIMEOUT = (10, 30, 60), 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds for one call, for the warm-up, and until a dead endpoint is looked at again; counts of failures."""

    timeout: float = float(USUAL_TIMEOUT)
    warm_up: float = 600.0
    second_look: float = 5.0
    most_timeouts: int = 50
    errors_before_check: int = 3
