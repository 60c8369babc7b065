"""What a plan may cost, and what is left of that."""

from __future__ import annotations

from loupe.engines.shared.prices import Price
from loupe.errors import UsageError
from loupe.inference.budget import Budget
from loupe.pipeline.plan import Plan
from loupe.pipeline.spent import usages
from loupe.runs.folder import RunFolder


def budget_of(plan: Plan, folder: RunFolder) -> Budget | None:
    """The money that is left for a run. Raises UsageError for `--max-cost` without prices."""
    if plan.max_cost is None:
        return None
    return Budget.after(priced(plan), plan.max_cost, usages(folder))


def priced(plan: Plan) -> Price:
    """The prices of a plan; OCR on this machine costs nothing. Raises UsageError where there are none."""
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
