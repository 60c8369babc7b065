"""Names of models on a hub, which a folder of the same name must not take over."""

from __future__ import annotations

from pathlib import Path

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
