"""Fox, page OCR: the text of dense pages in English and Chinese, and DeepSeek-OCR's compression study on them.

Papers: Liu et al., "Focus anywhere for fine-grained multi-page document understanding", arXiv 2405.14295; Wei et al.,
"DeepSeek-OCR", arXiv 2510.18234, table 2 and figure 1. Protocol: docs/benchmarks/fox.md. Official scorer: ucaslcl/Fox
@ 82f720c. The expected values appear next to the measured ones; they are never a pass or a fail.

Data: `focus_benchmark_test.zip`, read as it is, or the folder that it unpacks to. The layout was not verified against
the data itself, so what does not fit is refused with what was expected.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from loupe.benchmarks.shared.word_scores import PageScores, score_page, score_page_swapped_like_official
from loupe.data.extras import install_command, installed
from loupe.data.hub.store import default_root
from loupe.data.packed import open_zip, read_member
from loupe.data.pages import page_size
from loupe.data.prepared import is_prepared, read
from loupe.errors import DatasetError, MissingToolError, UsageError
from loupe.files.foreign import is_inside, read_data
from loupe.metrics import (
    compression_ratio,
    installed_wordnet,
    levenshtein_distance,
    normalized_edit_distance,
    vision_tokens,
)
from loupe.metrics.vision_tokens import MAX_TILES
from loupe.typed import json_decoder
from loupe.types import (
    UNDECODABLE,
    Benchmark,
    DataSet,
    Estimate,
    Measure,
    PackedImage,
    PageSource,
    ParityCases,
    Prediction,
    Result,
    Sample,
    Score,
)

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
        """The text of the page, if the list says it."""
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
        raise DatasetError(message, hint="check the data: loupe data verify") from None
    seen: dict[str, int] = {}
    for item in items:
        image = files.image(f"{code}_pdf_png/{item.image}")
        if image is None:
            raise DatasetError(f"{files.path}: no image {code}_pdf_png/{item.image}", hint=f"expected {LAYOUT}")
        text = item.text
        if text is None:
            raise DatasetError(f"{files.path}: {name} has no text for {item.image}", hint="check it: loupe data verify")
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


#: What pages are binned by; each is a slice of the result.
Binning: TypeAlias = Literal["gt_tokens", "compression_gt", "compression_output"]

TOKEN_BOUNDS = (600, 700, 800, 900, 1000, 1100, 1200, 1300)
RATIO_BOUNDS = (10, 12, 15, 17, 19)
#: Precision of the paper's table 2, by tokens of the page's text, for 64 and 100 vision tokens.
EXPECTED_BY_TOKENS: Mapping[str, Mapping[int, float]] = {
    "600-700": {64: 0.965, 100: 0.985},
    "700-800": {64: 0.938, 100: 0.973},
    "800-900": {64: 0.838, 100: 0.968},
    "900-1000": {64: 0.859, 100: 0.968},
    "1000-1100": {64: 0.793, 100: 0.915},
    "1100-1200": {64: 0.764, 100: 0.898},
    "1200-1300": {64: 0.591, 100: 0.871},
}
#: The paper in one line: by compression, "about" values.
EXPECTED_BY_RATIO: Mapping[str, float] = {"<10x": 0.97, "10-12x": 0.90, "15-17x": 0.80, ">=19x": 0.60}


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One bin of the curve: its pages, mean compression ratio, precision with interval, and the paper's precision."""

    label: str
    pages: int
    compression: float | None
    precision: Estimate
    expected: float | None


def token_bin(tokens: int) -> str:
    """The bin of a page by the tokens of its text, half open: 700 belongs to "700-800"."""
    return _bin(tokens, TOKEN_BOUNDS, "")


def ratio_bin(ratio: float) -> str:
    """The bin of a compression ratio, half open: 10.0 belongs to "10-12x"."""
    return _bin(ratio, RATIO_BOUNDS, "x")


def expected_precision(text_tokens: int | None, nominal: int, ratio: float | None) -> tuple[float | None, str]:
    """The paper's precision for a page, and where it stands: table 2, else the line by compression, else nothing."""
    if text_tokens is not None:
        label = token_bin(text_tokens)
        known = EXPECTED_BY_TOKENS.get(label, {}).get(nominal)
        if known is not None:
            return known, f"table 2: {label} tokens of text in {nominal}"
    if ratio is not None and (about := EXPECTED_BY_RATIO.get(ratio_bin(ratio))) is not None:
        return about, f"about, for {ratio_bin(ratio)}"
    return None, ""


