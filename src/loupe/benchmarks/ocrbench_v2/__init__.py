"""OCRBench v2: 10,000 questions on text in images, English and Chinese, 30 types, each with a rule of its own.

Paper: Fu et al., "OCRBench v2", 2024, arXiv 2501.00321. Protocol: docs/benchmarks/ocrbench_v2.md. Official scorer:
Yuliang-Liu/MultimodalOCR @ 794c36d, `OCRBench_v2/eval_scripts/`.
"""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from loupe.benchmarks.ocrbench_v2.types_of_questions import CATEGORIES, CATEGORY_OF, Points, Question, points
from loupe.data.extras import install_command
from loupe.data.hub.store import default_root
from loupe.data.parquet import columns_of, find_shards, rows
from loupe.data.prepared import is_prepared, read
from loupe.errors import DatasetError, MissingToolError
from loupe.files.foreign import is_inside, read_data, real_path
from loupe.metrics import installed_wordnet
from loupe.typed import convert, json_decoder
from loupe.types import (
    UNDECODABLE,
    Benchmark,
    DataSet,
    Measure,
    PageSource,
    ParityCases,
    Prediction,
    Sample,
    Score,
    Values,
)

Passages: TypeAlias = Literal["score", "skip"]

_FILE = "OCRBench_v2.json"
_LAYOUT = f"{_FILE} with EN_part/ and CN_part/, or data/test-*.parquet, or the prepared form (metadata.jsonl)"
_OPTIONAL = ("dataset_name", "eval", "bbox", "content")
_LANGUAGES = {"en": "english", "cn": "chinese"}
#: Types whose rule holds METEOR, so that it needs WordNet, and jieba for Chinese.
_PASSAGES = frozenset(
    {
        "full-page OCR en",
        "full-page OCR cn",
        "fine-grained text recognition en",
        "text translation cn",
        "handwritten answer extraction cn",
    }
)


class _Item(msgspec.Struct):
    """One object of OCRBench_v2.json. Its `id` is not unique over the parts, so items are known by their place."""

    type: str
    question: Any
    answers: Any
    image_path: str = ""
    dataset_name: str = ""
    eval: str | None = None
    bbox: Any = None
    content: Any = None


def load(root: Path | None, passages: Passages = "score") -> Iterator[Sample]:
    """Yield the questions in file order; a sample's id is its place in the file, which all layouts share.

    `passages=skip` leaves out the types that are scored with METEOR. Raises DatasetError, and MissingToolError if
    there are whole passages but not what scores them.
    """
    folder = default_root("ocrbench_v2") if root is None else root
    return (sample for sample in _questions(folder) if _is_wanted(sample, passages))


def _is_wanted(sample: Sample, passages: Passages) -> bool:
    is_passage = sample.tags.get("type") in _PASSAGES
    if is_passage and passages == "score":
        _check_tools()
    return not is_passage or passages == "score"


def _questions(folder: Path) -> Iterator[Sample]:
    if is_prepared(folder):
        return _prepared(folder)
    file = folder if folder.suffix == ".json" else folder / _FILE
    if file.is_file():
        return _json(file)
    shards = find_shards(folder, "test")
    if shards:
        return _parquet(shards)
    raise DatasetError(
        f"{folder}: no OCRBench v2 here; expected {_LAYOUT}", hint="download it: loupe data get ocrbench_v2"
    )


def _json(file: Path) -> Iterator[Sample]:
    try:
        items = json_decoder(list[_Item]).decode(read_data(file))
    except (*UNDECODABLE, OSError) as error:
        raise DatasetError(f"{file}: not the list of questions that OCRBench v2 publishes ({error})") from None
    parent = real_path(file.parent)
    for index, item in enumerate(items):
        image = parent / item.image_path
        if not is_inside(image, parent):
            raise DatasetError(f"{file}: image_path {item.image_path!r} leaves the folder")
        yield _sample(f"{index:05d}", image, item)


def _parquet(shards: list[Path]) -> Iterator[Sample]:
    there = columns_of(shards)
    columns = ["type", "question", "answers", *(name for name in _OPTIONAL if name in there)]
    for index, row in enumerate(rows(shards, columns)):
        try:
            item = convert({name: row[name] for name in columns if row[name] is not None}, _Item)
        except msgspec.ValidationError as error:
            raise DatasetError(f"{row.path}, row {row.number}: not a question of OCRBench v2 ({error})") from None
        yield _sample(f"{index:05d}", row.image(), item)


def _prepared(root: Path) -> Iterator[Sample]:
    for row in read(root):
        facts = {**row.metadata, **(row.metadata.get("tags") or {})}
        truth = row.ground_truth
        try:
            truth = json.loads(truth) if isinstance(truth, str) else truth
            item = convert({"type": facts.get("type"), "dataset_name": facts.get("dataset", ""), **truth}, _Item)
        except (*UNDECODABLE, TypeError, RecursionError) as error:
            wanted = "ground_truth is no object with question and answers, or metadata has no type"
            raise DatasetError(f"{root}, sample {row.sample_id!r}: {wanted} ({error})") from None
        yield _sample(row.sample_id, row.image, item)


