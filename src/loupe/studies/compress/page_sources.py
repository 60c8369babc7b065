"""Pages for `loupe compress`, and their ground truth: an image or a folder of them, a text or texts of the same names.

Fox's own `en_page_ocr.json` is taken, too: it has the number of tokens of each text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.fox.files import FoxItem
from loupe.benchmarks.registry import check_options, shown_options
from loupe.engines.pages.page_images import MIME_TYPES
from loupe.errors import DatasetError, UsageError
from loupe.files.foreign import decode_text, read_data
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE, PageSource

_TEXTS = (".txt", ".md")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundTruth:
    """The text of a page, and how many tokens it has if somebody counted them."""

    text: str
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionPage:
    """A page image, with its text where it is known."""

    image: PageSource
    name: str
    truth: GroundTruth | None = None


def find_pages(image: Path, ground_truth: Path | None = None, *, tokens: int | None = None) -> list[CompressionPage]:
    """The page at `image`, or those of the folder there in order of their names. `tokens`: of the text of one page.

    Raises DatasetError where an image or a text is missing, empty or unreadable, UsageError where they do not fit.
    """
    images = _images(image)
    if tokens is not None and (len(images) > 1 or ground_truth is None):
        raise UsageError("--gt-tokens is for one page with its --ground-truth", hint="--image page.png")
    if ground_truth is None:
        return [CompressionPage(image=one, name=one.name) for one in images]
    if not ground_truth.exists():
        raise DatasetError(f"{ground_truth}: no such file", hint="--ground-truth FILE, or a folder of NAME.txt")
    truths = _truths(ground_truth, images)
    missing = [one.name for one in images if one.name not in truths]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise DatasetError(
            f"{ground_truth}: no text for {missing[0]}{more}",
            hint=f"expected {Path(missing[0]).stem}.txt or .md there, or Fox's JSON with the names of the images",
        )
    for one in images:
        if not truths[one.name].text.strip():
            raise DatasetError(f"{ground_truth}: the ground truth of {one.name} is empty", hint="give the page's text")
    if tokens is not None:
        only = truths[images[0].name]
        truths = {images[0].name: GroundTruth(text=only.text, tokens=tokens)}
    return [CompressionPage(image=one, name=one.name, truth=truths[one.name]) for one in images]


def pages_of_benchmark(name: str, data: Path | None, options: Mapping[str, str]) -> list[CompressionPage]:
    """The pages of a benchmark with their texts and, where it counts them, tokens. Raises UsageError for none."""
    benchmark = get_benchmark(name)
    # Words are not compared here, so that nothing needs to be installed for them.
    given = ({"words": "none"} if "words" in shown_options(benchmark) else {}) | dict(options)
    found = []
    for sample in benchmark.load(data, **check_options(benchmark, given)):
        text, tokens = benchmark.reference(sample), getattr(sample.truth, "tokens", None)
        truth = GroundTruth(text=text, tokens=tokens) if text.strip() else None
        found += [CompressionPage(image=image, name=sample.id, truth=truth) for image in sample.images[:1]]
    if not found:
        raise UsageError(f"{name}: no page images", hint="loupe compress --image PATH")
    return found


def _images(image: Path) -> list[Path]:
    if not image.exists():
        raise DatasetError(f"{image}: no such file", hint="--image FILE, or a folder of images")
    if not image.is_dir():
        return [image]
    found = sorted(path for path in image.iterdir() if path.suffix.lower() in MIME_TYPES and path.is_file())
    if not found:
        raise DatasetError(f"{image}: no image in this folder", hint=f"expected {', '.join(MIME_TYPES)}")
    return found


def _truths(place: Path, images: list[Path]) -> Mapping[str, GroundTruth]:
    """Texts by name of the image."""
    if place.is_dir():
        files = {
            one.name: place / f"{one.stem}{suffix}"
            for one in images
            for suffix in reversed(_TEXTS)
            if (place / f"{one.stem}{suffix}").is_file()
        }
        return {name: GroundTruth(text=_read(file)) for name, file in files.items()}
    if place.suffix.lower() == ".json":
        return _fox_truths(place)
    if len(images) > 1:
        raise UsageError(
            f"{place}: one text for {len(images):,} pages", hint="--ground-truth FOLDER with NAME.txt for NAME.png"
        )
    return {images[0].name: GroundTruth(text=_read(place))}


def _fox_truths(place: Path) -> Mapping[str, GroundTruth]:
    try:
        items = json_decoder(list[FoxItem]).decode(read_data(place))
    except UNDECODABLE as error:
        raise DatasetError(
            f"{place}: not the list of image, len and conversations that Fox publishes ({error})",
            hint="--ground-truth page.txt",
        ) from None
    return {item.image: GroundTruth(text=item.text or "", tokens=item.len) for item in items}


def _read(path: Path) -> str:
    try:
        return decode_text(read_data(path))
    except UnicodeDecodeError:
        raise DatasetError(f"{path}: not a text in UTF-8", hint="save it as UTF-8") from None
