"""Keys that every kind around a vendor's package has."""

from __future__ import annotations

from typing import Any

from loupe.engines.registry import Profile


class SdkSettings(Profile, frozen=True, kw_only=True):
    """`concurrency` is the number of worker processes: each loads the models, so one is right for one GPU.

    `dpi` is for PDF pages. `load_timeout` is how long loading may take, in seconds: the first time a package may fetch
    its models.
    """

    concurrency: int | None = 1
    dpi: float = 200.0
    load_timeout: float = 3600.0

    def signature(self) -> dict[str, str]:
        """What the image is made of."""
        return {"img": f"dpi{self.dpi:g}"}

    def defining(self) -> dict[str, Any]:
        """How long we wait, and where a server stands, changes no answer."""
        skipped = {"load_timeout", "base_url"}
        return {key: value for key, value in super().defining().items() if key not in skipped}
