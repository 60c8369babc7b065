"""List installed benchmarks, and find names of one's own for runs of anything else that is called like one of them.

Only ids are listed here; nothing is imported. Whoever files, opens or unpacks a run asks `id_apart`, so no folder and
no file passes for a published benchmark anywhere.
"""

from __future__ import annotations

import functools
import pkgutil
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

import loupe
from loupe.hooks import Hook, found
from loupe.runs.info import RunInfo

#: Letters that look like one of ASCII, line by line with what they look like: Cyrillic, Greek, Armenian, Cherokee, and
#: others of Latin. Source: UTS 39, Unicode Security Mechanisms, its confusables, those of whole letters.
_ALIKE: Final = (
    ("АВЕЅІЈКМНОРСТУХԚԜѴӀавеѕіјкмнорстухԛԝѵӏһԁгпьԍ", "abesljkmhopctyxqwvlabesljkmhopctyxqwvlhdrnbg"),
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβγεηικνορστυχωϲϹϳ", "abezhlkmnoptyxabyenlkvopotuxwccj"),
    ("ՕՏԼՍօոսհցզյ", "osluonuhgqj"),
    ("ᎪᏴᏟᎬᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ", "abcehjklmprstvwz"),
    ("ıɑɡɩɪɴʀʏʙʜʟᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱøłđħŧ", "lagllnrybhlacdejkmoptuvwzfsoldht"),
    ("01i|", "olll"),
)
_LOOKS_LIKE: Final = str.maketrans(*map("".join, zip(*_ALIKE, strict=True)))
#: What else lies in the folder of benchmarks.
_NO_BENCHMARKS = frozenset({"registry", "shared", "folders", "published"})


def benchmark_ids() -> list[str]:
    """The ids of all installed benchmarks, sorted; nothing is imported."""
    return sorted(installed_benchmarks())


def is_installed(name: str) -> bool:
    """True if `id` or `id@version` names an installed benchmark, of whatever version; nothing is imported."""
    return name.partition("@")[0] in benchmark_ids()


@functools.cache
def installed_benchmarks() -> Mapping[str, Hook]:
    """Return the place of every benchmark by its id: those in this folder, of features, and of other distributions."""
    folders = [str(Path(each) / "benchmarks") for each in loupe.__path__]
    names = {info.name for info in pkgutil.iter_modules(folders) if not info.name.startswith("_")} - _NO_BENCHMARKS
    own = {name: Hook(name, f"loupe.benchmarks.{name}:benchmark") for name in names}
    return {**own, **found("benchmarks", own)}


def id_apart(benchmark: str, ident: str) -> str:
    """Return the id for runs of `benchmark`, a name or path, that would be `ident`.

    An id like that of an installed benchmark belongs to this benchmark alone.

    >>> id_apart("docvqa", "docvqa"), id_apart("/data/docvqa", "docvqa"), id_apart("/data/letters", "letters")
    ('docvqa', 'own-docvqa', 'letters')
    """
    if not _is_like_installed(ident) or (benchmark.partition("@")[0] == ident and is_installed(ident)):
        return ident
    return f"own-{ident}"


def title_apart(benchmark: str, title: str) -> str:
    """Return the title of `benchmark`, a name or path; a title with the name of an installed benchmark is its alone.

    >>> title_apart("docvqa", "DocVQA"), title_apart("/data/letters", "Doc VQA 2"), title_apart("/data/letters", "Mail")
    ('DocVQA', 'own-Doc VQA 2', 'Mail')
    """
    is_like = not is_installed(benchmark) and any(_bare(ident) in _bare(title) for ident in benchmark_ids())
    return f"own-{title}" if is_like else title


def named_apart(info: RunInfo) -> RunInfo:
    """Return what a `run.json` says, with an id that is no installed benchmark's unless this is its run."""
    ident = id_apart(info.benchmark, info.benchmark_id)
    if ident == info.benchmark_id:
        return info
    signed = signed_apart(info.signature, info.benchmark_id, ident)
    return msgspec.structs.replace(info, benchmark_id=ident, signature=signed)


def signed_apart(signature: str, before: str, ident: str) -> str:
    """Return a signature that begins with another id."""
    return f"{ident}:{signature.removeprefix(f'{before}:')}" if signature.startswith(f"{before}:") else signature


def _is_like_installed(ident: str) -> bool:
    return _bare(ident.partition("@")[0]) in {_bare(one) for one in benchmark_ids()}


def _bare(name: str) -> str:
    """Return the letters and digits of a name as people see them: those that look alike are one letter.

    >>> _bare("OCR-Bench") == _bare("0crb\u0435nch") == _bare("\uff2f\u0421R\u200bbench") != _bare("OCRBench v2")
    True
    """
    letters = "".join(each for each in unicodedata.normalize("NFKD", name) if not unicodedata.combining(each))
    folded = letters.translate(_LOOKS_LIKE).casefold().translate(_LOOKS_LIKE)
    return re.sub(r"[\W_\u115f\u1160]", "", folded).replace("rn", "m")
