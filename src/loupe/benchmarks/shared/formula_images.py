"""Score formulas by how they look: CDM in the benchmarks, prepared in batches and kept in Loupe's cache.

CDM is "not computed" if TeX is missing. Options of scoring say whether and how it is computed.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import msgspec

from loupe.data.user_folders import cache_folder
from loupe.errors import MissingToolError
from loupe.explanation import Explanation, FormulaPair, Unit
from loupe.metrics import CdmResult, cdm_pairs
from loupe.quantities import percent
from loupe.typed import convert
from loupe.types import Sample, SampleScores

if TYPE_CHECKING:
    from loupe.metrics.cdm.drawing.rendering import RenderCache


_NAMED = 3


class CdmOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one pair that `scores.jsonl` keeps. `f1` is None if CDM was not computed: `failure` says what is
    missing.

    Otherwise `failure` is why the prediction was not drawn, `reference_failure` why the ground truth was not; `counted`
    is false where the official numbers leave the pair out for that.
    """

    f1: float | None = None
    precision: float = 0.0
    recall: float = 0.0
    counted: bool = True
    failure: str = ""
    reference_failure: str = ""


def cdm_tools(profile: str) -> dict[str, str]:
    """The programs that CDM scores depend on; "" if one is missing."""
    return {"CDM": "" if missing_tools(profile) else f"{profile}, {_version(profile)}"}


@lru_cache(maxsize=8)
def missing_tools(profile: str) -> MissingToolError | None:
    """Return what CDM lacks here, with the command that brings it; None if it can be computed."""
    from loupe.metrics.cdm.drawing.rendering import profile_named
    from loupe.metrics.cdm.drawing.tex_setup import tex_tools

    tools = tex_tools(profile_named(profile))
    if not tools.missing:
        return None
    return MissingToolError(f"CDM needs TeX, and this is missing: {', '.join(tools.missing)}", hint=tools.hint)


def _version(profile: str) -> str:
    from loupe.metrics.cdm.drawing.rendering import profile_named
    from loupe.metrics.cdm.drawing.tex_setup import tex_tools

    return tex_tools(profile_named(profile)).version


@lru_cache(maxsize=1)
def _cache() -> RenderCache:
    from loupe.metrics.cdm.drawing.rendering import RenderCache

    return RenderCache(cache_folder())


def prepare_formulas(pairs: Iterable[tuple[str, str]], *, profile: str) -> None:
    """Draw the formulas of many pairs (prediction, reference) at once, so that scoring finds them drawn."""
    if missing_tools(profile):
        return
    from loupe.metrics.cdm.drawing.rendering import profile_named, render
    from loupe.metrics.cdm.drawing.tex_setup import BrokenTexError

    every = list(pairs)
    # A broken TeX is told of by the scores.
    with contextlib.suppress(BrokenTexError):
        for side in (1, 0):
            formulas = [pair[side] for pair in every]
            render(formulas, profile=profile_named(profile), cache=_cache())


def cdm_outcomes(pairs: Sequence[tuple[str, str]], *, profile: str) -> list[CdmOutcome]:
    """CDM of pairs (prediction, reference)."""
    if problem := missing_tools(profile):
        return [CdmOutcome(failure=problem.message)] * len(pairs)
    from loupe.metrics.cdm.drawing.tex_setup import BrokenTexError

    try:
        found = cdm_pairs(pairs, profile=profile, cache=_cache())
    except BrokenTexError as error:
        return [CdmOutcome(failure=str(error))] * len(pairs)
    return [_outcome(one) for one in found]


def _outcome(found: CdmResult) -> CdmOutcome:
    from loupe.metrics.cdm.drawing.rendering import KILLED

    if KILLED in (found.prediction_failure, found.reference_failure):
        return CdmOutcome(failure="TeX was ended from outside (a lack of memory, or ten minutes on the clock)")
    return CdmOutcome(
        f1=found.f1,
        precision=found.precision,
        recall=found.recall,
        counted=found.counted,
        failure=found.prediction_failure,
        reference_failure=found.reference_failure,
    )


