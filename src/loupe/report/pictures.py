"""Page images for the report: small thumbnails as data URLs, full images as links to the originals or as data URLs."""

from __future__ import annotations

import base64
import io
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from PIL import Image

from loupe.data.pages import load_page, thumbnail
from loupe.files.foreign import real_path
from loupe.types import DocumentPage, PackedImage, PageSource

#: A thumbnail's size in bytes before base64 (6 KB after it), kept by trying these (longest side, WebP quality) in turn.
THUMBNAIL_LIMIT = 4_500
_THUMBNAIL_STEPS = ((320, 50), (320, 32), (280, 26), (240, 22), (200, 15), (140, 10))
#: Full pictures of PDF pages and of formats that browsers do not show, where the originals cannot be linked.
_RENDERED = (1100, 55)
#: Full pictures with `embed`; an original of at most this many bytes goes in unchanged.
_EMBEDDED = (2000, 75)
_UNCHANGED_LIMIT = 1_000_000
#: About what an embedded picture of a PDF page weighs.
_PDF_PAGE_BYTES = 200_000
_SHOWN_BY_BROWSERS = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif"}


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small picture as base64 WebP and its width over its height."""

    data: str
    ratio: float


def make_thumbnail(source: PageSource) -> Thumbnail:
    """A small picture of a page, at most THUMBNAIL_LIMIT bytes. Raises PageError."""
    page = thumbnail(source, _THUMBNAIL_STEPS[0][0])
    data = b""
    for longest, quality in _THUMBNAIL_STEPS:
        small = page.copy()
        small.thumbnail((longest, longest), Image.Resampling.LANCZOS)
        data = _webp(small, quality)
        if len(data) <= THUMBNAIL_LIMIT:
            break
    return Thumbnail(base64.b64encode(data).decode(), page.width / page.height)


def full_picture(source: PageSource, *, folder: Path, embed: bool) -> str:
    """The address of a page's full picture: a link relative to `folder`, or a data URL. Raises PageError."""
    if isinstance(source, PackedImage):
        # There is no file to link to.
        return _data_url(load_page(source, longest=(_EMBEDDED if embed else _RENDERED)[0]), _RENDERED[1])
    path = source.path if isinstance(source, DocumentPage) else source
    kind = _SHOWN_BY_BROWSERS.get(path.suffix.lower())
    if not embed:
        return link(path, folder) if kind else _data_url(load_page(source, longest=_RENDERED[0]), _RENDERED[1])
    if kind and path.stat().st_size <= _UNCHANGED_LIMIT:
        return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
    return _data_url(load_page(source, longest=_EMBEDDED[0]), _EMBEDDED[1])


def picture_bytes(source: PageSource) -> int:
    """The size of a page in the report: that of its file; of other pages that of their picture."""
    if isinstance(source, DocumentPage | PackedImage):
        return _PDF_PAGE_BYTES
    return source.stat().st_size if source.is_file() else 0


def link(path: Path, folder: Path) -> str:
    """A relative URL from `folder` to a file (an absolute one where there is no relative way, as between drives)."""
    try:
        relative = os.path.relpath(real_path(path), real_path(folder))
    except ValueError:
        return real_path(path).as_uri()
    return quote(Path(relative).as_posix())


def _data_url(page: Image.Image, quality: int) -> str:
    return f"data:image/webp;base64,{base64.b64encode(_webp(page, quality)).decode()}"


def _webp(page: Image.Image, quality: int) -> bytes:
    buffer = io.BytesIO()
    page.save(buffer, "WEBP", quality=quality, method=3)
    return buffer.getvalue()
