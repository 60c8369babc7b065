"""The environment of processes that Loupe starts: without the keys that are meant for Loupe alone."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from loupe.data.python_process import PATH_VARIABLE, python_path

#: What Loupe itself takes keys from.
OWN_KEYS = frozenset(
    {
        "LOUPE_API_KEY",
        "LOUPE_GIVEN_API_KEY",
        "LOUPE_SERVE_API_KEY",
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
    }
)
_SECRET = re.compile(r"(^|_)(API)?(KEYS?|TOKENS?|SECRETS?|PASSWORDS?|PASSWD|CREDENTIALS?)(_|$)", re.I)


def without_keys(passed: Collection[str] = ()) -> dict[str, str]:
    """For a user's program or function: everything but Loupe's own keys; of these, those named in `passed`."""
    return {name: value for name, value in os.environ.items() if name not in OWN_KEYS or name in passed}


def without_secrets() -> dict[str, str]:
    """For what needs no key at all (scorers, local models): nothing whose name says that it is a secret."""
    return importing_safely({name: value for name, value in os.environ.items() if not _SECRET.search(name)})


def importing_safely(environment: dict[str, str]) -> dict[str, str]:
    """For programs that we choose: if one of them is Python, it imports nothing from the working folder.

    A user's own program is started as he would start it, and may need what lies beside it.
    """
    return {**environment, "PYTHONSAFEPATH": "1", PATH_VARIABLE: python_path(environment)}
