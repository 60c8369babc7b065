"""Measure what pages cost in DeepSeek-OCR's resolution modes, and how much of them an engine gives back.

Protocol: docs/compress.md. Scores are those of the benchmark `fox`, from the same code. Pages and ground truth: an
image or a folder of them, a text or texts of the same names, or Fox's `en_page_ocr.json` with the tokens of each text.

Counts of the model's tokenizer (a server's, or `len` of Fox) come first; an estimate is always called one. Its source:
platform.deepseek.com/api-docs/quick_start/token_usage: an English character is about 0.3 tokens, a Chinese one 0.6.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import msgspec

from loupe import __version__
from loupe.benchmarks import get_benchmark
from loupe.benchmarks.registry import check_options, shown_options
from loupe.data.pages import page_size
from loupe.engines.adapters.steps import apply_adapters, check_adapters
from loupe.engines.chat.endpoints import asked_at, chosen_server, key_for
from loupe.engines.chat.exchange import ServerTokenizer, open_session
from loupe.engines.pages.page_images import MIME_TYPES
from loupe.engines.registry import Profile
from loupe.errors import DatasetError, PageError, UsageError
from loupe.features.compress import fox
from loupe.features.compress.fox import FoxItem, PageItem, expected_precision
from loupe.files.foreign import decode_text, read_data
from loupe.inference.progress import Progress
from loupe.inference.prompts import template_for
from loupe.inference.scheduler import Scheduler
from loupe.metrics import compression_ratio, vision_tokens
from loupe.metrics.vision_tokens import MAX_TILES, MODES
from loupe.pipeline.stages import policy_of, watch_of
from loupe.scoring.summary import Origin, summarise
from loupe.servers.keeper import Keeper, open_profile
from loupe.servers.record import kept_folder
from loupe.typed import json_decoder
from loupe.types import FAILED, UNDECODABLE, PageSource, Prediction, Request, Result, Sample, SampleScores

_PER_CHARACTER = 0.3
_PER_CHINESE_CHARACTER = 0.6
_CHINESE = re.compile("[\u3400-\u9fff]")


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has; 0 for an empty one.

    >>> estimated_tokens("Compression of a page"), estimated_tokens("光学压缩")
    (6, 2)
    """
    chinese = len(_CHINESE.findall(text))
    return round(_PER_CHINESE_CHARACTER * chinese + _PER_CHARACTER * (len(text) - chinese))


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
        raise UsageError("--gt-tokens is for one page with its --ground-truth", hint="use --image page.png")
    if ground_truth is None:
        return [CompressionPage(image=one, name=one.name) for one in images]
    if not ground_truth.exists():
        raise DatasetError(f"{ground_truth}: no such file", hint="use --ground-truth FILE, or a folder of NAME.txt")
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
        raise UsageError(f"{name}: no page images", hint="run: loupe compress --image PATH")
    return found


def _images(image: Path) -> list[Path]:
    if not image.exists():
        raise DatasetError(f"{image}: no such file", hint="use --image FILE, or a folder of images")
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
            f"{place}: one text for {len(images):,} pages", hint="use --ground-truth FOLDER with NAME.txt for NAME.png"
        )
    return {images[0].name: GroundTruth(text=_read(place))}


def _fox_truths(place: Path) -> Mapping[str, GroundTruth]:
    try:
        items = json_decoder(list[FoxItem]).decode(read_data(place))
    except UNDECODABLE as error:
        raise DatasetError(
            f"{place}: not the list of image, len and conversations that Fox publishes ({error})",
            hint="use --ground-truth page.txt",
        ) from None
    return {item.image: GroundTruth(text=item.text or "", tokens=item.len) for item in items}


def _read(path: Path) -> str:
    try:
        return decode_text(read_data(path))
    except UnicodeDecodeError:
        raise DatasetError(f"{path}: not a text in UTF-8", hint="save it as UTF-8") from None


#: Tokens of a prompt beside those of the page: the question, the start, the roles of a chat template.
_QUESTION_TOKENS = 64
_TOKENIZER_SECONDS = 60.0
#: The benchmark whose measures these are.
BENCHMARK = "fox"
ESTIMATE = "estimate: 0.3 a character, 0.6 a Chinese one"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCompression:
    """One page in one mode. What could not be measured is None; ratios are rounded to 2 as the reference prints them.

    `compression_gt` is ground truth over nominal tokens (the paper's), `compression_output` output over valid ones
    (the reference program's). `expected` is the paper's precision, found under `expected_for`.
    """

    page: str
    mode: str
    width: int = 0
    height: int = 0
    tiles: tuple[int, int] | None = None
    vision_tokens: int | None = None
    vision_tokens_nominal: int | None = None
    vision_tokens_sequence: int | None = None
    gt_tokens: int | None = None
    gt_tokens_source: str = ""
    compression_gt: float | None = None
    output_tokens: int | None = None
    output_tokens_source: str = ""
    compression_output: float | None = None
    precision: float | None = None
    edits: int | None = None
    edit_distance: float | None = None
    expected: float | None = None
    expected_for: str = ""
    outcome: str = ""
    error: str = ""
    text: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What an engine gave for pages, tidied, and how many tokens texts have by the server's tokenizer."""

    engine: str
    predictions: Mapping[str, Prediction] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    counted: Mapping[str, int] = field(default_factory=dict)