@functools.cache
def _check_tools() -> None:
    without = "or leave them out: -o passages=skip"
    if importlib.util.find_spec("nltk") is None or importlib.util.find_spec("jieba") is None:
        raise MissingToolError(
            "OCRBench v2 scores whole passages with nltk and jieba", hint=f"{install_command('fox')}; {without}"
        )
    if installed_wordnet() is None:
        raise MissingToolError(
            "OCRBench v2 scores whole passages with WordNet", hint=f"python -m nltk.downloader wordnet; {without}"
        )


def _sample(ident: str, image: PageSource, item: _Item) -> Sample:
    language, category = CATEGORY_OF.get(item.type, ("", ""))
    tags = {"type": item.type, "language": language, "category": category, "dataset": item.dataset_name}
    truth = {"question": item.question, "answers": item.answers, "eval": item.eval}
    truth |= {"bbox": item.bbox, "content": item.content}
    asked = item.question if isinstance(item.question, str) else ""
    return Sample(id=ident, images=(image,), truth=truth, prompt=asked, tags={k: v for k, v in tags.items() if v})


def score(sample: Sample, prediction: Prediction) -> list[Score]:
    """Points of one item, 0..1: once for its type, once for its category unless the official program ignores it."""
    truth: Mapping[str, Any] = sample.truth
    earned = points(Question(sample.tags.get("type", ""), **truth), prediction.text)
    if prediction.failed:  # no answer earns nothing, also where an empty one would hold an empty answer
        earned = Points(0.0, ignored=earned.ignored)
    scores = [
        Score(measure="points", counts=(earned.value, 1.0)),
        Score(measure="upstream_stops", counts=(float(bool(earned.stop)), 1.0)),
    ]
    language, category = sample.tags.get("language"), sample.tags.get("category")
    if language and not earned.ignored:
        scores.append(Score(measure=f"{_LANGUAGES[language]}_{category}", counts=(earned.value, 1.0)))
    return scores


def summarize(values: Values) -> Values:
    """English and Chinese: the unweighted means of the categories that have items."""
    found: Values = {}
    for language, name in _LANGUAGES.items():
        there = [values[key] for each in CATEGORIES[language] if (key := f"{name}_{each}") in values]
        if there:
            found[name] = sum(there) / len(there)
    return found


def reference_text(sample: Sample) -> str:
    """The first accepted answer where it is a text."""
    answers = sample.truth["answers"]
    first = answers[0] if isinstance(answers, list) and answers else answers
    return first if isinstance(first, str) else ""


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one parity case: points, whether it is ignored, and whether the official run ends."""
    given, expected = case["input"], case["expected"]
    if given["type"] in _PASSAGES:
        _check_tools()
    fields = {name: given.get(name) for name in Question._fields}
    earned = points(Question(**fields), given["predict"])
    if "error" in expected:
        return [(float(bool(earned.stop)), 1.0), (earned.value, 0.0)]
    ignored = float(bool(expected.get("ignore")))
    return [(earned.value, expected["score"]), (float(earned.ignored), ignored), (float(bool(earned.stop)), 0.0)]


def _oracle_case(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The case, if its answer is a text, as every answer in Loupe, and none over 2,000 characters ends the run."""
    text = case["input"].get("predict")
    if isinstance(text, str) and not _is_too_long_for_nltk(case):
        yield case | {"tolerance": 1e-6}


def _is_too_long_for_nltk(case: dict[str, Any]) -> bool:
    texts = [case["input"]["predict"], *(a for a in case["input"]["answers"] if isinstance(a, str))]
    return case["input"]["type"] in _PASSAGES and max(map(len, texts)) > 2_000


benchmark = Benchmark(
    title="OCRBench v2",
    version="2",
    task="question",
    usual_prompt="(each sample's own question)",
    paper="https://arxiv.org/abs/2501.00321",
    data=DataSet(
        repo="ling99/OCRBench_v2",
        patterns=("data/test-*.parquet",),
        licence="research only, says the authors' README",
        note="10,000 questions",
    ),
    parity=ParityCases(
        compare=verify_case,
        oracles={"ocrbench_v2/cases.jsonl": _oracle_case},
        deviations=(
            "Where the official program ends its whole run, Loupe scores the item 0, counts it and goes on.",
            "Texts over 2,000 characters are compared in full; with NLTK 3.10 the official program ends at them.",
        ),
    ),
    published_total=10_000,
    headline="english",
    measures=(
        Measure(name="english", title="English", of_parts=True),
        Measure(name="chinese", title="Chinese", of_parts=True),
        *(
            Measure(
                name=f"{_LANGUAGES[language]}_{category}", title=f"{_LANGUAGES[language]} {category}".replace("_", " ")
            )
            for language, categories in CATEGORIES.items()
            for category in categories
        ),
        Measure(name="points", title="mean of all items"),
        Measure(name="upstream_stops", title="items that end the official run", higher_is_better=False),
    ),
    load=load,
    score=score,
    summarize=summarize,
    reference=reference_text,
    max_tokens=2_048,
)
