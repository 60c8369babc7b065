"""What a run took beside its quality: time, tokens and money, from what `predictions.jsonl` says of every attempt."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from loupe.engines.shared.prices import Price, Usage, busy_seconds_of
from loupe.errors import RunError
from loupe.files.records import read_lines
from loupe.runs.folder import PREDICTIONS, Place, RunFolder
from loupe.typed import convert, json_decoder
from loupe.types import FAILED, UNDECODABLE

#: Percentiles of the seconds that single pages took.
PERCENTILES = (50, 95, 99)
#: Records end in the order of the file, but for the seconds that storing them may take.
_SLACK = 60.0


class Speed(NamedTuple):
    """Figures by name, the currency of the costs among them, and what a reader must know."""

    figures: dict[str, float]
    currency: str = ""
    warnings: tuple[str, ...] = ()


def speed_of(folder: RunFolder, places: Mapping[str, Place]) -> Speed:
    """The figures of a run whose counting records stand at `places`.

    Latency (of pages, not of their parts) and tokens are those of the answers that count. Pages per second go over the
    time in which at least one request was in flight, in all sessions; cost over all attempts, those that were tried
    again included.
    """
    records = list(usages(folder))
    counted = [
        Usage.of(record)
        for record in folder.read_predictions(place for place in places.values() if place.mark not in FAILED)
    ]
    figures = latency_figures([page_seconds(usage.seconds, usage.began, usage.ended) for usage in counted])
    figures |= _tokens(counted) | _throughput(records)
    price = price_of(folder)
    if price is None:
        return Speed(figures)
    return _with_cost(figures, price, records, len(counted))


def latency_figures(seconds: Sequence[float]) -> dict[str, float]:
    """Mean and percentiles of the seconds that answered pages took."""
    if not seconds:
        return {"seconds_per_page": 0.0}
    found = np.percentile(seconds, PERCENTILES)
    figures = {f"latency_p{each}": float(value) for each, value in zip(PERCENTILES, found, strict=True)}
    return {"seconds_per_page": sum(seconds) / len(seconds)} | figures


def page_seconds(seconds: float, began: float | None, ended: float | None) -> float:
    """From taking a page to its answer; what the engine itself took, where the record does not say when."""
    return seconds if began is None or ended is None or ended < began else ended - began


def usages(folder: RunFolder) -> Iterator[Usage]:
    """What every record of a run says of its cost and time, also those that another one has replaced."""
    for number, _, line in read_lines(folder.files, PREDICTIONS):
        try:
            yield json_decoder(Usage).decode(line)
        except UNDECODABLE as error:
            raise RunError(f"{folder.predictions_file}:{number}: not a record of this run: {error}") from None


def price_of(folder: RunFolder) -> Price | None:
    """The prices in the profile that the run was last continued with."""
    stored = folder.info.profile.get("price")
    return convert(stored, Price) if stored else None


def _tokens(counted: list[Usage]) -> dict[str, float]:
    """Tokens per page, over the pages on which the engine counted them."""
    known = {
        "input_tokens_per_page": [each.input_tokens for each in counted if each.input_tokens is not None],
        "output_tokens_per_page": [each.output_tokens for each in counted if each.output_tokens is not None],
    }
    return {name: sum(counts) / len(counts) for name, counts in known.items() if sum(counts)}


def _throughput(records: list[Usage]) -> dict[str, float]:
    """Pages and tokens per second; nothing for runs of before, whose records do not say when they ended."""
    answered = [usage for usage in records if usage.outcome not in FAILED]
    busy = 0.0 if _clock_went_back(records) else busy_seconds_of(records)
    if not answered or busy <= 0 or any(usage.ended is None for usage in answered):
        return {}
    tokens = sum(usage.output_tokens or 0 for usage in answered)
    return {"pages_per_second": len(answered) / busy} | ({"output_tokens_per_second": tokens / busy} if tokens else {})


def _clock_went_back(records: list[Usage]) -> bool:
    """Whether the clock was set back between records or sessions: how long all of them took is then unknown."""
    ended = [usage.ended for usage in records if usage.ended is not None]
    return any(later < before - _SLACK for before, later in itertools.pairwise(ended))


def _with_cost(figures: dict[str, float], price: Price, records: list[Usage], pages: int) -> Speed:
    costs = [price.of(usage) for usage in records]
    unknown = sum(cost is None for cost in costs)
    why = ""
    if unknown:
        why = f"tokens of {unknown:,} answers are not known"
    elif price.hour is not None and any(usage.ended is None for usage in records if usage.outcome not in FAILED):
        why = "records of this run do not say when"
    elif price.hour is not None and _clock_went_back(records):
        why = "the clock was set back while this run was made, so how long it took is not known"
    if why:
        return Speed(figures, warnings=(f"no cost: {why}",))
    total = sum(cost for cost in costs if cost is not None) + price.of_hours(busy_seconds_of(records))
    figures |= {"cost": total} | ({"cost_per_page": total / pages} if pages else {})
    late = sum(usage.late for usage in records)
    warnings = (f"what {late:,} requests cost that timed out is not known, and not in the cost",) if late else ()
    return Speed(figures, price.currency, warnings if price.needs_tokens else ())
