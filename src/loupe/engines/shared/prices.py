"""Price of an engine: `[price]` of a profile, per million tokens, page, credit, or hour of its machine."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable

import msgspec

from loupe.typed import possible_tokens
from loupe.types import FAILED, Prediction

_MILLION = 1_000_000


class Price(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True, omit_defaults=True):
    """Prices in one currency; those that are set add up. `input` and `output` are for a million tokens.

    `page` is for an answered page, or for as many as the service says that it charges for; `credit` for what it counts.
    """

    input: float | None = None
    output: float | None = None
    page: float | None = None
    credit: float | None = None
    hour: float | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        prices = {key: getattr(self, key) for key in ("input", "output", "page", "credit", "hour")}
        if all(value is None for value in prices.values()):
            raise ValueError("[price] names no price: input and output (per million tokens), page, credit, or hour")
        for key, value in prices.items():
            if value is not None and not (value >= 0 and math.isfinite(value)):
                raise ValueError(f"price.{key} = {value}: must be a number from 0 on")
        if not (self.currency.isalpha() and len(self.currency) <= 8):
            raise ValueError(f"price.currency = {self.currency!r}: must be a short name such as USD")

    @property
    def needs_tokens(self) -> bool:
        """True if the cost of an answer cannot be told without its tokens."""
        return self.input is not None or self.output is not None

    @property
    def varies(self) -> bool:
        """True if one answer may cost more than another."""
        return self.needs_tokens or self.credit is not None

    def of(self, usage: Usage) -> float | None:
        """Return the cost of the requests for one sample, without the hours; None if nobody says what was used."""
        if usage.outcome == "missing":
            return 0.0
        answered = usage.outcome not in FAILED
        unknown = (self.input and usage.input_tokens is None) or (self.output and usage.output_tokens is None)
        charged = usage.charged or {}
        unknown = unknown or (self.credit and "credits" not in charged)
        if (answered and unknown) or (self.needs_tokens and usage.untold):
            return None
        more_input, more_output = usage.discarded_tokens
        tokens = (usage.input_tokens or 0) + more_input, (usage.output_tokens or 0) + more_output
        cost = ((self.input or 0.0) * tokens[0] + (self.output or 0.0) * tokens[1]) / _MILLION
        pages = charged.get("pages", 1.0 if answered else 0.0)
        return cost + pages * (self.page or 0.0) + charged.get("credits", 0.0) * (self.credit or 0.0)

    def of_hours(self, seconds: float) -> float:
        """Return the cost of the machine for so long."""
        return (self.hour or 0.0) * seconds / 3600


class Usage(msgspec.Struct, rename={"outcome": "class"}):
    """The part of a sample's record about its cost and time; read from `predictions.jsonl` without the rest."""

    sample: str = ""
    outcome: str = "ok"
    input_tokens: int | None = None
    output_tokens: int | None = None
    discarded_tokens: tuple[int, int] = (0, 0)
    uncounted: tuple[int, int] | None = None
    seconds: float = 0.0
    began: float | None = None
    ended: float | None = None
    endpoint: str = ""
    charged: dict[str, float] | None = None

    def __post_init__(self) -> None:
        """Forget impossible counts of tokens: an older record holds whatever a server said."""
        self.input_tokens, self.output_tokens = possible_tokens(self.input_tokens), possible_tokens(self.output_tokens)
        sent, written = self.discarded_tokens
        self.discarded_tokens = possible_tokens(sent) or 0, possible_tokens(written) or 0

    @property
    def untold(self) -> int:
        """Calls that were answered, for parts of the page, without a word on their tokens."""
        return self.uncounted[0] if self.uncounted else 0

    @property
    def late(self) -> int:
        """Calls that were given up waiting: nobody tells what was charged for them."""
        return self.uncounted[1] if self.uncounted is not None else int(self.outcome == "timeout")

    @classmethod
    def of(cls, record: Prediction) -> Usage:
        """The same of a record that was read already."""
        return cls(
            sample=record.sample,
            outcome=record.outcome,
            input_tokens=record.input_tokens,
            output_tokens=record.output_tokens,
            discarded_tokens=record.discarded_tokens or (0, 0),
            uncounted=record.uncounted or None,
            seconds=record.seconds,
            began=record.began or None,
            ended=record.ended or None,
            charged=record.charged or None,
        )


def busy_seconds_of(usages: Iterable[Usage]) -> float:
    """For how long at least one request was in flight, of records that say when they began and ended."""
    spans = array("d")
    for each in usages:
        if each.began is not None and each.ended is not None:
            spans.extend((each.began, each.ended))
    return busy_seconds(spans)


def busy_seconds(spans: array[float]) -> float:
    """For how long at least one of the time spans lasted, given as a beginning and an end each.

    >>> busy_seconds(array("d", [0, 2, 1, 3, 10, 11]))
    4.0
    """
    import numpy as np

    if not spans:
        return 0.0
    table = np.asarray(spans).reshape(-1, 2)
    began, ended = table[np.lexsort((table[:, 1], table[:, 0]))].T
    until = np.concatenate([[-math.inf], np.maximum.accumulate(ended)[:-1]])
    # Added one by one: the sum of a million numbers would be another one in another order.
    return float(np.cumsum(np.maximum(0.0, ended - np.maximum(began, until)))[-1])
