"""Fox, page OCR: the text of dense pages in English and Chinese, and DeepSeek-OCR's compression measures on them.

Papers: Liu et al., "Focus anywhere for fine-grained multi-page document understanding", arXiv 2405.14295; Wei et al.,
"DeepSeek-OCR", arXiv 2510.18234. Protocol: docs/benchmarks/fox.md. Official scorer: ucaslcl/Fox @ 82f720c.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

from loupe.benchmarks.fox.compression import ratio_bin, token_bin
from loupe.benchmarks.fox.files import LAYOUT, UPSTREAM, Language, PageItem, find_files, read_pages
from loupe.benchmarks.shared.word_scores import PageScores, score_page, score_page_swapped_like_official
from loupe.data.extras import install_command, installed
from loupe.data.hub.store import default_root
from loupe.data.pages import page_size
from loupe.data.prepared import is_prepared, read
from loupe.errors import DatasetError, MissingToolError, UsageError
from loupe.metrics import (
    compression_ratio,
    installed_wordnet,
    levenshtein_distance,
    normalized_edit_distance,
    vision_tokens,
)
from loupe.metrics.vision_tokens import MAX_TILES
from loupe.types import Benchmark, DataSet, Measure, ParityCases, Prediction, Sample, Score

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
        raise DatasetError(f"{folder}: no Fox pages here; expected {LAYOUT}", hint="loupe data get fox")
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
    """What else than Loupe decides about scores."""
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
    """What `verify_case` has to leave out on this machine."""
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
