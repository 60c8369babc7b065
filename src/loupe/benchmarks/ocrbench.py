"""OCRBench v1: 1,000 questions about text in images; one point each, the final score is their sum.

Paper: Liu et al., "OCRBench: on the hidden mystery of OCR in large multimodal models", 2024. Protocol:
docs/benchmarks/ocrbench.md. Official scorer: Yuliang-Liu/MultimodalOCR @ 794c36d; variants: VLMEvalKit @ e8e78f0,
lmms-eval @ 75571cf.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from loupe.data.hub.store import default_root
from loupe.data.parquet import find_shards, rows
from loupe.data.prepared import is_prepared, read
from loupe.errors import DatasetError, UsageError
from loupe.files.foreign import is_inside, read_data, real_path
from loupe.typed import convert, json_decoder
from loupe.types import (
    UNDECODABLE,
    AnswerLayout,
    Benchmark,
    DataSet,
    Measure,
    PageSource,
    ParityCases,
    Prediction,
    Sample,
    Score,
)

Variant: TypeAlias = Literal["official", "vlmevalkit", "lmms_eval"]

#: The category whose answers are LaTeX, and the data set that it consists of.
MATH_CATEGORY = "Handwritten Mathematical Expression Recognition"
MATH_DATASET = "HME100k"
#: What the official report adds up to "Text Recognition"; every other category is a section of its own.
RECOGNITION = frozenset(
    {
        "Regular Text Recognition",
        "Irregular Text Recognition",
        "Artistic Text Recognition",
        "Handwriting Recognition",
        "Digit String Recognition",
        "Non-Semantic Text Recognition",
    }
)
_FILE = "OCRBench.json"
_LAYOUT = f"{_FILE} with OCRBench_Images/, or data/test-*.parquet, or the prepared form (metadata.jsonl)"
_BY_ID = 'JSON lines with the row number as id also work: {"id": "0000", "text": ".."}'
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}


class _Question(msgspec.Struct):
    """One object of OCRBench.json. Its `id` is not unique (113 values repeat), so rows are known by their place."""

    dataset_name: str
    type: str
    question: str
    answers: str | list[str]
    image_path: str = ""


class _Row(NamedTuple):
    """The same in the columns of a parquet file."""

    dataset: str
    question_type: str
    question: str
    answer: str | list[str]


def load(root: Path | None, variant: Variant = "official") -> Iterator[Sample]:
    """Yield the questions in file order; a sample's id is its place in the file, which all layouts share."""
    folder = default_root("ocrbench") if root is None else root
    if is_prepared(folder):
        return _prepared(folder, variant)
    file = folder if folder.suffix == ".json" else folder / _FILE
    if file.is_file():
        return _json(file, variant)
    shards = find_shards(folder, "test")
    if shards:
        return _parquet(shards, variant)
    raise DatasetError(f"{folder}: no OCRBench here; expected {_LAYOUT}", hint="download it: loupe data get ocrbench")


def _json(file: Path, variant: Variant) -> Iterator[Sample]:
    try:
        questions = json_decoder(list[_Question]).decode(read_data(file))
    except (*UNDECODABLE, OSError) as error:
        raise DatasetError(f"{file}: not the list of questions that OCRBench publishes ({error})") from None
    images = file.parent / "OCRBench_Images"
    images = real_path(images if images.is_dir() else file.parent)
    for index, question in enumerate(questions):
        image = images / question.image_path
        if not is_inside(image, images):
            raise DatasetError(f"{file}: image_path {question.image_path!r} leaves the folder")
        yield _sample(f"{index:04d}", image, question, variant)


def _parquet(shards: list[Path], variant: Variant) -> Iterator[Sample]:
    for index, row in enumerate(rows(shards, _Row._fields)):
        try:
            question = convert([row[name] for name in _Row._fields], _Row)
        except msgspec.ValidationError as error:
            wanted = "dataset, question_type and question are texts, answer a text or a list of texts"
            raise DatasetError(f"{row.path}, row {row.number}: {wanted} ({error})") from None
        yield _sample(f"{index:04d}", row.image(), _Question(*question), variant)


