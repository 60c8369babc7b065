"""Names of models on a hub, which a folder of the same name must not take over, and places of your own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loupe.errors import UsageError


def refuse_folder_instead(model: str, folder: Path | None = None) -> None:
    """Raises UsageError where `folder` (the working folder) has one that is called like the model.

    Libraries and servers load it in place of the model on the hub, and run the code in it. Who means a folder of their
    own writes it as a path: `./MODEL`.
    """
    place = (folder or Path()) / model
    if model and not model.startswith((".", "/", "~")) and place.is_dir():
        raise UsageError(
            f"{place.absolute()} would be loaded instead of the model {model}, and its code would run",
            hint=f"if you mean the folder: ./{model}; else work in another folder, or move it away",
        )


def from_anywhere(value: Any) -> Any:
    """Return a setting for a process that starts in another folder: `./MODEL` and the like as absolute paths.

    >>> from_anywhere({"model": "org/model", "paths": ["/weights"]})
    {'model': 'org/model', 'paths': ['/weights']}
    """
    if isinstance(value, str):
        return str(Path(value).absolute()) if value.startswith(("./", "../")) else value
    if isinstance(value, Mapping):
        return {name: from_anywhere(one) for name, one in value.items()}
    return [from_anywhere(one) for one in value] if isinstance(value, list | tuple) else value
