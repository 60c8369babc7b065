"""The NVIDIA cards of this machine, as `nvidia-smi` lists them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from loupe.errors import UsageError
from loupe.features.size.models_and_cards import Gpu, gpu, known_cards
from loupe.helpers import said_by

#: Stands for the card of this machine.
AUTO = "auto"
_QUERY = ("--query-gpu=index,uuid,name,memory.total,compute_cap", "--format=csv,noheader,nounits")
#: Cards from here on multiply in FP8 (Ada, Hopper, Blackwell).
_FP8_FROM = (8, 9)
#: A card reports up to so much less than its marketing size: the driver, and memory that corrects errors, take some.
_REPORTED = Fraction(9, 10)
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_HINT = "name the card that the server will have: H100, or its size in GB"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    index: str
    uuid: str
    gpu: Gpu


def card(text: str, chosen: Sequence[str], environment: Mapping[str, str]) -> Gpu:
    """A card by name or size, or with `auto` the one that is here. Raises UsageError for none."""
    return this_gpu(chosen, environment) if text == AUTO else gpu(text)


def this_gpu(chosen: Sequence[str], environment: Mapping[str, str]) -> Gpu:
    """The smallest of the cards that a server would use: those that are chosen, else the first one visible.

    Cards are chosen by index or UUID, as in CUDA_VISIBLE_DEVICES. Raises UsageError where there is none.
    """
    listed = _listed()
    visible = environment.get(_VISIBLE)
    wanted = list(chosen) or ([] if visible is None else [visible.partition(",")[0].strip()])
    if not wanted:
        return listed[0].gpu
    if "" in wanted:
        raise UsageError(f"{_VISIBLE} is set and names no GPU", hint=f"unset {_VISIBLE}, or {_HINT}")
    found = [each.gpu for each in listed for name in wanted if name == each.index or each.uuid.startswith(name)]
    if len(found) < len(wanted):
        raise UsageError(f"no GPU {', '.join(wanted)} among the {len(listed)} of this machine", hint=_HINT)
    return min(found, key=lambda card: card.gb)


def _listed() -> list[_Listed]:
    program = shutil.which("nvidia-smi")
    if program is None:
        raise UsageError("no NVIDIA GPU on this machine (no nvidia-smi)", hint=_HINT)
    try:
        done = said_by([program, *_QUERY], seconds=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"nvidia-smi does not answer: {type(error).__name__}", hint=_HINT) from None
    rows = [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()]
    found = [_card(*row) for row in rows if len(row) == 5 and row[3].isdigit()] if done.returncode == 0 else []
    if not found:
        said = " ".join((done.stderr or done.stdout).split())[:200]
        raise UsageError(f"nvidia-smi lists no GPU{f': {said}' if said else ''}", hint=_HINT)
    return found


def _card(index: str, uuid: str, name: str, mib: str, capability: str) -> _Listed:
    """A card that is known by name has its marketing size, with which the published tables count; others their own."""
    reported = Fraction(int(mib), 1024)
    words = set(re.split(r"[^A-Za-z0-9]+", name))
    for known in sorted(known_cards(), key=lambda card: -len(card.name)):
        if set(known.name.split()) <= words and _REPORTED * known.gb <= reported <= known.gb:
            return _Listed(index=index, uuid=uuid, gpu=known)
    numbers = tuple(int(part) for part in re.findall(r"\d+", capability))
    unknown = Gpu(name, Fraction(int(reported)), () if numbers >= _FP8_FROM else (name,))
    return _Listed(index=index, uuid=uuid, gpu=unknown)