def measure(
    pages: Sequence[CompressionPage],
    modes: Iterable[str],
    *,
    max_tiles: int = MAX_TILES,
    reading: Reading | None = None,
) -> list[PageCompression]:
    """Every page in every mode; without a reading, from the headers of the images and the texts alone.

    A page that cannot be opened has an `error`.
    """
    return [_measured(page, mode, max_tiles, reading) for page in pages for mode in modes]


def _measured(page: CompressionPage, mode: str, max_tiles: int, reading: Reading | None) -> PageCompression:
    try:
        width, height = page_size(page.image)
    except PageError as error:
        return PageCompression(page=page.name, mode=mode, outcome="unreadable", error=error.message)
    spent = vision_tokens(width, height, mode, max_tiles=max_tiles)
    gt_tokens, gt_source = _truth_tokens(page, reading)
    compression_gt = None if gt_tokens is None else compression_ratio(gt_tokens, spent.nominal)
    found: dict[str, Any] = {}
    if reading is not None:
        found = _read_values(page, reading, spent.valid)
    ratio = compression_gt if compression_gt is not None else found.get("compression_output")
    # The paper has pages of text: below 1 it says nothing of a page, such as one with a question.
    compressed = ratio is None or ratio >= 1
    expected, expected_for = expected_precision(gt_tokens, spent.nominal, ratio) if compressed else (None, "")
    return PageCompression(
        page=page.name,
        mode=mode,
        width=width,
        height=height,
        tiles=spent.tiles if spent.local_tiles else None,
        vision_tokens=spent.valid,
        vision_tokens_nominal=spent.nominal,
        vision_tokens_sequence=spent.sequence,
        gt_tokens=gt_tokens,
        gt_tokens_source=gt_source,
        compression_gt=None if compression_gt is None else round(compression_gt, 2),
        expected=expected,
        expected_for=expected_for,
        **found,
    )


def _truth_tokens(page: CompressionPage, reading: Reading | None) -> tuple[int | None, str]:
    """Tokens of the ground truth, and who counted them."""
    if page.truth is None:
        return None, ""
    if page.truth.tokens is not None:
        return page.truth.tokens, "given"
    counted = reading.counted.get(page.truth.text) if reading else None
    return (estimated_tokens(page.truth.text), ESTIMATE) if counted is None else (counted, "server's tokenizer")


