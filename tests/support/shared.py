"""Cases of the official evaluators, from the repository; and the folder with real data beside the checkout.

Every clone has `tests/oracles`. Only data of other people lies in `../shared`; the tests that need it skip without it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loupe.scoring.oracles import oracle_cases

SHARED = Path(__file__).parents[3] / "shared"


def shared(relative: str) -> Path:
    """A path below the shared folder; skips the test or the module, naming the path, where it is missing."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(_missing(path), allow_module_level=True)
    return path


def cases(relative: str) -> list[dict[str, Any]]:
    """The cases of one file of the repository: `oracles/FOLDER/FILE`."""
    return oracle_cases(relative.removeprefix("oracles/"))


def shared_cases(relative: str) -> list[dict[str, Any]]:
    """The cases of one file of the shared folder; skips the test or the module where it is missing."""
    return [json.loads(line) for line in shared(relative).read_text(encoding="utf-8").splitlines() if line.strip()]


def shared_parameters(relative: str, *first: object) -> list[Any]:
    """These cases as parameters of a test, after those given; without the file, one that skips and names it."""
    if not (path := SHARED / relative).exists():
        return [pytest.param(*first, {}, id=relative, marks=pytest.mark.skip(reason=_missing(path)))]
    return [pytest.param(*first, case, id=str(case["id"])) for case in shared_cases(relative)]


def _missing(path: Path) -> str:
    return f"SKIPPED: {path} is not here, so nothing is checked against it"