def cdm_warnings(
    outcomes: Mapping[str, CdmOutcome | Mapping[str, Any]], *, profile: str, measure: str = "CDM"
) -> list[str]:
    """Warn of the pairs (by sample): not computed, not drawn, left out."""
    known = {name: convert(outcome, CdmOutcome) for name, outcome in outcomes.items()}
    absent = {name: outcome.failure for name, outcome in known.items() if outcome.f1 is None}
    found = []
    if absent:
        reason = next(iter(absent.values()))
        problem = missing_tools(profile)
        hint = f"; {problem.hint}, then score again" if problem and problem.hint else "; score again"
        some = "" if len(absent) == len(known) else f" for {len(absent):,} of {len(known):,} ({_some(list(absent))})"
        found.append(f"{measure} is not computed{some}: {reason}{hint}")
        known = {name: outcome for name, outcome in known.items() if name not in absent}
    left_out = [name for name, outcome in known.items() if not outcome.counted]
    zeros = {
        name: outcome.failure or outcome.reference_failure
        for name, outcome in known.items()
        if outcome.counted and (outcome.failure or outcome.reference_failure)
    }
    if left_out:
        found.append(
            f"{measure} leaves out {len(left_out):,} of {len(known):,} formulas whose ground truth is not drawn, as "
            f"upstream does ({_some(left_out)})"
        )
    if zeros:
        reasons = Counter(reason.partition(":")[0] for reason in zeros.values())
        listed = ", ".join(f"{reason} {count:,}" for reason, count in reasons.most_common())
        found.append(
            f"{measure} is 0 for {len(zeros):,} of {len(known):,} formulas that are not drawn: {listed} "
            f"({_some(list(zeros))})"
        )
    return found


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


Switch: TypeAlias = Literal["on", "off"]
#: Versions of CDM: loupe.metrics.cdm.profiles.
Profile: TypeAlias = Literal["unimernet", "omnidocbench", "omnidocbench_v16", "mdpbench"]


def with_cdm(sample: Sample, cdm: Switch, profile: Profile | None = None) -> Sample:
    """The sample with what these options say; `profile` where the benchmark has more than its own."""
    return replace(sample, scoring={"cdm": cdm} | ({"cdm_profile": profile} if profile else {}))


def profile_of(sample: Sample, default: Profile) -> Profile:
    """The version of CDM that a sample is scored by."""
    named = sample.scoring.get("cdm_profile", default)
    return next((profile for profile in get_args(Profile) if profile == named), default)


def wants_cdm(sample: Sample, *, default: Switch = "off") -> bool:
    """True if the options of a sample ask for CDM."""
    return sample.scoring.get("cdm", default) == "on"


def explain_formula(sample: Sample, scores: SampleScores, *, reference: str, profile: str) -> Explanation | None:
    """The formula of a sample beside the answer, as CDM got both; None where its scores keep neither."""
    if not wants_cdm(sample, default="on") or "cdm" not in scores.details or "compared" not in scores.details:
        return None
    outcome = convert(scores.details["cdm"], CdmOutcome)
    prediction = str(scores.details["compared"])
    pair = FormulaPair(
        prediction=prediction,
        reference=reference,
        profile=profile,
        f1=outcome.f1,
        prediction_failure=outcome.failure,
        reference_failure=outcome.reference_failure,
    )
    unit = Unit(
        element="formula",
        regions=(),
        reference=sample.truth,
        value=outcome.f1 if outcome.counted else None,
        verdict=cdm_verdict(outcome),
        formulas=pair,
    )
    return Explanation(units=(unit,))


def cdm_verdict(outcome: CdmOutcome) -> str:
    """The figures in a line."""
    if outcome.f1 is None:
        return "CDM not computed"
    if not outcome.counted:
        return "in no CDM, because the ground truth is not drawn"
    figures = (("CDM F1", outcome.f1), ("precision", outcome.precision), ("recall", outcome.recall))
    return ", ".join(f"{name} {percent(value)}" for name, value in figures)
