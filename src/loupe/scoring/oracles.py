"""The official evaluators' answers that a checkout holds: `tests/oracles/NAME/cases.tar.xz`, read in memory.

Each archive holds files of one JSON object per line, with `id`, `input` and `expected`; the README beside it says how
they were made. A file is read in a tenth of a second, so nothing is ever unpacked.
"""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path
from typing import Any

import loupe
from loupe.errors import DatasetError
from loupe.typed import decode_json
from loupe.types import ParityCases

Case = dict[str, Any]

#: Beside the package in a checkout; an installed package has no such folder.
FOLDER = Path(loupe.__file__).parents[2] / "tests" / "oracles"
ARCHIVE = "cases.tar.xz"
#: Bytes of one file; the largest has 7 MB.
_LARGEST = 64 * 10**6


def read_oracle(name: str) -> bytes:
    """One file of an archive, by the name of its folder and its own: `omnidocbench/synthetic/gt.json`.

    Raises DatasetError where the archive is missing or broken, or has no such file.
    """
    archive, _, member = name.partition("/")
    path = FOLDER / archive / ARCHIVE
    try:
        with tarfile.open(path, "r:xz") as tar:
            packed = tar.extractfile(member)
            data = b"" if packed is None else packed.read(_LARGEST + 1)
    except (OSError, KeyError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        raise DatasetError(f"{path}: no {member} can be read ({error})", hint="check out the folder again") from None
    if not data or len(data) > _LARGEST:
        raise DatasetError(f"{path}: {member} is empty or larger than {_LARGEST // 10**6} MB")
    return data


def oracle_cases(name: str) -> list[Case]:
    """The cases of one file, in its order. Raises DatasetError as `read_oracle` does."""
    return [decode_json(line) for line in read_oracle(name).splitlines() if line.strip()]


def cases_of(parity: ParityCases) -> list[Case]:
    """Every case of the checkout that `verify` can compare for a benchmark."""
    return [
        one
        for name, cases_from in parity.oracles.items()
        for case in oracle_cases(name)
        for one in (cases_from(case) if cases_from else [case])
    ]