def compression_curve(result: Result, by: Binning = "gt_tokens") -> list[CurvePoint]:
    """Precision against compression, one point per bin with pages, in order of the bins.

    The compression is that of ground-truth tokens over nominal vision tokens, as in the paper; for bins by
    `compression_output`, that of output tokens over valid ones. A result without vision tokens has no ratios.
    """
    slices = result.slices.get(by, {})
    ratio = "compression_output" if by == "compression_output" else "compression_gt"
    bounds, unit = (TOKEN_BOUNDS, "") if by == "gt_tokens" else (RATIO_BOUNDS, "x")
    points = []
    for label in _labels(bounds, unit):
        values = slices.get(label, {})
        if "precision" not in values:
            continue
        spent = values.get("vision_tokens_nominal", Estimate(value=None)).value
        expected = EXPECTED_BY_RATIO.get(label)
        if by == "gt_tokens" and spent is not None:
            expected = EXPECTED_BY_TOKENS.get(label, {}).get(round(spent))
        points.append(
            CurvePoint(
                label=label,
                pages=values["precision"].n,
                compression=values.get(ratio, Estimate(value=None)).value,
                precision=values["precision"],
                expected=expected,
            )
        )
    return points


def _bin(value: float, bounds: tuple[int, ...], unit: str) -> str:
    return _labels(bounds, unit)[bisect.bisect_right(bounds, value)]


def _labels(bounds: tuple[int, ...], unit: str) -> list[str]:
    middle = [f"{low}-{high}{unit}" for low, high in pairwise(bounds)]
    return [f"<{bounds[0]}{unit}", *middle, f">={bounds[-1]}{unit}"]


