"""Names of models on a hub, which a folder of the same name must not take over, and places of your own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from loupe.errors import UsageError

#: Names of settings that hold a place.
_PLACE: Final = re.compile(r"(^|_)(dir|directory|folder|file|path)$", re.IGNORECASE)


def refuse_folder_instead(model: str, folder: Path | None = None) -> None:
    """Raises UsageError where `folder` (the working folder) has one that is called like the model.

    Libraries and servers load it in place of the model on the hub, and run the code in it. Who means a folder of their
    own writes it as a path: `./MODEL`.
    """
    place = (folder or Path()) / model
    if model and not model.startswith((".", "/", "~")) and place.is_dir():
        raise UsageError(
            f"{place.absolute()} would be loaded instead of the model {model}, and its code would run",
            hint=f"write ./{model} if you mean the folder; else work in another folder, or move it away",
        )


def from_anywhere(value: Any, key: str = "") -> Any:
    """Return a setting for a process that starts in another folder, with the places in it as absolute paths.

    A place is what begins with `./`, `../` or `~/`, and any value of a key such as `model_dir` or `config_file`. Raises
    UsageError for another text that is the name of a file here, or for a model that is the name of a folder: it may
    mean either.

    >>> from_anywhere({"model": "org/model", "cache_dir": "/weights"})
    {'model': 'org/model', 'cache_dir': '/weights'}
    """
    if isinstance(value, Mapping):
        return {name: from_anywhere(one, str(name)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [from_anywhere(one, key) for one in value]
    if not isinstance(value, str) or not value or "://" in value:
        return value
    if value.startswith(("./", "../", "~/")) or _PLACE.search(key):
        return str(Path(value).expanduser().absolute())
    # By os.path: a text may be too long for a name, which is no error there.
    bare = ("/" in value or Path(value).suffix) and not value.startswith("/")
    if bare and (os.path.isfile(value) or (os.path.isdir(value) and key.endswith("model"))):  # noqa: PTH112, PTH113
        raise UsageError(
            f"{value} lies in this folder, but the engine starts in an empty one and would not find it",
            hint=f"write ./{value} if you mean the one here; else work in another folder, or move it away",
        )
    return value