def _prepared(root: Path, variant: Variant) -> Iterator[Sample]:
    for row in read(root):
        facts = {**row.metadata, **(row.metadata.get("tags") or {})}
        place = f"{root}, sample {row.sample_id!r}"
        question = _Question(
            dataset_name=_fact(facts, ("dataset", "dataset_name"), place),
            type=_fact(facts, ("category", "question_type", "type"), place),
            question=str(facts.get("question") or facts.get("prompt") or ""),
            answers=_answers(row.ground_truth, place),
        )
        yield _sample(row.sample_id, row.image, question, variant)


def _fact(facts: Mapping[str, Any], keys: tuple[str, ...], place: str) -> str:
    """Category or data set of a question: the rules of scoring go by them."""
    found = next((facts[key] for key in keys if facts.get(key)), None)
    if not isinstance(found, str):
        raise DatasetError(f"{place}: metadata has none of {', '.join(keys)}", hint="it decides how answers are scored")
    return found


def _answers(value: Any, place: str) -> str | list[str]:
    """Answers of the prepared form: a list, a list written as JSON, or one answer."""
    if isinstance(value, str) and value.startswith("["):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        value = found if isinstance(found, list) and all(isinstance(each, str) for each in found) else value
    if not isinstance(value, str) and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        raise DatasetError(f"{place}: ground_truth is neither a text nor a list of texts")
    return value


def _sample(ident: str, image: PageSource, question: _Question, variant: Variant) -> Sample:
    section = "Text Recognition" if question.type in RECOGNITION else question.type
    tags = {"category": question.type, "section": section, "dataset": question.dataset_name}
    # The default has no tag: results of the official scoring are not cut into slices by it.
    tags |= {} if variant == "official" else {"variant": variant}
    return Sample(id=ident, images=(image,), truth=question.answers, prompt=question.question, tags=tags)


def score(sample: Sample, prediction: Prediction) -> list[Score]:
    """One point if any answer stands in the prediction; `truth` is an answer or a list of them."""
    answers = [sample.truth] if isinstance(sample.truth, str) else sample.truth
    variant = sample.tags.get("variant", "official")
    math = _is_math(sample, variant)
    text = prediction.text.strip() if variant == "lmms_eval" else prediction.text
    found = _prepare(text, math=math, variant=variant)
    wanted = [_prepare(answer, math=math, variant=variant) for answer in answers]
    if prediction.failed:  # no prediction earns nothing, also where an empty one would hold an empty answer
        wanted = []
    hit = float(any(answer in found for answer in wanted))
    word = hit if math else float(any(_stands_alone(answer, found) for answer in wanted))
    scores = [
        Score(measure="score", counts=(hit,)),
        Score(measure="accuracy", counts=(hit, 1.0)),
        Score(measure="word_match", counts=(word, 1.0)),
    ]
    if not prediction.failed:
        scores.append(Score(measure="accuracy_answered", counts=(hit, 1.0)))
    return scores


def _is_math(sample: Sample, variant: str) -> bool:
    """True if the rule for formulas holds. VLMEvalKit goes by the category, the others by the data set."""
    if variant == "vlmevalkit":
        return sample.tags.get("category") == MATH_CATEGORY
    return sample.tags.get("dataset") == MATH_DATASET


def _prepare(text: str, *, math: bool, variant: str) -> str:
    if math:
        return prepare_formula_like_official(text)
    if variant == "lmms_eval":
        text = fold_full_width_like_lmms_eval(text)
    return prepare_text_like_official(text)


def prepare_text_like_official(text: str) -> str:
    r"""Lower case, strip, each newline to a space, in this order; runs of spaces stay.

    So "a\n\nb" does not hold the answer "a b": kept for parity.
    """
    return text.lower().strip().replace("\n", " ")


def prepare_formula_like_official(text: str) -> str:
    """Strip, newlines to spaces, then drop every U+0020. Case counts; tabs and other white space inside stay."""
    return text.strip().replace("\n", " ").replace(" ", "")


