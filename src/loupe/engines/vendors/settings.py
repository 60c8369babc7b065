"""Keys that every kind around a vendor's package has."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from loupe.engines.chat.discovery import check_addresses
from loupe.engines.registry import Profile
from loupe.runs.info import digest_of


class SdkSettings(Profile, frozen=True, kw_only=True):
    """`concurrency` is the number of worker processes: each loads the models, so one is right for one GPU.

    `dpi` is for PDF pages. `download` lets the package fetch models that are not on this machine. `load_timeout` is how
    long loading may take, in seconds.
    """

    concurrency: int | None = 1
    dpi: float = 200.0
    download: bool = False
    load_timeout: float = 3600.0

    def __post_init__(self) -> None:
        """Raises ValueError for an address that holds a key: packages write addresses into their messages."""
        written = getattr(self, "base_url", [])
        urls = [url for url in ([written] if isinstance(written, str) else written) if url]
        check_addresses(urls)
        for url in urls:
            if urlsplit(url).query:
                raise ValueError("base_url holds a query, which no vendor's package can take")

    def signature(self) -> dict[str, str]:
        """What the image is made of, and a digest of all settings that can change an answer."""
        return {"img": f"dpi{self.dpi:g}", "set": digest_of([self.defining()])[:8]}

    def defining(self) -> dict[str, Any]:
        """How long we wait, where a server stands, and whether models are fetched, changes no answer."""
        skipped = {"load_timeout", "base_url", "download"}
        return {key: value for key, value in super().defining().items() if key not in skipped}
