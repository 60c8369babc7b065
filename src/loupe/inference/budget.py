"""`--max-cost`: no page is begun that the rest of the money may not pay for; what is in flight is read to its end.

A page is expected to cost what the dearest one so far has cost, and so is each one in flight. While others are in
flight, a page that may be too much waits for what they really cost. The first page of all is asked alone.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from loupe.engines.shared.prices import Price, Usage, busy_seconds_of
from loupe.errors import EngineError, EngineUnavailableError
from loupe.types import Prediction

#: Seconds between two looks at whether waiting still makes sense (the person may have stopped the run).
_LOOK = 0.2


class BudgetSpentError(EngineError):
    """Another page may cost more than is left: the benchmark is given up, its answers so far are kept."""


@dataclass(slots=True)
class Budget:
    """The money of one run: `spent` by all attempts so far, those of earlier sessions included."""

    price: Price
    most: float
    spent: float = 0.0
    dearest: float | None = None
    in_flight: int = 0
    is_spent: bool = False
    clock: Callable[[], float] = time.monotonic
    _since: float | None = None
    _is_blind: bool = False
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def after(cls, price: Price, most: float, records: Iterable[Usage]) -> Budget:
        """The budget of a run with these records. Raises EngineUnavailableError where their cost is not known."""
        known = list(records)
        budget = cls(price, most, dearest=None if price.varies else price.page or 0.0)
        for usage in sorted(known, key=lambda each: bool(each.late)):
            budget._count(usage)
        budget.spent += price.of_hours(busy_seconds_of(known))
        return budget

    @property
    def total(self) -> float:
        """The money spent until now, the hours of this session included."""
        return self.spent + (0.0 if self._since is None else self.price.of_hours(self.clock() - self._since))

    def status(self) -> str:
        """The money spent, for the person who watches."""
        return f"{money(self.total)} of {money(self.most)} {self.price.currency}"

    async def admits(self, stopping: Callable[[], bool]) -> bool:
        """Wait until one more page can be paid for, whatever those in flight cost; False when none can."""
        while not (stopping() or self._is_blind):
            if self._since is None:
                self._since = self.clock()
            if self._affords(self.in_flight + 1):
                return True
            if self.in_flight == 0:
                self.is_spent = True
                return False
            self._settled.clear()
            try:
                await asyncio.wait_for(self._settled.wait(), _LOOK)
            except TimeoutError:
                continue
        return False

    def begin(self) -> None:
        """A page is asked for."""
        self.in_flight += 1

    def settle(self, prediction: Prediction) -> None:
        """A page has ended. Raises EngineUnavailableError where nobody can say what it cost."""
        self.in_flight -= 1
        self._settled.set()
        self._count(Usage.of(prediction))

    def refusal(self) -> BudgetSpentError:
        """Return the error that says why no more is asked."""
        spent = f"{money(self.total)} of --max-cost {money(self.most)} {self.price.currency} is spent"
        if self.dearest is None:
            return BudgetSpentError(spent, hint="continue with a higher --max-cost")
        # A little more than it takes: amounts are rounded where they are printed.
        least = max(self.total + self.dearest, self.most) * 1.01
        return BudgetSpentError(
            f"{spent}, and a page has cost up to {money(self.dearest)}: one more needs --max-cost {money(least)}",
            hint="continue with a higher --max-cost",
        )

    def _affords(self, pages: int) -> bool:
        if self.dearest is None:
            return pages == 1 and self.total < self.most
        # A machine by the hour costs something even where a page costs nothing.
        rounded = self.most * (1 + 1e-9)
        return self.total + pages * self.dearest <= rounded and (self.total < self.most or self.price.hour is None)

    def _count(self, usage: Usage) -> None:
        cost = self.price.of(usage)
        if cost is None:
            self._is_blind = True
            used = "many tokens" if self.price.needs_tokens else "many credits"
            raise EngineUnavailableError(
                f"{usage.sample}: the server does not say how {used} it used, so --max-cost cannot be kept",
                hint="leave out --max-cost, or give a price per page: -o 'price={page=0.001}'",
            )
        if usage.late:
            # Nobody tells what was charged for an answer that came too late.
            cost = max(cost, self.dearest or 0.0)
        elif usage.outcome in ("ok", "empty", "truncated", "repeated", "unfinished", "refused"):
            self.dearest = max(cost, self.dearest or 0.0)
        self.spent += cost


def money(amount: float) -> str:
    """An amount with as many decimals as it takes to see it: `12.30`, `0.0042`.

    >>> money(12.3), money(0.0042), money(0)
    ('12.30', '0.0042', '0.00')
    """
    if amount == 0 or abs(amount) >= 1:
        return f"{amount:,.2f}"
    decimals = min(3 - math.floor(math.log10(abs(amount)) + 1), 10)
    whole, _, fraction = f"{amount:.{decimals}f}".partition(".")
    return f"{whole}.{fraction.rstrip('0'):0<2}"
