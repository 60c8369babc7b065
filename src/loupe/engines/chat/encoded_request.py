"""A request whose images are in memory already, as they are to be sent: the regions of a page that was cut up."""

from __future__ import annotations

from dataclasses import dataclass, field

from loupe.engines.pages.page_images import EncodedImage
from loupe.types import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRequest(Request):
    """Asked like any other; `encoded` takes the place of `images`. The id alone tells two of them apart."""

    encoded: tuple[EncodedImage, ...] = field(default=(), compare=False, repr=False)
