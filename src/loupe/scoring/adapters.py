"""Output adapters, as scoring uses them: the steps are the engines' own (`loupe.engines.answers.steps`)."""

from __future__ import annotations

from loupe.engines.answers.steps import STEPS, apply_adapters, check_adapters

__all__ = ["STEPS", "apply_adapters", "check_adapters"]
