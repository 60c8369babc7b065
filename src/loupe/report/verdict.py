"""One plain sentence about runs side by side: who wins, how sure that is, and what to do next.

It says no more than the comparisons of all pairs do (docs/statistics.md): a winner is clearly better than all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loupe.report.terminal import failed_count, format_range, format_value, unread_count
from loupe.report.unverified import unverified
from loupe.report.visible_differences import more_needed, probability, size
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
    contenders: Sequence[Contender], headline: Measure | None, compared: Standings | None, *, apart: bool = False
) -> Verdict:
    """What follows from these runs. Runs without a value of the headline stay out; `apart` says that others stand
    beside them, over fewer samples and without a rank."""
    if headline is None or compared is None:
        return Verdict()
    values = {each.key: value for each in contenders if (value := each.value(headline.name)) is not None}
    ranked = [each for each in contenders if each.key in values]
    ranked.sort(key=lambda each: values[each.key], reverse=headline.higher_is_better)
    if not ranked:
        return Verdict()
    if any(unverified(each.result) for each in ranked):
        return Verdict("No winner yet: nobody has verified the truth; next, check it with loupe review.")
    unfinished = next((each for each in ranked if unread_count(each.result)), None)
    if unfinished:
        total = unfinished.result.total
        read = f"{total - unread_count(unfinished.result):,} of {total:,} samples"
        return Verdict(
            f"No winner yet: {unfinished.name} has read {read}; next, give its command again, which goes on."
        )
    if len(ranked) == 1:
        return Verdict(_alone(ranked[0], headline, apart=apart))
    # Values of runs over other samples may be in another order than what the pairs show on those that they share.
    leader = min(ranked, key=lambda each: compared.ranks.get(each.key) or len(ranked) + 1)
    others = [each for each in ranked if each is not leader]
    found = {each.key: _between(compared, leader, each, headline) for each in others}
    told = f"{leader.name} {{}} with {_reached(leader, headline)}"
    if compared.untold:
        said = "No winner: these samples are too few to tell the engines apart"
        return Verdict(f"{said}, though {told.format('is ahead')}; next, add samples.")
    equal = [each for each in others if (one := found[each.key]) is None or not is_clear(one)]
    if any(_is_behind(compared, leader, each, headline) for each in others):
        return Verdict("No winner: each engine is ahead on other samples; next, let all read the same samples.")
    if not equal:
        one = found[others[0].key]
        assert one is not None
        sure = f"which is more than chance{_sure(one, headline)}"
        said = f"{told.format('wins')}, {_ahead(one, others[0], headline)}, {sure}"
        return Verdict(f"{said}; next, {_mend(leader)}.", leader.key)
    return Verdict(_undecided(told, equal, [each.name for each in others if each not in equal], found, headline))


def _alone(one: Contender, headline: Measure, *, apart: bool) -> str:
    found = one.result.measures[headline.name]
    interval = format_range(found.low, found.high, headline.unit)
    sure = f" (95 % interval {interval})" if interval else ""
    reached = f"{one.name} reaches {_reached(one, headline)}{sure}"
    if apart:
        return f"{reached}, and no other run has read as much; next, let the others read all samples."
    return f"{reached} and is compared with nothing yet; next, read the same samples with a second engine."


def _undecided(
    told: str,
    equal: Sequence[Contender],
    worse: Sequence[str],
    found: dict[str, Difference | None],
    headline: Measure,
) -> str:
    rival, one = equal[0], found[equal[0].key]
    if one is None or one.difference is None:
        return f"No clear winner: {told.format('is ahead')}, but {rival.name} has not read the same; next, let it."
    behind = f"; {_listed(worse)} {'is' if len(worse) == 1 else 'are'} clearly worse" if worse else ""
    if not one.difference:
        return f"No winner: {told.format('is level')}, like {rival.name}{behind}; next, {_BY_OTHERS}."
    more = more_needed(one)
    advice = f"add about {more:,} documents, or {_BY_OTHERS}" if more else _BY_OTHERS
    chance = f"{_ahead(one, rival, headline)}, which may be chance{_sure(one, headline)}"
    return f"No clear winner: {told.format('is ahead')}, {chance}{behind}; next, {advice}."


def _between(compared: Standings, leader: Contender, other: Contender, headline: Measure) -> Difference | None:
    pair = compared.pairs.get((leader.key, other.key)) or compared.pairs.get((other.key, leader.key)) or {}
    return pair.get(headline.name)


def _is_behind(compared: Standings, leader: Contender, other: Contender, headline: Measure) -> bool:
    """Whether the other run is ahead on what both have read; pairs hold the later run minus the earlier one."""
    later_leads = (leader.key, other.key) in compared.pairs
    difference = getattr(_between(compared, leader, other, headline), "difference", None) or 0.0
    gain = difference if headline.higher_is_better else -difference
    return gain < 0 if later_leads else gain > 0


def _reached(one: Contender, headline: Measure) -> str:
    return f"{format_value(one.value(headline.name), headline.unit)} {headline.title or headline.name}"


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


def _mend(leader: Contender) -> str:
    failed = failed_count(leader.result)
    if failed:
        return f"run it again for the {failed:,} of {leader.result.total:,} samples that failed"
    return "look at the samples that it still gets wrong"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
