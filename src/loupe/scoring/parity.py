"""Parity on the user's own machine: official cases, scored here and compared with what the official programs returned.

Inputs are made by us. A sample of the cases ships in the package; a checkout has all of them (`scoring/oracles.py`). A
benchmark takes part by a file `verify_cases/<id>.jsonl` and its field `parity` (loupe.types.ParityCases).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import loupe
from loupe.benchmarks.registry import filed_as, get_benchmark, load_benchmark
from loupe.errors import LoupeError, UsageError
from loupe.hooks import folders
from loupe.scoring import oracles
from loupe.typed import decode_json

CASES = Path(loupe.__file__).parent / "verify_cases"


class Parity(msgspec.Struct, frozen=True, kw_only=True):
    """The parity of one benchmark: `identical` of `cases` within their tolerance, and the largest difference seen.

    `known` counts all its cases, also those that cannot be compared on this machine.
    `missing` says what the cases need that were not compared, and what brings it: by reason, the number of cases.
    """

    benchmark: str
    known: int = 0
    cases: int = 0
    identical: int = 0
    largest: float = 0.0
    differing: list[str] = []
    deviations: list[str] = []
    missing: dict[str, int] = {}


def verifiable() -> list[str]:
    """Benchmarks with shipped cases."""
    return sorted(_files())


def _files() -> dict[str, Path]:
    """Return the files of shipped cases by benchmark."""
    return {path.stem: path for folder in (CASES, *folders("verify_cases")) for path in folder.glob("*.jsonl")}


def verify(names: Sequence[str] = (), *, everything: bool = False) -> Iterator[Parity]:
    """Check the benchmarks named (an id, or id@version), or all; with `everything`, on all cases of the checkout.

    Raises UsageError for a benchmark without cases, and for `everything` where Loupe does not run from a checkout.
    """
    if everything and not oracles.FOLDER.is_dir():
        raise UsageError(
            "--all reads the official cases in tests/oracles of a checkout, and this is an installed package",
            hint="score the cases that come with the package: loupe verify",
        )
    known = verifiable()
    for name in names or known:
        filed = filed_as(name)
        if name.partition("@")[0] in known:
            get_benchmark(name)  # refuses a version that is not here
        if filed not in known:
            raise UsageError(f"no parity cases for {name!r}", hint=f"there are some for: {', '.join(known)}")
        yield verify_one(filed, everything=everything)


def verify_one(name: str, *, everything: bool = False) -> Parity:
    """Score the cases of one benchmark. What is missing for some of them is reported, and the others are compared."""
    parity = load_benchmark(name).parity
    if parity is None:
        raise UsageError(f"{name} has parity cases, but no comparison is implemented")
    cases = _cases(name, oracles.cases_of(parity) if everything else [])
    differing: list[str] = []
    missing: Counter[str] = Counter()
    largest, compared = 0.0, 0
    for case in cases:
        try:
            pairs = parity.compare(case)
        except LoupeError as error:
            missing[f"{error.message}; {error.hint}"] += 1
            continue
        if pairs is None:
            continue
        compared += 1
        apart = [_distance(ours, official) for ours, official in pairs]
        largest = max([largest, *apart])
        if not pairs or max(apart) > case.get("tolerance", 1e-9):
            differing.append(str(case["id"]))
    return Parity(
        benchmark=name,
        known=len(cases),
        cases=compared,
        identical=compared - len(differing),
        largest=largest,
        differing=differing,
        deviations=[*parity.deviations, *parity.not_compared()],
        missing=dict(missing),
    )


def _cases(name: str, more: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cases of the checkout, and the shipped ones that are not among them."""
    lines = _files()[name].read_text(encoding="utf-8").splitlines()
    shipped: list[dict[str, Any]] = [decode_json(line) for line in lines if line.strip()]
    seen = {case["id"] for case in more}
    return [*(case for case in shipped if case["id"] not in seen), *more]


def _distance(ours: float, official: float) -> float:
    if math.isnan(ours) or math.isnan(official):
        return 0.0 if math.isnan(ours) and math.isnan(official) else math.inf
    return abs(ours - official)
