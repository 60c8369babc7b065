"""A run that is asked for again: the samples left to ask, its server, the origin of its data, a result that may stand.

Scoring an unchanged run again is then reading its samples once; no score is looked at, no interval drawn.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from loupe.benchmarks.registry import data_set
from loupe.data.hub.manifest import read_manifest
from loupe.data.hub.origin import HUB, NAMED, UNKNOWN, is_named, origin_of
from loupe.data.hub.store import default_root
from loupe.engines.chat.discovery import addresses_of
from loupe.engines.chat.endpoints import Offer, is_listed, offer_of
from loupe.engines.chat.settings import Settings
from loupe.engines.registry import Profile
from loupe.pipeline.plan import Survey
from loupe.runs.folder import PREDICTIONS, RunFolder, check_same
from loupe.runs.info import RunInfo
from loupe.runs.places import Place
from loupe.scoring.digest import scorer_digest
from loupe.typed import encode_json
from loupe.types import RETRIED, Benchmark, DataSet, Result, Sample


def unproven_origin(info: RunInfo) -> str:
    """Return where the data of a run came from if not from the benchmark's place on the hub.

    `pack`, `named` (the user named its place, or put it into the store) or `unknown`. "" if it came from the hub, and
    for what has no published set there: folders, Python files, generated pages.
    """
    found = data_set(info.benchmark)
    if found is None:
        return ""
    root = _root(info, found)
    origin = origin_of(root)
    if origin == UNKNOWN and (not info.data or is_named(info.data, info.data_seal)):
        return NAMED
    if origin != HUB:
        return origin
    published = {found.repo, *(source.repo for source in found.sources.values())}
    return "" if read_manifest(root).repo in published else UNKNOWN


def warnings_of_data(info: RunInfo) -> list[str]:
    """Return the warning of a run whose data is not proven to be the published set."""
    if not unproven_origin(info) or (found := data_set(info.benchmark)) is None:
        return []
    return [
        f"Loupe did not fetch the data in {_root(info, found)}, so it may not be the published set; "
        f"to fetch that: loupe data get {found.id}"
    ]


def _root(info: RunInfo, found: DataSet) -> Path:
    return Path(info.data) if info.data else default_root(found.place)


def standing_result(folder: RunFolder, benchmark: Benchmark, found: Survey) -> Result | None:
    """The stored result, if it was made here and predictions, samples, scorer and scores are as they were then.

    None if a scorer failed, for scoring again tries that again.
    """
    own = folder.sealed_result()
    if own is None or own[0] != made_from(folder, benchmark, found, folder.digest_of(PREDICTIONS)):
        return None
    return None if any(failure.outcome == "scorer" for failure in own[1].failures) else own[1]


def made_from(folder: RunFolder, benchmark: Benchmark, found: Survey, answers: str) -> str:
    """A digest of all that decides about a result; `answers` is the sha256 of the file of predictions."""
    info = folder.info
    facts = [
        scorer_digest(benchmark, info.adapters),
        [found.truth_digest, found.slicing_digest],
        [info.benchmark_id, info.engine, info.signature, info.total, info.limit, info.stopped, list(info.notes)],
        unproven_origin(info),
        answers,
    ]
    return hashlib.sha256(encode_json(facts)).hexdigest()


@dataclass(frozen=True, slots=True)
class Remaining:
    """`done` samples have an answer that stands; the others with a record, `repeated`, are asked again."""

    done: frozenset[str]
    repeated: frozenset[str]

    @classmethod
    def of(cls, asked: Collection[str], places: Mapping[str, Place], redo: Collection[str]) -> Remaining:
        """The samples left of those `asked`; `redo` names classes that are repeated, too.

        A page of which regions were lost is asked again; its answer counts until a better one comes.
        """
        known = {ident: places[ident] for ident in asked if ident in places}
        repeated = {ident for ident, each in known.items() if each.mark in RETRIED or each.mark in redo or each.lost}
        return cls(frozenset(known.keys() - repeated), frozenset(repeated))

    def in_order(self, samples: Callable[[], Iterator[Sample]]) -> Iterator[Sample]:
        """New ones first: what failed once may fail again, and must not keep the run from the others."""
        yield from (each for each in samples() if each.id not in self.done and each.id not in self.repeated)
        if self.repeated:
            yield from (each for each in samples() if each.id in self.repeated)


async def check_finished(folder: RunFolder, profile: Profile) -> str:
    """Say in one line who answered and when, if no server says that it is still the same model; else "".

    Raises RunError if the server that was named has another model: it would be taken for this one's result.
    """
    facts = folder.info.facts
    if "base_url" not in facts:
        return ""
    model = facts.get("model", "")
    offer = await offer_of(profile) if isinstance(profile, Settings) and _leaves_it_open(profile) else Offer()
    if model and offer.listed and not offer.model and is_listed(model, offer.listed):
        return _by_whom(folder)
    if model and (now := offer.model or ", ".join(offer.listed)):
        check_same(folder.path, folder.info, msgspec.structs.replace(folder.info, facts={**facts, "model": now}))
        return ""
    return _by_whom(folder)


def _leaves_it_open(settings: Settings) -> bool:
    """True if a server that a person named decides about the model."""
    return not (settings.model or settings.serve) and addresses_of(settings.base_url, os.environ).are_named


def _by_whom(folder: RunFolder) -> str:
    info = folder.info
    last = max(folder.prediction_places().values(), key=lambda place: place.offset)
    ended = folder.read_prediction(last).ended
    when = datetime.fromtimestamp(ended, UTC) if isinstance(ended, float) else datetime.fromisoformat(info.created)
    who = info.facts.get("model") or info.engine
    return f"finished on {when:%Y-%m-%d %H:%M} UTC by {who} at {info.facts['base_url']}; nothing was asked"
