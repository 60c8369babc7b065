"""Parity on the user's own machine: the cases that ship in the package, scored here against the official values.

Inputs are made by us; expected values are what the official evaluators returned for them. A benchmark takes part by a
file `verify_cases/<id>.jsonl` and a function `verify_case(case) -> [(ours, official), …]` in its module; None is for a
case that cannot be compared on this machine, and `not_compared()` says why. Known differences stand in its
`DEVIATIONS`, one sentence each.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import loupe
from loupe.benchmarks import get_benchmark
from loupe.errors import LoupeError, UsageError
from loupe.typed import decode_json

CASES = Path(loupe.__file__).parent / "verify_cases"


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """How one benchmark fares: `identical` of `cases` within their tolerance, and the largest difference seen."""

    benchmark: str
    cases: int = 0
    identical: int = 0
    largest: float = 0.0
    differing: list[str] = []
    deviations: list[str] = []
    missing: str = ""


def verifiable() -> list[str]:
    """Benchmarks with shipped cases."""
    return sorted(path.stem for path in CASES.glob("*.jsonl"))


def verify(names: Sequence[str] = ()) -> Iterator[Parity]:
    """Check the benchmarks named (an id, or id@version), or all. Raises UsageError for one without cases."""
    known = verifiable()
    for name in names or known:
        ident = name.partition("@")[0]
        if ident not in known:
            raise UsageError(f"no parity cases for {name!r}", hint=f"there are some for: {', '.join(known)}")
        get_benchmark(name)  # refuses a version that is not here
        yield verify_one(ident)


def verify_one(name: str) -> Parity:
    """Score every shipped case of one benchmark. A missing extra is reported, not raised."""
    module = importlib.import_module(f"loupe.benchmarks.{name}")
    lines = (CASES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    cases: list[dict[str, Any]] = [decode_json(line) for line in lines if line.strip()]
    differing: list[str] = []
    largest, compared = 0.0, 0
    for case in cases:
        try:
            pairs: list[tuple[float, float]] | None = module.verify_case(case)
        except LoupeError as error:
            return Parity(benchmark=name, cases=len(cases), missing=f"{error.message}; {error.hint}")
        if pairs is None:
            continue
        compared += 1
        apart = [_distance(ours, official) for ours, official in pairs]
        largest = max([largest, *apart])
        if not pairs or max(apart) > case.get("tolerance", 1e-9):
            differing.append(str(case["id"]))
    return Parity(
        benchmark=name,
        cases=compared,
        identical=compared - len(differing),
        largest=largest,
        differing=differing,
        deviations=[*getattr(module, "DEVIATIONS", ()), *getattr(module, "not_compared", tuple)()],
    )


def _distance(ours: float, official: float) -> float:
    if math.isnan(ours) or math.isnan(official):
        return 0.0 if math.isnan(ours) and math.isnan(official) else math.inf
    return abs(ours - official)
