"""Formulas that CDM compared, drawn for the report: which of them, and how they are stored.

A run may have tens of thousands, so of each run those are drawn that show most: first where something differs, by CDM,
then where a side could not be drawn, then exact ones. They are set in TeX together, in worker processes.
"""

from __future__ import annotations

import base64
import heapq
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from loupe.errors import EngineError
from loupe.explanation import Explanation, FormulaPair
from loupe.report.markup import without_surrogates
from loupe.report.samples import compressed
from loupe.types import Output
from loupe.workers.child import Loaded
from loupe.workers.pool import threaded_pool

JsonObject: TypeAlias = dict[str, Any]

#: Pairs of one run that are drawn, and characters that all of them together take in the file.
PAIRS = 300
CHARACTERS = 3_000_000
#: A longer pair is not drawn; nor are more boxes of one side marked.
LONGEST = 20_000
BOXES = 1_500
#: Pairs that are set together, and seconds after which they go undrawn.
_TOGETHER = 50
_SECONDS = 120.0

#: How much a pair shows, least first to go: whether it is exact, whether a side was not drawn, F1, order of arrival.
_Worth: TypeAlias = tuple[bool, bool, float, int]


@dataclass(slots=True)
class _Chosen:
    """The pairs of one run, the least telling one on top of the heap; `different` counts all that differ."""

    heap: list[tuple[_Worth, str, FormulaPair]] = field(default_factory=list)
    different: int = 0
    drawn: int = 0


@dataclass(slots=True)
class Formulas:
    """The formula pairs of a group as they are met, and afterwards their drawings."""

    runs: dict[int, _Chosen] = field(default_factory=dict)
    note: str = ""
    met: set[tuple[int, str]] = field(default_factory=set)

    def add(self, engine: int, explanation: Explanation | None) -> None:
        """Note the formulas of one answer."""
        for unit in explanation.units if explanation else ():
            pair = unit.formulas
            if pair is None or pair.f1 is None:
                continue
            chosen = self.runs.setdefault(engine, _Chosen())
            chosen.different += pair.f1 < 1
            key = pair.key
            if (engine, key) in self.met or len(pair.prediction) + len(pair.reference) > LONGEST:
                continue
            self.met.add((engine, key))
            failed = bool(pair.prediction_failure or pair.reference_failure)
            # Negative, because a heap has the smallest on top: the one that goes first.
            worth = (pair.f1 < 1, not failed, -pair.f1, -len(self.met))
            add = heapq.heappush if len(chosen.heap) < PAIRS else heapq.heappushpop
            add(chosen.heap, (worth, key, pair))

    def blocks(self) -> Iterator[tuple[str, str]]:
        """(key, payload) of every pair that is drawn; then `summary` tells how many."""
        written: set[str] = set()
        for chosen in self.runs.values():
            room = CHARACTERS
            best = [(key, pair) for _, key, pair in sorted(chosen.heap, reverse=True) if key not in written]
            chosen.drawn += len(chosen.heap) - len(best)
            for key, payload in _packed_all(best, self):
                room -= len(payload)
                if room < 0:
                    break
                chosen.drawn += 1
                written.add(key)
                yield key, payload

    def summary(self) -> JsonObject:
        """For each run how many pairs differ and how many are drawn, and what kept others from it."""
        return {
            "runs": {engine: [chosen.drawn, chosen.different] for engine, chosen in self.runs.items()},
            "note": self.note,
        }


def _packed_all(pairs: Sequence[tuple[str, FormulaPair]], formulas: Formulas) -> Iterator[tuple[str, str]]:
    """Draw in batches, on all cores; a batch that dies or hangs costs its own drawings."""
    batches = [pairs[start : start + _TOGETHER] for start in range(0, len(pairs), _TOGETHER)]
    workers = max(1, min(os.cpu_count() or 1, len(batches), 16))
    with threaded_pool("loupe.report.drawn_formulas:load", workers) as pool:
        futures = [pool.submit(batch, seconds=_SECONDS) for batch in batches]
        for future in futures:
            try:
                output = future.result()
            except EngineError as error:
                formulas.note = formulas.note or f"drawing some of them failed ({error.message})"
                continue
            formulas.note = formulas.note or output.text
            yield from (output.response or {})["drawn"]


def load() -> Loaded:
    """`_packed` as a worker uses it."""
    return Loaded(read=_drawn)


def _drawn(pairs: Sequence[tuple[str, FormulaPair]]) -> Output:
    drawn, note = _packed(pairs)
    return Output(text=note, response={"drawn": drawn})


def _packed(pairs: Sequence[tuple[str, FormulaPair]]) -> tuple[list[tuple[str, str]], str]:
    """Payloads of pairs, and why there are none."""
    from loupe.data.user_folders import cache_folder
    from loupe.metrics.cdm.drawing.drawings import draw_pairs
    from loupe.metrics.cdm.drawing.rendering import RenderCache
    from loupe.metrics.cdm.drawing.tex_setup import MissingTexError

    found: list[tuple[str, str]] = []
    cache = RenderCache(cache_folder())
    kinds = sorted(pairs, key=lambda item: item[1].profile)
    try:
        for profile, same in itertools.groupby(kinds, lambda item: item[1].profile):
            members = list(same)
            sides = [(pair.prediction, pair.reference) for _, pair in members]
            drawn = draw_pairs(sides, profile=profile, cache=cache)
            for (key, _), each in zip(members, drawn, strict=True):
                sides_of = {"prediction": _side(each.prediction), "reference": _side(each.reference)}
                found.append((key, compressed({"f1": each.f1, **sides_of})))
    except MissingTexError as error:
        return found, f"TeX is missing here ({', '.join(error.missing)}); {error.hint}"
    finally:
        cache.close()
    return found, ""


def _side(side: Any) -> JsonObject:
    picture = base64.b64encode(side.picture).decode()
    return {
        "picture": f"data:image/webp;base64,{picture}" if picture else "",
        "size": list(side.size),
        "boxes": [
            [without_surrogates(token), *box, partner, without_surrogates(why)]
            for token, box, partner, why in side.boxes[:BOXES]
        ],
        "hidden": max(0, len(side.boxes) - BOXES),
        "failure": without_surrogates(side.failure),
    }
