"""Files that are not pages: what they are, by their content or their name, and what makes pages of them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from loupe.data.extras import pip_install

#: What files that are no image often are, by what stands near their start (in lower case).
_BY_CONTENT: Final = (
    ((b"%!ps", b"\xc5\xd0\xd3\xc6"), "PostScript"),
    ((b"<svg", b"<?xml"), "an SVG or XML file"),
    ((b"8bps",), "a Photoshop file"),
    ((b"<!doctype html", b"<html"), "a web page"),
    ((b"version https://git-lfs",), "a pointer of Git LFS (git lfs pull brings the image)"),
    ((b"pk\x03\x04",), "a zip archive or an office document"),
    ((b"\xd7\xcd\xc6\x9a", b" emf"), "a Windows metafile"),
    ((b"at&tform",), "a DjVu document"),
)
#: Formats that only some installations decode: their marks, what they are, and the package that reads them.
_BY_PACKAGE: Final = {
    "HEIF": (
        (b"ftypheic", b"ftypheix", b"ftypheim", b"ftypheis", b"ftyphevc", b"ftyphevx", b"ftypmif1", b"ftypmsf1"),
        *("a HEIC photo", "pillow-heif"),
    ),
    "AVIF": ((b"ftypavif", b"ftypavis"), "an AVIF image", "pillow>=11.3"),
}
#: What a file is by its suffix, and what to do with it.
_BY_SUFFIX: Final = {
    "an office document has no fixed pages; convert it to PDF: soffice --headless --convert-to pdf FILE": (
        "doc docx docm dot dotx odt rtf pages wpd xls xlsx xlsm xlsb ods numbers ppt pptx odp key epub"
    ),
    "a text file is not a page": "txt text md markdown rst tex csv tsv json jsonl ndjson xml yaml yml toml ini log srt",
    "a web page or mail; print it to PDF": "htm html xhtml mht mhtml eml msg",
    "an archive; unpack it here": "zip rar 7z tar gz tgz bz2 xz zst cbz cbr",
    "PostScript; convert it to PDF: ps2pdf FILE": "ps eps ai",
    "a DjVu document; convert it to PDF: ddjvu -format=pdf FILE FILE.pdf": "djvu djv",
    "a drawing; save it as PNG or PDF": "svg svgz emf wmf dwg dxf",
    "an image editor's own format; save it as PNG": "psd psb xcf",
    "a camera's raw format; save it as TIFF or PNG": "dng cr2 cr3 nef arw orf rw2 raf",
    "an XPS document; print it to PDF": "xps oxps",
    "a video; save its frames as PNG": "mp4 mov avi mkv webm m4v",
}
UNKNOWN: Final = "neither an image nor a PDF file"
#: What `why_not_an_image` says of bytes that look like nothing it knows.
NOT_AN_IMAGE: Final = "not an image, or a broken one"
#: What systems put into folders by themselves.
SYSTEM_FILES: Final = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r"})


def why_not_an_image(start: bytes, readable: Collection[str], file: Path | None) -> tuple[str, str]:
    """Return what a file is that begins so, and the command that makes it readable ("": none does).

    `file` is None for bytes that have no file of their own. `readable` are the formats that can be decoded here
    (Pillow's names).
    """
    said = start[:64].lower()
    for name, (marks, kind, package) in _BY_PACKAGE.items():
        if name not in readable and any(mark in said for mark in marks):
            return f"is {kind}, which needs {package}", pip_install(package)
    if kind := next((kind for marks, kind in _BY_CONTENT if any(mark in said for mark in marks)), ""):
        return f"is {kind}, which Loupe cannot open: save it as PNG or JPEG", ""
    if b"%PDF-" in start:
        return "is a PDF, not an image", f"rename it to {file.stem}.pdf" if file else "save its pages as PNG"
    return NOT_AN_IMAGE, ""


def why_not_a_page(path: Path) -> str:
    """Return what a file is that is neither an image nor a PDF file, by its name."""
    suffix = path.suffix.lower().lstrip(".")
    return next((why for why, suffixes in _BY_SUFFIX.items() if suffix and suffix in suffixes.split()), UNKNOWN)
