"""Names of files made from ids that somebody else chose: readable, one to one, and never outside their folder."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import PurePosixPath

_UNSAFE = re.compile(r'[%\\:*?"<>|\x00-\x1f\x7f\ud800-\udfff]')
_LONGEST_NAME = 180
TIFF_SUFFIXES = (".tif", ".tiff")
#: How files are called that may be images; what they are is decided by their content.
IMAGE_SUFFIXES = frozenset(
    (
        *TIFF_SUFFIXES,
        *(".png", ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".gif", ".bmp", ".dib", ".heic", ".heif", ".hif"),
        *(".avif", ".jp2", ".j2k", ".jpf", ".jpx", ".j2c", ".jpc", ".ppm", ".pgm", ".pbm", ".pnm"),
    )
)

_LONGEST_SUFFIX = max(map(len, IMAGE_SUFFIXES))


def safe_name(sample_id: str) -> str:
    """A relative file stem for a sample id: readable, one to one, and never outside its folder.

    Sub-folders of an id are kept. Characters that some file system refuses are percent-encoded, `.` and `..` too;
    a part longer than 180 bytes is cut and gets a digest.

    >>> safe_name("headers/page 1"), safe_name("../x"), safe_name("a:b")
    ('headers/page 1', '%2E%2E/x', 'a%3Ab')
    """
    return "/".join(_safe_part(part) for part in sample_id.split("/"))


def safe_names(sample_id: str) -> list[str]:
    """The stems under which a file for a sample may stand: the id, its safe name, and one that no other id shares
    where the disk does not tell capitals or Unicode forms apart.
    """
    safe = safe_name(sample_id)
    digest = hashlib.sha256(sample_id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return [sample_id, safe, f"{safe}%~{digest}"]


def as_on_any_disk(name: str) -> str:
    """The name as a disk sees it that tells neither capitals nor Unicode forms apart."""
    return same_form(same_form(name).casefold())


def _safe_part(part: str) -> str:
    if part in ("", ".", ".."):
        return "%2E" * len(part) or "%00"
    encoded = _UNSAFE.sub(lambda found: _escape(found[0]), part)
    if encoded[-1] in ". ":
        encoded = encoded[:-1] + _escape(encoded[-1])
    if encoded[0] == ".":
        encoded = _escape(".") + encoded[1:]
    raw = encoded.encode("utf-8", "surrogatepass")
    if len(raw) <= _LONGEST_NAME:
        return encoded
    digest = hashlib.sha256(raw).hexdigest()[:16]
    return raw[: _LONGEST_NAME - 18].decode("utf-8", "ignore") + "%~" + digest


def _escape(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def same_form(name: str) -> str:
    """Return a name in the form in which equal names are equal: NFC. macOS writes an umlaut as two characters."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def without_image_suffix(name: str) -> str:
    """Return a name without the suffix of an image or a PDF file; other suffixes stay."""
    if "." not in name[-_LONGEST_SUFFIX:] and not name.endswith("/"):
        return name  # A path of pathlib takes far longer, and there may be a million names.
    path = PurePosixPath(name)
    return str(path.with_suffix("")) if path.suffix.lower() in IMAGE_SUFFIXES | {".pdf"} else name
