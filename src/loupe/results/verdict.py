"""One plain sentence about runs side by side: who wins, how sure that is, and what to do next.

It says no more than the comparisons of all pairs do (docs/statistics.md): a winner is clearly better than all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loupe.results.group_titles import listed
from loupe.results.sections import failed_count, format_estimate, format_range, format_value, unread_count
from loupe.results.unverified import unverified
from loupe.results.visible_differences import needed, probability, size
from loupe.stats.comparison import Difference, is_clear
from loupe.stats.ranks import Standings
from loupe.types import Measure, Result

_BY_OTHERS = "choose by speed or cost"


@dataclass(frozen=True, slots=True)
class Contender:
    """A run that takes part: its key in the standings, what it is called, and its result."""

    key: str
    name: str
    result: Result

    def value(self, headline: str) -> float | None:
        """Its headline."""
        found = self.result.measures.get(headline)
        return found.value if found else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The sentence ("" where there is nothing to say), and the key of the run that wins ("" without a winner)."""

    sentence: str = ""
    winner: str = ""


def verdict(
    contenders: Sequence[Contender],
    headline: Measure | None,
    compared: Standings | None,
    *,
    apart: bool = False,
    review: str = "loupe review",
) -> Verdict:
    """What follows from these runs. Runs without a value of the headline or without a rank stay out; `apart` says that
    others stand beside them, over fewer samples; `review` is the command that verifies their truth."""
    if headline is None or compared is None:
        return Verdict()
    values = {each.key: value for each in contenders if (value := each.value(headline.name)) is not None}
    ranked = [each for each in contenders if each.key in values]
    ranked.sort(key=lambda each: headline.merit(values[each.key]), reverse=True)
    if not ranked:
        return Verdict()
    if any(unverified(each.result) for each in ranked):
        return Verdict(f"No winner yet: the ground truth is unverified; next, check it with {review}.")
    unfinished = next((each for each in ranked if unread_count(each.result)), None)
    if unfinished:
        total = unfinished.result.total
        read = f"{total - unread_count(unfinished.result):,} of {total:,} samples"
        return Verdict(f"No winner yet: {unfinished.name} has read {read}; next, repeat its command to continue.")
    if compared.failed.issuperset(values):
        return Verdict("No winner: every sample failed; next, look at the errors.")
    if not compared.untold:
        out = [each for each in ranked if compared.ranks.get(each.key, 1) is None]
        apart = apart or any(each.key not in compared.failed for each in out)
        ranked = [each for each in ranked if each not in out]
    if len(ranked) == 1:
        failed = [each.name for each in contenders if each.key in compared.failed]
        return Verdict(_alone(ranked[0], headline, failed, apart=apart))
    # Values of runs over other samples may be in another order than what the pairs show on those that they share.
    leader = min(ranked, key=lambda each: compared.ranks.get(each.key) or len(ranked) + 1)
    others = [each for each in ranked if each is not leader]
    found = {each.key: compared.minus(leader.key, each.key).get(headline.name) for each in others}
    level = [leader, *(each for each in others if _is_level(found[each.key], headline))]
    told = f"{listed([each.name for each in level])} {{}} {_with(level, headline)}"
    if compared.untold:
        said = "No winner: too few samples to tell the engines apart"
        place = "is ahead" if len(level) == 1 else "are level"
        return Verdict(f"{said}, though {told.format(place)}; next, add samples.")
    equal = [each for each in others if (one := found[each.key]) is None or not is_clear(one)]
    if any(_is_behind(found[each.key], headline) for each in others if each not in level):
        return Verdict("No winner: each engine leads on different samples; next, run all engines on the same samples.")
    if not equal:
        one = found[others[0].key]
        assert one is not None
        sure = f"a significant difference{_sure(one, headline)}"
        said = f"{told.format('wins')}, {_ahead(one, others[0], headline)}, {sure}"
        return Verdict(f"{said}; next, {_mend(leader, headline)}.", leader.key)
    worse = [each.name for each in others if each not in equal]
    behind = f"; {listed(worse)} {'is' if len(worse) == 1 else 'are'} clearly worse" if worse else ""
    if len(level) > 1:
        return Verdict(f"No winner: {told.format('are level')}{behind}; next, {_BY_OTHERS}.")
    said = _undecided(equal[0], found[equal[0].key], headline, behind)
    return Verdict(f"No clear winner: {told.format('is ahead')}, {said}.")


def _alone(one: Contender, headline: Measure, failed: Sequence[str], *, apart: bool) -> str:
    found = one.result.measures[headline.name]
    interval = format_range(found.low, found.high, headline.unit)
    sure = f" (95 % interval {interval})" if interval else ""
    reached = f"{one.name} reaches {_reached(one, headline)}{sure}"
    if apart:
        return f"{reached}, and no other run has read as many samples; next, complete the other runs."
    if failed:
        return f"{reached}; {listed(failed)} failed on every sample; next, look at the errors."
    return f"{reached}; there is no other run to compare it with yet; next, run a second engine on the same samples."


def _undecided(rival: Contender, one: Difference | None, headline: Measure, behind: str) -> str:
    if one is None or one.difference is None:
        return f"but {rival.name} has not read the same samples; next, complete that run"
    more = one.needed is not None and one.needed > one.shared
    advice = f"add documents (it takes {needed(one)}), or {_BY_OTHERS}" if more else _BY_OTHERS
    return f"{_ahead(one, rival, headline)}, which may be due to chance{_sure(one, headline)}{behind}; next, {advice}"


def _is_level(found: Difference | None, headline: Measure) -> bool:
    """True if two runs differ by nothing that a table shows, on what both have read."""
    if found is None or found.difference is None or is_clear(found):
        return False
    return size(found.difference, headline.unit) == size(0.0, headline.unit)


def _is_behind(found: Difference | None, headline: Measure) -> bool:
    """True if the leader is behind another run, on what both have read."""
    difference = getattr(found, "difference", None) or 0.0
    return headline.merit(difference) < 0


def _with(level: Sequence[Contender], headline: Measure) -> str:
    reached = {_reached(each, headline) for each in level}
    return f"with {reached.pop()}" if len(reached) == 1 else "on the samples read by all"


def _reached(one: Contender, headline: Measure) -> str:
    return f"{format_estimate(one.result.measures[headline.name], headline.unit)} {headline.title or headline.name}"


def _ahead(found: Difference, other: Contender, headline: Measure) -> str:
    return f"{size(found.difference, headline.unit)} better than {other.name}"


def _sure(found: Difference, headline: Measure) -> str:
    """The interval and the p-value that decided, in brackets."""
    said = []
    if found.low is not None and found.high is not None:
        ends = (found.low, found.high) if (found.difference or 0) > 0 else (-found.high, -found.low)
        said.append(f"interval {format_range(*ends, headline.unit)}")
    if found.p_holm is not None:
        p = probability(found.p_holm)
        said.append(f"p {p}" if p[0] == "<" else f"p = {p}")
    return f" ({', '.join(said)})" if said else ""


def _mend(leader: Contender, headline: Measure) -> str:
    failed = failed_count(leader.result)
    if failed:
        return f"run it again for the {failed:,} of {leader.result.total:,} samples that failed"
    found = leader.result.measures[headline.name]
    best = {"fraction": 1.0, "count": float(found.n)}.get(headline.unit) if headline.higher_is_better else 0.0
    if best is not None and format_estimate(found, headline.unit) == format_value(best, headline.unit, of=found.n):
        return "add harder samples: it gets all of these right"
    return "look at the samples it still gets wrong"
