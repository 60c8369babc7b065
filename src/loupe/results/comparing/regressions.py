"""Find what got worse since a baseline, as the paired test with its correction says: what a CI job may fail on.

Without a margin a measure got worse where the table says `worse`. With one, the question is that of a test of
non-inferiority: the headline counts as kept only if a loss of the margin or more is excluded, whatever documents that
were not read are like (G. Piaggio et al., "Reporting of Noninferiority and Equivalence Randomized Trials", JAMA 308
(2012); stats/bounds_of_unread.py).
"""

from __future__ import annotations

from loupe.results.comparing.records import Compared, Pair, Regression
from loupe.results.group_titles import listed
from loupe.results.sections import format_range, format_value
from loupe.results.visible_differences import probability, size, verdict
from loupe.stats.comparison import FEWEST, Difference
from loupe.stats.power import clusters_without_loss
from loupe.types import Estimate

#: Samples without an answer that a message names; JUnit has up to 500, JSON has all.
_NAMED = 10


def regressions(compared: Compared, margin: float | None = None) -> list[Regression]:
    """List what every run lost against the baseline. `margin` is in the unit of the headline (a fraction, or a number).

    What was not looked at must not pass: a sample that the baseline answered and the run did not is a loss by itself,
    and so is a headline that cannot be compared. With a margin, samples that were scored as empty answers are in it.
    """
    found = []
    for pair in compared.pairs:
        # A margin allows for failed samples that count as empty answers, but not for those that are in no number.
        lost = {"": _unanswered(compared, pair) if margin is None or pair.unscored else ""}
        lost |= {measure: loss(compared, measure, one, margin) for measure, one in pair.measures.items()}
        headline = pair.measures.get(compared.headline)
        if headline is None or headline.difference is None:
            lost[compared.headline] = _incomparable(compared, pair)
        found += [
            Regression(run=pair.run, name=pair.name, measure=measure, why=why) for measure, why in lost.items() if why
        ]
    return found


def without_margin(compared: Compared) -> list[Regression]:
    """What was lost where the margin is for a headline that is not computed: every run fails by what ranks instead."""
    name = compared.headline
    why = f"the margin is for the headline, which is not computed; to give one for {name}: --by-measure {name}"
    unproven = [Regression(run=pair.run, name=pair.name, measure=name, why=why) for pair in compared.pairs]
    return [*unproven, *(one for one in regressions(compared) if not one.measure)]


def _unanswered(compared: Compared, pair: Pair) -> str:
    if not pair.unanswered:
        return ""
    base = next(row.name for row in compared.runs if row.run == compared.baseline)
    named = [f"{one.sample} ({one.outcome})" for one in pair.unanswered[:_NAMED]]
    more = [f"{len(pair.unanswered) - _NAMED:,} more"] if len(pair.unanswered) > _NAMED else []
    count = "1 sample" if len(pair.unanswered) == 1 else f"{len(pair.unanswered):,} samples"
    return f"no answer to {count} that {base} has answered: {listed([*named, *more])}"


def _incomparable(compared: Compared, pair: Pair) -> str:
    """Say why the headline of two runs cannot be compared."""
    for row in compared.runs:
        value = row.measures.get(compared.headline, Estimate(value=None)).value
        if row.run in (pair.run, compared.baseline) and value is None:
            reason = compared.why_nothing(row.run, compared.headline)
            return f"cannot be compared: not computed in {row.name} ({reason})"
    return "cannot be compared: the two runs have no sample in common"


def loss(compared: Compared, measure: str, found: Difference, margin: float | None) -> str:
    """Return why this is a regression; "" if it is not. A margin holds for the headline alone."""
    better = compared.directions.get(measure, True)
    unit = compared.units.get(measure, "fraction")
    if margin is None:
        return _sentence(found, unit) if verdict(found, better) == "worse" else ""
    if measure != compared.headline:
        return ""
    worst = _worst(found, higher_is_better=better)
    if worst is not None and worst < margin:
        return ""
    least = max(FEWEST, _fewest(margin, unit, found))
    if found.shared >= least and worst is None:
        return "no bound of a loss is known for this measure; to ask only if it got worse: leave out --margin"
    if found.shared < least:
        return (
            f"{found.shared:,} samples or groups of them are too few to exclude a loss of {size(margin, unit)}, even if"
            f" none gets worse (at least {least:,} are needed)"
        )
    return f"may be worse by {size(worst, unit)}, and the margin is {size(margin, unit)} ({_numbers(found, unit)})"


def _fewest(margin: float, unit: str, found: Difference) -> int:
    """Return with how many clusters a loss of the margin can be excluded if none gets worse; 0 if that is unknown."""
    share = margin / found.shared if unit == "count" else margin
    if unit == "number" or not 0 < share < 1:
        return 0
    return clusters_without_loss(share)


def cannot_tell(compared: Compared, pair: Pair) -> bool:
    """True if no test was possible of the headline: then nothing got worse, and nothing is known."""
    found = pair.measures.get(compared.headline)
    return found is None or found.p_holm is None


def _worst(found: Difference, *, higher_is_better: bool) -> float | None:
    """Return the largest loss that is not excluded (below 0: a gain), or None if there are too few clusters for any.

    The interval does not exclude it, or documents unlike those that were read might bring it about.
    """
    if found.p_holm is None or found.difference is None:
        return None
    sign = -1 if higher_is_better else 1
    ends = (found.low, found.worst_low) if higher_is_better else (found.high, found.worst_high)
    return max((sign * end for end in ends if end is not None), default=None)


def _sentence(found: Difference, unit: str) -> str:
    values = f"{format_value(found.value_a, unit)} against {format_value(found.value_b, unit)}"
    return f"{values}, {size(found.difference, unit)} worse ({_numbers(found, unit)})"


def _numbers(found: Difference, unit: str) -> str:
    interval = format_range(found.low, found.high, unit)
    p = probability(found.p_holm)
    said = [f"95 % interval of the difference {interval}"] if interval else []
    return ", ".join([*said, f"p {p}" if p.startswith("<") else f"p = {p}"])