def _read_values(page: CompressionPage, reading: Reading, valid: int) -> dict[str, Any]:
    """What the answer is worth. A page that was not read scores as an empty answer, and says so."""
    prediction = reading.predictions.get(page.name)
    if prediction is None:
        return {"outcome": "missing", "error": "never asked"}
    tokens, source = prediction.output_tokens, "usage"
    if prediction.failed:
        tokens, source = None, ""
    elif tokens is None:
        counted = reading.counted.get(prediction.text)
        tokens = estimated_tokens(prediction.text) if counted is None else counted
        source = ESTIMATE if counted is None else "server's tokenizer"
    values: dict[str, Any] = {"outcome": prediction.outcome, "error": prediction.error, "text": prediction.text}
    if tokens is not None:
        ratio = round(compression_ratio(tokens, valid), 2) if valid else None
        values |= {"output_tokens": tokens, "output_tokens_source": source, "compression_output": ratio}
    if page.truth is not None:
        values["reference"] = page.truth.text
        measured = fox.edit_values(prediction.text, page.truth.text)
        values |= {"precision": measured["precision"], "edits": int(measured["edits"])}
        values["edit_distance"] = measured["edit_distance"]
    return values


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page as a sample of `fox`, without truth where its text is not known, with its answer and its scores."""

    sample: Sample
    answer: Prediction
    scores: SampleScores


def pages_read(
    pages: Sequence[CompressionPage], rows: Sequence[PageCompression], reading: Reading, *, max_tiles: int = MAX_TILES
) -> list[ReadPage]:
    """The pages that were asked for, in one mode, with what was read of each."""
    by_name = {page.name: page for page in pages}
    answers = {row.page: reading.predictions.get(row.page) for row in rows}
    return [
        _page_read(by_name[row.page], row, answer, max_tiles)
        for row in rows
        if (answer := answers[row.page]) is not None
    ]


def _page_read(page: CompressionPage, row: PageCompression, answer: Prediction, max_tiles: int) -> ReadPage:
    if row.precision is None or page.truth is None:
        unscored = SampleScores(sample=page.name, outcome=answer.outcome)
        return ReadPage(Sample(id=page.name, images=(page.image,)), answer, unscored)
    item = PageItem(id=page.name, image=page.image, text=page.truth.text, tokens=row.gt_tokens)
    sample = fox.page_sample(item, {"words": "none"}, cast(fox.Mode, row.mode), max_tiles)
    scores = fox.score(sample, msgspec.structs.replace(answer, output_tokens=row.output_tokens))
    tags = {name: value for name, value in sample.tags.items() if name != "words"}
    scored = SampleScores(sample=page.name, tags=tags, outcome=answer.outcome, scores=scores)
    return ReadPage(replace(sample, tags=tags), answer, scored)


def result_of(read: Sequence[ReadPage], *, engine: str) -> Result | None:
    """The pages as a result of `fox`: means with intervals, and bins for the curve. None without any page."""
    if not read:
        return None
    signature = f"compress|n:{len(read)}|engine:{engine}|loupe:{__version__}"
    origin = Origin(benchmark=BENCHMARK, engine=engine, signature=signature, total=len(read))
    return summarise(fox.benchmark, [page.scores for page in read], origin)


async def read_pages(pages: Sequence[CompressionPage], profile: Profile, progress: Progress, keeper: Keeper) -> Reading:
    """Ask an engine for every page that can be opened. Raises EngineUnavailableError where it cannot go on.

    A server that the engine wants started stays with the `keeper`.
    """
    check_adapters(profile.adapters)
    prompt = template_for("text", profile=profile, benchmark=fox.benchmark, benchmark_id=BENCHMARK)
    requests = [
        Request(id=page.name, prompt=prompt, images=(page.image,), task="text", max_tokens=fox.benchmark.max_tokens)
        for page in pages
        if _can_be_opened(page)
    ]
    progress.total = len(requests)
    found: dict[str, Prediction] = {}

    async def keep(prediction: Prediction) -> None:
        text = await asyncio.to_thread(apply_adapters, prediction.text, profile.adapters)
        found[prediction.sample] = msgspec.structs.replace(prediction, text=text)

    if not requests:
        return Reading(engine=progress.engine)
    opened = open_profile(profile, folder=kept_folder("compress"), keeper=keeper, watch=watch_of(progress))
    async with opened as engine:
        progress.tell(chosen_server(engine.facts))
        await Scheduler(engine, policy_of(profile), progress, keep).ask_all(iter(requests))
        facts = dict(engine.facts)
    texts = [page.truth.text for page in pages if page.truth is not None and page.truth.tokens is None]
    texts += [one.text for one in found.values() if one.outcome not in FAILED and one.output_tokens is None]
    counted = await _count(texts, facts, profile) if texts and profile.kind == "openai" else {}
    return Reading(engine=progress.engine, predictions=found, facts=facts, counted=counted)


def _can_be_opened(page: CompressionPage) -> bool:
    try:
        page_size(page.image)
    except PageError:
        return False
    return True


async def _count(texts: Iterable[str], facts: Mapping[str, str], profile: Profile) -> dict[str, int]:
    """Tokens of texts by the server's tokenizer, as far as it has one."""
    counted: dict[str, int] = {}
    key = key_for(asked_at(facts), getattr(profile, "api_key_env", ""), os.environ)
    async with open_session(key, timeout=_TOKENIZER_SECONDS) as session:
        tokenizer = ServerTokenizer(session, facts.get("base_url", "").split(", ")[0], facts.get("model", ""))
        for text in dict.fromkeys(texts):
            tokens = await tokenizer.tokens(text)
            if tokens is not None:
                counted[text] = len(tokens)
    return counted


def doubts(rows: Sequence[PageCompression], reading: Reading) -> Iterator[str]:
    """What speaks against the numbers: tokens that the server says it spent, and tokens that nobody counted."""
    if "deepseek-ocr" in reading.facts.get("model", "").lower():
        odd = [(row, prompt) for row in rows if (prompt := _prompt_tokens(row, reading)) and not _fits(row, prompt)]
        if odd:
            row, prompt = odd[0]
            fitting = [name for name, places in _places(row).items() if 0 <= prompt - places <= _QUESTION_TOKENS]
            others = f"; {' or '.join(fitting)} would fit" if fitting else ""
            yield (
                f"{row.page}: the server spent {prompt:,} tokens on page and question, {row.mode} has "
                f"{row.vision_tokens_sequence:,} places for the page: it reads in another mode{others} "
                f"({len(odd):,} of {len(rows):,} pages)"
            )


def _prompt_tokens(row: PageCompression, reading: Reading) -> int:
    prediction = reading.predictions.get(row.page)
    return (prediction.input_tokens or 0) if prediction else 0


def _fits(row: PageCompression, prompt: int) -> bool:
    return row.vision_tokens_sequence is None or 0 <= prompt - row.vision_tokens_sequence <= _QUESTION_TOKENS


def _places(row: PageCompression) -> dict[str, int]:
    """Places in the prompt by mode; gundam with as many tiles as vLLM and as Transformers allow."""
    found = {mode: vision_tokens(row.width, row.height, mode).sequence for mode in MODES if mode != "gundam"}
    for most in (6, MAX_TILES):
        found[f"gundam with up to {most} tiles"] = vision_tokens(
            row.width, row.height, "gundam", max_tiles=most
        ).sequence
    return found
