"""Time, tokens, calls and money: what a run took beside its quality, and what a plan may still cost."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from loupe.engines.shared.prices import Price, Usage, busy_seconds
from loupe.errors import RunError, UsageError
from loupe.files.json_lines import read_lines
from loupe.inference.budget import Budget
from loupe.pipeline.plan import Plan
from loupe.quantities import percent
from loupe.runs.folder import PREDICTIONS, RunFolder
from loupe.runs.places import Place
from loupe.typed import convert, json_decoder
from loupe.types import FAILED, UNDECODABLE


class Parts(NamedTuple):
    """Figures by name, and what a reader must know; nothing for engines that read whole pages."""

    figures: dict[str, float]
    warnings: tuple[str, ...] = ()


def parts_of(folder: RunFolder, places: Mapping[str, Place]) -> Parts:
    """Counts of calls and regions from the answers of a layout pipeline (docs/engines/layout.md)."""
    pages = calls = layout_failed = 0
    seen: Counter[str] = Counter()
    for prediction in folder.read_predictions(places.values()):
        response = prediction.response or {}
        layout_failed += bool(response.get("layout_failed"))
        if prediction.outcome in FAILED:
            continue
        if not isinstance(response.get("calls"), int):
            # Every answer of a pipeline says so: another engine's need not be read to their end.
            break
        pages += 1
        calls += response["calls"]
        seen.update(_counts(response))
    figures = {"calls_per_page": calls / pages} if pages else {}
    figures |= {"failed_regions": float(seen["lost"])} if seen["lost"] else {}
    return Parts(figures, (*_losses(seen), *_remarks(seen, layout_failed)))


def _counts(response: Mapping[str, Any]) -> dict[str, int]:
    lost, loops = _count(response, "failed_regions"), _count(response, "repeated_regions")
    layout = response.get("layout")
    left_out = _count(layout, "left_out") if isinstance(layout, dict) else 0
    return {
        "lost": lost,
        "read": _count(response, "regions_read"),
        "pages with losses": bool(lost),
        "left out": left_out,
        "pages left out": bool(left_out),
        "loops": loops,
        "pages with loops": bool(loops),
        "questions": bool(response.get("question_not_asked")),
    }


def _losses(seen: Mapping[str, int]) -> list[str]:
    if not seen["lost"]:
        return []
    # Vendors' packages tell what was lost, and not always of how many.
    share = f" ({percent(seen['lost'] / (seen['lost'] + seen['read']))})" if seen["read"] else ""
    return [f"{seen['lost']:,} regions{share} on {seen['pages with losses']:,} pages were lost: their text is missing"]


def _remarks(seen: Mapping[str, int], layout_failed: int) -> list[str]:
    said = (
        (layout_failed, f"the layout of {layout_failed:,} pages failed: they count as failed"),
        (seen["left out"], f"{seen['left out']:,} regions on {seen['pages left out']:,} pages were left out: too many"),
        (seen["loops"], f"{seen['loops']:,} regions on {seen['pages with loops']:,} pages are loops"),
        (
            seen["questions"],
            f"{seen['questions']:,} samples are questions, which a layout pipeline cannot answer",
        ),
    )
    return [text for count, text in said if count]


def _count(response: Mapping[str, Any], key: str) -> int:
    found = response.get(key)
    return found if isinstance(found, int) else 0


#: Percentiles of the seconds that single pages took.
PERCENTILES = (50, 95, 99)
#: The start of a figure that is followed by the name of a node.
OF_NODE = "pages_per_second_of_"
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
    price = price_of(folder)
    seen = _Seen(price)
    for record in usages(folder):
        seen.add(record)
    asked = was_asked(folder)
    seconds, input_tokens, output_tokens = array("d"), array("q"), array("q")
    for prediction in folder.read_predictions(place for place in places.values() if place.mark not in FAILED):
        usage = Usage.of(prediction)
        seconds.append(page_seconds(usage.seconds, usage.began, usage.ended) if asked else usage.seconds)
        for found, tokens in ((input_tokens, usage.input_tokens), (output_tokens, usage.output_tokens)):
            if tokens is not None:
                found.append(tokens)
    figures = latency_figures(seconds)
    known = {"input_tokens_per_page": input_tokens, "output_tokens_per_page": output_tokens}
    figures |= {name: sum(counts) / len(counts) for name, counts in known.items() if sum(counts)}
    figures |= seen.throughput() if asked else {}
    return _with_cost(figures, price, seen, len(seconds)) if price else Speed(figures)


def latency_figures(seconds: Sequence[float]) -> dict[str, float]:
    """Return mean and percentiles of the seconds that answered pages took, without the pages whose time is unknown.

    An answer that was only scored has 0 seconds: how long its engine took is unknown.
    """
    seconds = [each for each in seconds if each > 0]
    if not seconds:
        return {}
    found = np.percentile(seconds, PERCENTILES)
    figures = {f"latency_p{each}": float(value) for each, value in zip(PERCENTILES, found, strict=True)}
    return {"seconds_per_page": sum(seconds) / len(seconds)} | figures


def was_asked(folder: RunFolder) -> bool:
    """Return whether an engine read the pages of this run, and not a person who filed answers that existed already."""
    return folder.info.profile.get("kind") != "predictions"


def page_seconds(seconds: float, began: float | None, ended: float | None) -> float:
    """From taking a page to its answer; what the engine itself took, where the record does not say when."""
    return seconds if began is None or ended is None or ended < began else ended - began


def usages(folder: RunFolder) -> Iterator[Usage]:
    """Cost and time of every record of a run, also of those that another one has replaced."""
    for number, _, line in read_lines(folder.files, PREDICTIONS):
        try:
            yield json_decoder(Usage).decode(line)
        except UNDECODABLE as error:
            raise RunError(f"{folder.predictions_file}:{number}: not a record of this run: {error}") from None


def price_of(folder: RunFolder) -> Price | None:
    """The prices in the profile that the run was last continued with."""
    stored = folder.info.profile.get("price")
    return convert(stored, Price) if stored else None


class _Seen:
    """Sums over all records, also those that another one has replaced, and the times when requests were in flight."""

    def __init__(self, price: Price | None) -> None:
        self._price = price
        self._spans = array("d")
        self._last_end: float | None = None
        self._answered = self._tokens = 0
        self._of_node: dict[str, tuple[list[int], array[float]]] = {}
        self.clock_went_back = False
        self.answers_without_times = False
        self.cost = 0.0
        self.unknown_costs = self.late = 0

    def add(self, usage: Usage) -> None:
        """Take in one record; they come in the order of the file."""
        if usage.began is not None and usage.ended is not None:
            self._spans.extend((usage.began, usage.ended))
        if usage.ended is not None:
            # Then how long all records or sessions took together is unknown.
            self.clock_went_back |= self._last_end is not None and usage.ended < self._last_end - _SLACK
            self._last_end = usage.ended
        if usage.outcome not in FAILED:
            self._answered += 1
            self._tokens += usage.output_tokens or 0
            self.answers_without_times |= usage.ended is None
            if usage.endpoint and "://" not in usage.endpoint:  # a node of a cluster; servers have addresses
                self._add_to_node(usage.endpoint, usage)
        self.late += usage.late
        if self._price:
            cost = self._price.of(usage)
            self.unknown_costs += cost is None
            self.cost += cost or 0.0

    def _add_to_node(self, node: str, usage: Usage) -> None:
        pages, spans = self._of_node.setdefault(node, ([0], array("d")))
        pages[0] += 1
        if usage.began is not None and usage.ended is not None:
            spans.extend((usage.began, usage.ended))

    def busy_seconds(self) -> float:
        """For how long at least one request was in flight."""
        return busy_seconds(self._spans)

    def throughput(self) -> dict[str, float]:
        """Pages and tokens per second; nothing for runs of before, whose records do not say when they ended."""
        busy = 0.0 if self.clock_went_back else self.busy_seconds()
        if not self._answered or busy <= 0 or self.answers_without_times:
            return {}
        tokens = {"output_tokens_per_second": self._tokens / busy} if self._tokens else {}
        return {"pages_per_second": self._answered / busy} | self._by_node() | tokens

    def _by_node(self) -> dict[str, float]:
        """Pages per second of every node of a cluster, while it had any."""
        nodes = sorted(self._of_node.items())
        return {f"{OF_NODE}{node}": pages[0] / max(busy_seconds(spans), 1e-9) for node, (pages, spans) in nodes}


def _with_cost(figures: dict[str, float], price: Price, seen: _Seen, pages: int) -> Speed:
    why = ""
    if seen.unknown_costs:
        used = "tokens" if price.needs_tokens else "credits"
        why = f"{used} of {seen.unknown_costs:,} answers are not known"
    elif price.hour is not None and seen.answers_without_times:
        why = "records of this run have no times"
    elif price.hour is not None and seen.clock_went_back:
        why = "the clock was set back while this run was made, so how long it took is not known"
    if why:
        return Speed(figures, warnings=(f"no cost: {why}",))
    total = seen.cost + price.of_hours(seen.busy_seconds())
    figures |= {"cost": total} | ({"cost_per_page": total / pages} if pages else {})
    late = f"the cost excludes {seen.late:,} requests that timed out; their cost is unknown"
    warnings = (late,) if seen.late and price.needs_tokens else ()
    return Speed(figures, price.currency, warnings)


def budget_of(plan: Plan, folder: RunFolder) -> Budget | None:
    """The money that is left for a run. Raises UsageError for `--max-cost` without prices."""
    if plan.max_cost is None:
        return None
    return Budget.after(priced(plan), plan.max_cost, usages(folder))


def priced(plan: Plan) -> Price:
    """The prices of a plan; OCR on this machine costs nothing. Raises UsageError if there are none."""
    profile = plan.profile
    reads_here = profile.gives is not None and not hasattr(profile, "base_url") and not profile.hosts
    if profile.price is None and reads_here:
        return Price(page=0.0)
    if profile.price is None:
        raise UsageError(
            f"--max-cost: no prices are known for {plan.label}",
            hint="[price] in its profile, or: -o 'price={input=0.10, output=0.40}' (per million tokens)",
        )
    return profile.price