#: Which text the official program takes for the prediction: see `score_page_swapped_like_official`.
Variant: TypeAlias = Literal["official", "natural"]
#: What METEOR may compare: synonyms of WordNet (official), stems only, or no word measures at all.
Words: TypeAlias = Literal["wordnet", "stems", "none"]
Mode: TypeAlias = Literal["none", "tiny", "small", "base", "large", "gundam"]
#: All grids of tiles up to this number are tried for each page; the reference program has 9.
_MOST_TILES = 100
#: What is not as in the official program, and why; docs/benchmarks/fox.md.
DEVIATIONS = (
    "two empty texts, on which the official program divides by zero, are equal; F1, precision and recall of words are "
    "0 where they are undefined",
    "runs of more than 2,000 Chinese characters without punctuation are cut there before jieba splits them into words",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoxPage:
    """The ground truth of a page, and the number of its tokens where the data says it."""

    text: str
    tokens: int | None = None


def load(
    root: Path | None,
    language: Literal["all", "en", "zh"] = "all",
    variant: Variant = "official",
    words: Words = "wordnet",
    mode: Mode = "none",
    max_tiles: int = MAX_TILES,
) -> Iterator[Sample]:
    """Yield the pages, English first. `mode` of DeepSeek-OCR: the resolution mode that vision tokens are counted in."""
    _check_tools(words)
    if not 1 <= max_tiles <= _MOST_TILES:
        raise UsageError(f"max_tiles={max_tiles}: not from 1 to {_MOST_TILES}", hint=f"-o max_tiles={MAX_TILES}")
    folder = default_root("fox") if root is None else root
    # Tags and not truth: runs in different modes are runs on the same data, and are compared.
    settings: dict[str, str] = {} if variant == "official" else {"variant": variant}
    settings |= {} if words == "wordnet" else {"words": words}
    return (
        page_sample(item, settings | {"language": spoken}, mode, max_tiles) for spoken, item in _items(folder, language)
    )


def _items(folder: Path, language: str) -> Iterator[tuple[Language, PageItem]]:
    wanted = [spoken for spoken in UPSTREAM if language in ("all", spoken)]
    if is_prepared(folder):
        return ((spoken, item) for spoken, item in _prepared(folder) if spoken in wanted)
    files = find_files(folder)
    if files is None:
        raise DatasetError(f"{folder}: no Fox pages here; expected {LAYOUT}", hint="download it: loupe data get fox")
    return ((spoken, item) for spoken in wanted for item in read_pages(files, spoken))


def _prepared(folder: Path) -> Iterator[tuple[Language, PageItem]]:
    for row in read(folder):
        facts = {**row.metadata, **(row.metadata.get("tags") or {})}
        truth = row.ground_truth if isinstance(row.ground_truth, dict) else {"text": row.ground_truth}
        tokens = truth.get("tokens", facts.get("len"))
        named = str(facts.get("language") or ("zh" if row.sample_id.startswith("cn") else "en"))
        spoken: Language = "zh" if named in ("zh", "cn") else "en"
        tokens = tokens if isinstance(tokens, int) else None
        yield spoken, PageItem(id=row.sample_id, image=row.image, text=str(truth.get("text", "")), tokens=tokens)


def _check_tools(words: Words) -> None:
    """Say what is missing before a run starts, and not sample by sample."""
    without = "or leave the word measures out: -o words=none"
    if words != "none" and not (find_spec("nltk") and find_spec("jieba")):
        raise MissingToolError(
            "BLEU, METEOR and F1 of Fox need nltk and jieba", hint=f"{install_command('fox')}; {without}"
        )
    if words == "wordnet" and installed_wordnet() is None:
        raise MissingToolError(
            "the official METEOR of Fox needs the files of WordNet 3.0",
            hint="python -m nltk.downloader wordnet; or METEOR without synonyms: -o words=stems",
        )


def page_sample(item: PageItem, tags: dict[str, str], mode: Mode, max_tiles: int = MAX_TILES) -> Sample:
    """A page as a sample, with what it costs in a mode and its bins among the tags. Raises PageError for its image."""
    if item.tokens is not None:
        tags["gt_tokens"] = token_bin(item.tokens)
    if mode != "none":
        spent = vision_tokens(*page_size(item.image), mode, max_tiles=max_tiles)
        tags["vision_tokens"] = f"{spent.valid}/{spent.nominal}"
        if item.tokens is not None:
            tags["compression_gt"] = ratio_bin(compression_ratio(item.tokens, spent.nominal))
    return Sample(id=item.id, images=(item.image,), truth=FoxPage(text=item.text, tokens=item.tokens), tags=tags)


def score(sample: Sample, prediction: Prediction) -> list[Score]:
    """Precision by edit distance, the measures of Fox, and what the page cost in vision tokens."""
    page: FoxPage = sample.truth
    valid, nominal = _spent(sample.tags)
    values = {
        **edit_values(prediction.text, page.text),
        **_word_values(prediction.text, page.text, sample.tags),
    }
    tags = {}
    if valid and nominal:
        values |= {"vision_tokens": valid, "vision_tokens_nominal": nominal}
        # The paper divides ground truth by nominal tokens, the reference program its output by valid ones.
        if page.tokens is not None:
            values["compression_gt"] = compression_ratio(page.tokens, nominal)
        if prediction.output_tokens is not None:
            values["compression_output"] = compression_ratio(prediction.output_tokens, valid)
            tags["compression_output"] = ratio_bin(values["compression_output"])
    return [Score(measure=name, counts=(value, 1.0), tags=tags) for name, value in values.items()]


def _spent(tags: Mapping[str, str]) -> tuple[float, float]:
    """Valid and nominal vision tokens of a page, 0 where no mode was given."""
    valid, _, nominal = tags.get("vision_tokens", "0/0").partition("/")
    return float(valid), float(nominal)


def edit_values(prediction: str, reference: str) -> dict[str, float]:
    """Precision as in the compression study, without outer white space of the answer; Fox's edit distance is with it.

    Two empty texts are equal: 1 and 0. Fox's program would divide by zero.
    """
    answer = prediction.strip()
    edits = levenshtein_distance(answer, reference)
    return {
        "precision": 1.0 - edits / max(len(answer), len(reference), 1),
        "edits": float(edits),
        "edit_distance": normalized_edit_distance(prediction, reference),
    }


def _word_values(prediction: str, reference: str, tags: Mapping[str, str]) -> dict[str, float]:
    words = tags.get("words", "wordnet")
    if words == "none":
        return {}
    count = score_page if tags.get("variant") == "natural" else score_page_swapped_like_official
    found = count(prediction, reference, synonyms=installed_wordnet() if words == "wordnet" else None)
    return {
        "bleu": found.bleu,
        "meteor" if words == "wordnet" else "meteor_stems": found.meteor,
        **_set_values(found),
    }


def _set_values(found: PageScores) -> dict[str, float]:
    """F1, precision and recall of words; 0 where they are undefined, and the official mean would fail."""
    return {
        "f1": found.f_measure or 0.0,
        "word_precision": found.precision or 0.0,
        "word_recall": found.recall or 0.0,
    }


def reference(sample: Sample) -> str:
    """The text of the page."""
    page: FoxPage = sample.truth
    return page.text


def tools() -> dict[str, str]:
    """Return the tools besides Loupe that decide about scores."""
    packages = installed("nltk", "jieba")
    return packages | {"WordNet": "3.0" if packages["nltk"] and installed_wordnet() else ""}


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """Pairs of (ours, official) for one shipped parity case: a page, or the size of one in a resolution mode."""
    given, expected = case["input"], case["expected"]
    if "mode" in given:
        counted = vision_tokens(given["width"], given["height"], given["mode"], max_tiles=given["max_tiles"])
        return [(float(getattr(counted, name)), value) for name, value in expected.items()]
    _check_tools("stems")
    tags = {} if installed_wordnet() else {"words": "stems"}
    sample = Sample(id="", truth=FoxPage(text=given["label"]), tags=tags)
    found = {one.measure: one.counts[0] for one in score(sample, Prediction(text=given["answer"]))}
    compared = {name: value for name, value in expected.items() if name != "meteor" or not tags}
    return [(found.get(name, math.nan), value) for name, value in compared.items()]


def not_compared() -> tuple[str, ...]:
    """Return what `verify_case` has to leave out on this machine."""
    return (
        ()
        if installed_wordnet() or not find_spec("nltk")
        else ("METEOR was not compared: the files of WordNet 3.0 are not here",)
    )


def _oracle_page(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    names = {"f_measure": "f1", "precision": "word_precision", "recall": "word_recall", "edit_dist": "edit_distance"}
    official = case["expected"]["official_script_order"]
    # On two empty texts the official program stops. Where NLTK has no value, the mean over pages counts 0.
    if isinstance(official, dict):
        values = {names.get(name, name): 0.0 if value is None else value for name, value in official.items()}
        yield case | {"expected": values, "tolerance": 1e-6}


def _oracle_tokens(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for named, expected in case["expected"].items():
        mode, _, limit = named.partition("_max")
        yield {
            "id": f"{case['id']}-{named}",
            "input": case["input"] | {"mode": mode, "max_tiles": int(limit or 9)},
            "expected": {name: expected[f"{name}_tokens"] for name in ("nominal", "valid", "sequence")},
        }


benchmark = Benchmark(
    title="Fox page OCR",
    version="1.0",
    task="text",
    paper="https://arxiv.org/abs/2405.14295",
    data=DataSet(
        repo="ucaslcl/Fox_benchmark_data",
        patterns=("focus_benchmark_test.zip",),
        licence="CC-BY-NC-4.0, research only",
        note="944 images in one zip, read as it is",
    ),
    parity=ParityCases(
        compare=verify_case,
        deviations=DEVIATIONS,
        not_compared=not_compared,
        oracles={"fox/page_ocr.jsonl": _oracle_page, "deepseek_tokens/tokens.jsonl": _oracle_tokens},
    ),
    prompt="OCR this image:",
    max_tokens=8192,
    measures=(
        Measure(name="precision", title="precision (1 - edit distance)"),
        Measure(name="edits", title="edits per page", unit="number", higher_is_better=False),
        Measure(name="edit_distance", title="edit distance", higher_is_better=False),
        Measure(name="bleu", title="BLEU"),
        Measure(name="meteor", title="METEOR"),
        Measure(name="meteor_stems", title="METEOR without synonyms"),
        Measure(name="f1", title="F1 of words"),
        Measure(name="word_precision", title="precision of words"),
        Measure(name="word_recall", title="recall of words"),
        Measure(name="compression_gt", title="text tokens per nominal vision token", unit="number"),
        Measure(name="compression_output", title="output tokens per valid vision token", unit="number"),
        Measure(name="vision_tokens", title="valid vision tokens", unit="number", higher_is_better=False),
        Measure(name="vision_tokens_nominal", title="nominal vision tokens", unit="number", higher_is_better=False),
    ),
    load=load,
    score=score,
    tools=tools,
    reference=reference,
)
