"""Fox's page OCR as published: `focus_benchmark_test.zip`, read as it is, or the folder that it unpacks to.

Layout: docs/benchmarks/fox.md. It was not verified against the data itself, so what does not fit is
refused with what was expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from loupe.data.packed import open_zip, read_member
from loupe.errors import DatasetError
from loupe.files.foreign import is_inside, read_data
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE, PackedImage, PageSource

Language: TypeAlias = Literal["en", "zh"]

FOLDER = "focus_benchmark_test"
#: What upstream calls the languages.
UPSTREAM: dict[Language, str] = {"en": "en", "zh": "cn"}
LAYOUT = (
    f"{FOLDER}.zip, or {FOLDER}/ with en_page_ocr.json, en_pdf_png/, cn_page_ocr.json, cn_pdf_png/; "
    "or the prepared form (metadata.jsonl)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageItem:
    """One page: its id, image, text, and the number of tokens of the text, if the data says it."""

    id: str
    image: PageSource
    text: str
    tokens: int | None


class _Turn(msgspec.Struct):
    value: str
    speaker: str = msgspec.field(name="from")


class FoxItem(msgspec.Struct):
    """A page in the list that Fox publishes; `len` is the number of tokens of its text."""

    image: str
    conversations: list[_Turn]
    len: int | None = None

    @property
    def text(self) -> str | None:
        """What stands on the page, if the list says it."""
        return next((turn.value for turn in self.conversations if turn.speaker == "gpt"), None)


@dataclass(frozen=True, slots=True)
class Files:
    """A place with Fox's files: its name, the content of one of them, and the image of a name, None if missing."""

    path: Path
    read: Callable[[str], bytes]
    image: Callable[[str], PageSource | None]


def find_files(root: Path) -> Files | None:
    """The folder or zip at `root`, or in it; None if there is neither."""
    for folder in (root, root / FOLDER):
        if any((folder / f"{code}_page_ocr.json").is_file() for code in UPSTREAM.values()):
            return _in_folder(folder)
    archives = [root] if root.suffix == ".zip" else sorted(root.glob(f"*{FOLDER}*.zip"))
    return _in_zip(archives[0]) if archives and archives[0].is_file() else None


def read_pages(files: Files, language: Language) -> Iterator[PageItem]:
    """The pages of one language, in file order. Raises DatasetError for what is missing or has another form."""
    code = UPSTREAM[language]
    name = f"{code}_page_ocr.json"
    try:
        items = json_decoder(list[FoxItem]).decode(files.read(name))
    except (OSError, KeyError):
        hint = f"-o language={'zh' if language == 'en' else 'en'} leaves it out; expected {LAYOUT}"
        raise DatasetError(f"{files.path}: {name} is missing", hint=hint) from None
    except UNDECODABLE as error:
        message = f"{files.path}: {name} is not the list of image, len and conversations that Fox publishes ({error})"
        raise DatasetError(message, hint="loupe data verify") from None
    seen: dict[str, int] = {}
    for item in items:
        image = files.image(f"{code}_pdf_png/{item.image}")
        if image is None:
            raise DatasetError(f"{files.path}: no image {code}_pdf_png/{item.image}", hint=f"expected {LAYOUT}")
        text = item.text
        if text is None:
            raise DatasetError(f"{files.path}: {name} has no text for {item.image}", hint="loupe data verify")
        stem = item.image.rpartition(".")[0] or item.image
        ident = stem if stem.startswith(f"{code}_") else f"{code}_{stem}"
        seen[ident] = seen.get(ident, 0) + 1
        ident += f"_again{seen[ident]}" if seen[ident] > 1 else ""
        yield PageItem(id=ident, image=image, text=text, tokens=item.len)


def _in_folder(folder: Path) -> Files:
    def image(name: str) -> Path | None:
        path = folder / name
        return path if is_inside(path, folder) and path.is_file() else None

    return Files(folder, lambda name: read_data(folder / name), image)


def _in_zip(path: Path) -> Files:
    archive = open_zip(path)
    members = set(archive.namelist())
    known = (name for name in sorted(members) if name.endswith("_page_ocr.json"))
    first = next(known, None)
    if first is None:
        raise DatasetError(f"{path}: holds no en_page_ocr.json", hint=f"expected {LAYOUT}")
    top = first[: first.rfind("/") + 1]
    return Files(
        path,
        lambda name: read_member(archive, f"{top}{name}"),
        lambda name: PackedImage(path, f"{top}{name}") if f"{top}{name}" in members else None,
    )