def fold_full_width_like_lmms_eval(text: str) -> str:
    """Full-width ASCII (U+FF01 to U+FF5E) and the ideographic space become ASCII; nothing else of NFKC."""
    return text.translate(_FULL_WIDTH)


def _stands_alone(answer: str, text: str) -> bool:
    """True if the answer occurs with no letter or digit right beside it: "no" is not in "know"."""
    before = r"(?<!\w)" if re.match(r"\w", answer) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", answer) else ""
    return re.search(before + re.escape(answer) + after, text) is not None


def _sum_of_points(sums: Any) -> Any:
    """Points added up, as the official report has it: a question without a prediction is a point not won."""
    return sums[..., 0]


def reference_text(sample: Sample) -> str:
    """The first accepted answer."""
    return sample.truth if isinstance(sample.truth, str) else next(iter(sample.truth), "")


def answers_in_document(document: Any, samples: Iterable[Sample]) -> Iterator[tuple[str, str]]:
    """(sample id, answer) out of the official JSON: the published list of questions, each with its `predict`.

    The `id` of a question is not unique there, so its place in the list is what counts: the list must be whole and in
    the order of the data. Raises UsageError if it is not.
    """
    rows = document if isinstance(document, list) else []
    asked = list(samples)
    if len(rows) != len(asked) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(
            f"the official JSON is the list of all {len(asked):,} questions; this one has {len(rows):,}", hint=_BY_ID
        )
    for place, (row, sample) in enumerate(zip(rows, asked, strict=True)):
        if not _asks(row, sample):
            raise UsageError(
                f"the official JSON is in the order of the data; entry {place + 1} asks {row.get('question')!r}, and "
                f"the data {sample.prompt!r} (answer {reference_text(sample)!r})",
                hint=_BY_ID,
            )
        # A question without `predict` was not answered; the official script crashes on null.
        if isinstance(row.get("predict"), str):
            yield sample.id, row["predict"]


def _asks(row: Mapping[str, Any], sample: Sample) -> bool:
    """True if an entry is the question of this sample, by all that both of them say; blanks do not matter."""
    facts = (
        (row.get("question"), sample.prompt),
        (row.get("dataset_name"), sample.tags.get("dataset")),
        (row.get("answers"), sample.truth),
    )
    return "question" in row and all(_words(said) == _words(true) for said, true in facts if said and true)


def _words(value: Any) -> list[list[str]]:
    return [str(each).split() for each in (value if isinstance(value, list) else [value])]


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: the point under each of the three scorers."""
    given: dict[str, Any] = case["input"]
    question = _Question(given["dataset_name"], given["type"], given["question"], given["answers"])
    variants: Iterable[Variant] = ("official", "vlmevalkit", "lmms_eval")
    return [
        (score(_sample("case", Path(), question, variant), Prediction(text=given["predict"]))[0].counts[0], expected)
        for variant in variants
        if isinstance(expected := case["expected"][variant], int | float)
    ]


def _oracle_case(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    # A prediction that is null crashes the official script; a prediction of Loupe is always a text.
    if case["input"]["predict"] is not None:
        yield case | {"tolerance": 0}


benchmark = Benchmark(
    title="OCRBench",
    version="1",
    task="question",
    usual_prompt="(each sample's own question)",
    paper="https://arxiv.org/abs/2305.07895",
    data=DataSet(
        repo="echo840/OCRBench",
        patterns=("data/test-*.parquet",),
        note="1,000 questions, 68 MB",
    ),
    parity=ParityCases(compare=verify_case, oracles={"ocrbench/cases.jsonl": _oracle_case}),
    published_total=1_000,
    headline="score",
    measures=(
        Measure(name="score", title="final score", value=_sum_of_points, unit="count"),
        Measure(name="accuracy", title="questions answered right"),
        Measure(name="accuracy_answered", title="right, of those that got an answer"),
        Measure(name="word_match", title="right, as whole words"),
    ),
    load=load,
    answers=AnswerLayout(in_document=answers_in_document),
    score=score,
    reference=reference_text,
    max_tokens=512,
)
