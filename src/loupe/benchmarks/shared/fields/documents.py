"""Load documents with fields, ask for them, and score one document: every field of the ground truth is compared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from loupe.benchmarks.shared.fields.fallback import read_with_fallback
from loupe.benchmarks.shared.fields.json_answers import (
    LONGEST_REPAIR,
    Reading,
    is_dear,
    read_like_docext,
    read_strictly,
)
from loupe.data.hub.store import default_root
from loupe.data.parquet import find_shards, rows
from loupe.data.prepared import is_prepared, read, refuse_options
from loupe.errors import DatasetError
from loupe.explanation import JudgedField
from loupe.metrics import anls, docext_similarity, max_normalized_similarity
from loupe.quantities import percent
from loupe.types import Composite, Measure, PageSource, Prediction, Sample, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One page with its ground truth as stored; `place` names it in messages."""

    id: str
    image: PageSource
    truth: Any
    place: str


def find_documents(
    root: Path | None, ident: str, splits: Sequence[str], *, column: str, layout: str
) -> Iterator[Document]:
    """The documents of the first of these splits that is there. Raises DatasetError, naming the layout, if none is."""
    folder = default_root(ident) if root is None else root
    if is_prepared(folder):
        refuse_options(folder, split=splits[0] == "train")
        for number, prepared in enumerate(read(folder), 1):
            place = f"{folder}, document {number}"
            yield Document(id=prepared.sample_id, image=prepared.image, truth=prepared.ground_truth, place=place)
        return
    shards = find_shards(folder, *splits)
    if not shards:
        raise DatasetError(
            f"{folder}: no split {splits[0]!r} here; expected {layout}", hint=f"download it: loupe data get {ident}"
        )
    for index, row in enumerate(rows(shards, (column,))):
        place = f"{row.path}, row {row.number}"
        yield Document(id=f"{splits[0]}-{index:04d}", image=row.image(), truth=row[column], place=place)


def object_of(document: Document) -> Mapping[str, Any]:
    """The ground truth as an object. Raises DatasetError if it is none."""
    truth = document.truth
    if isinstance(truth, str):
        try:
            truth = json.loads(truth)
        except (ValueError, RecursionError):
            raise DatasetError(f"{document.place}: the ground truth is not JSON") from None
    if not isinstance(truth, Mapping):
        raise DatasetError(f"{document.place}: the ground truth is no object of fields")
    return truth


def field_text(value: Any) -> str:
    """A value of the ground truth as text; null is empty."""
    return "" if value is None else str(value)


def make_sample(document: Document, fields: Mapping[str, str], variant: Variant) -> Sample:
    """The sample of a document. docext asks for the fields that this document has; the others ask all alike."""
    prompt = docext_prompt(tuple(fields)) if variant == OFFICIAL else ""
    tags = variant_tags(variant)
    return Sample(id=document.id, images=(document.image,), truth=dict(fields), prompt=prompt, tags=tags)


Variant: TypeAlias = Literal["docext", "strict_json", "repair_regex", "normalized"]
OFFICIAL: Variant = "docext"


#: Where the numbers differ from the official evaluator on purpose.
DEVIATIONS = (
    "an answer that is a number, a truth value, null or a text, on which docext and its whole run crash, has no fields",
    f"of an answer over {LONGEST_REPAIR:,} characters that is no JSON, json_repair sees the beginning (if JSON "
    "opens it), else both ends; such answers are a slice of `json_read`",
)


class Rules(NamedTuple):
    """The rules by which a variant reads fields from an answer and compares two texts."""

    read: Callable[[str, Sequence[str]], Reading]
    similarity: Callable[[str, str], float]


def normalize_value(text: str) -> str:
    """A value with ", " after commas, no white space around dashes and full stops."""
    text = re.sub(r"\s*,\s*", ", ", " ".join(text.split()))
    return " ".join(re.sub(r"\s?([-.])\s?", r"\1", text).split())


def _normalized_similarity(prediction: str, reference: str) -> float:
    return docext_similarity(normalize_value(prediction), normalize_value(reference))


RULES: Mapping[str, Rules] = {
    "docext": Rules(lambda answer, _: read_like_docext(answer), docext_similarity),
    "strict_json": Rules(lambda answer, _: read_strictly(answer), max_normalized_similarity),
    "repair_regex": Rules(read_with_fallback, docext_similarity),
    "normalized": Rules(read_with_fallback, _normalized_similarity),
}

#: The number that an unpublished source calls KIE. Protocol: docs/benchmarks/nanonets_kie.md.
KIE = Composite(name="kie", of=("nanonets_kie", "handwritten_forms"))

MEASURES = (
    Measure(name="anls", title="field similarity"),
    Measure(name="anls_document_mean", title="field similarity, mean of documents"),
    Measure(name="anls_0.5", title="classic ANLS: below one half is 0"),
    Measure(name="field_accuracy", title="fields exactly right"),
    Measure(name="both_empty", title="fields that are rightly empty"),
    Measure(name="json_read", title="answers that hold an object"),
    Measure(name="from_json", title="fields found by JSON"),
    Measure(name="from_table", title="fields found in a table"),
    Measure(name="from_regex", title="fields found by patterns"),
)


def score_document(sample: Sample, prediction: Prediction) -> list[Score]:
    """One score per measure and field of the ground truth; a field that the answer lacks is compared as empty."""
    variant = sample.tags.get("variant", OFFICIAL)
    rules = RULES[variant]
    truth: Mapping[str, str] = sample.truth
    reading = rules.read(prediction.text, tuple(truth))
    tags = {"answer": "too long to be repaired whole"} if reading.cut else {}
    scores = [Score(measure="json_read", counts=(float(reading.found_json), 1.0), tags=tags)]
    similarities = []
    for name, wanted in truth.items():
        found = reading.fields.get(name, "")
        similarities.append(rules.similarity(found, wanted))
        values = {
            "anls": similarities[-1],
            "anls_0.5": anls(found, wanted),
            "field_accuracy": float(similarities[-1] == 1.0),
            "both_empty": float(not found and not wanted),
        }
        if rules.read is read_with_fallback:
            source = reading.sources.get(name)
            values |= {f"from_{each}": float(source == each) for each in ("json", "table", "regex")}
        tags = {"field": name}
        scores += [Score(measure=key, counts=(value, 1.0), unit=name, tags=tags) for key, value in values.items()]
    if similarities:
        mean = sum(similarities) / len(similarities)
        scores.append(Score(measure="anls_document_mean", counts=(mean, 1.0)))
    return scores


def judge_document(sample: Sample, prediction: Prediction) -> list[JudgedField]:
    """Every field of the ground truth beside that of the answer, as scored; none where reading might take long."""
    rules = RULES[sample.tags.get("variant", OFFICIAL)]
    if is_dear(prediction.text):
        return []
    reading = rules.read(prediction.text, tuple(sample.truth))
    judged = []
    for name, wanted in sample.truth.items():
        given = reading.fields.get(name, "")
        value = rules.similarity(given, wanted)
        judged.append(JudgedField(name=name, wanted=wanted, given=given, value=value, rule=_rule(value, given, wanted)))
    return judged


def _rule(value: float, given: str, wanted: str) -> str:
    if value == 1.0:
        return "as written" if given == wanted else "the same to the evaluator"
    if not (given and wanted):
        return "the ground truth is empty" if given else "nothing given"
    return f"{percent(value)} alike"


def variant_tags(variant: Variant) -> dict[str, str]:
    """Return the tags that a sample carries to be scored by a variant; the default has no tag and makes no slice."""
    return {} if variant == OFFICIAL else {"variant": variant}


def reference_text(sample: Sample) -> str:
    """The ground truth as JSON, to show beside an answer and to diagnose it."""
    return json.dumps(sample.truth, ensure_ascii=False, indent=1)


def verify_document(case: dict[str, Any], truth: Mapping[str, str]) -> list[tuple[float, float]]:
    """(ours, official) for one parity case: docext's score and, where the case has one, that of `strict_json`."""
    pairs = []
    # "seed000" is what the official cases call the strict rules.
    variants: tuple[tuple[Variant, str], ...] = (("docext", "docext"), ("strict_json", "seed000"))
    for variant, key in variants:
        expected = case["expected"].get(key, {}).get("score")
        if isinstance(expected, int | float):
            sample = Sample(id="case", truth=truth, tags=variant_tags(variant))
            scores = score_document(sample, Prediction(text=case["input"]["response"]))
            ours = next(each for each in scores if each.measure == "anls_document_mean")
            pairs.append((ours.counts[0], float(expected)))
    return pairs


def oracle_case(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The official case, unless docext and its whole run crash on it: an answer that is a number, a text or null."""
    if not isinstance(case["expected"]["docext"]["score"], str):
        yield case


def docext_prompt(fields: Sequence[str]) -> str:
    """The user message of docext @ 0edc8f5; its system message and "Page 1" cannot be sent, a request is one turn."""
    wanted, shape = list(fields), dict.fromkeys(fields, "..")
    return (
        f"Extract the following {wanted} from the above document. If a field is not present, return ''. "
        f"Return the output in a valid JSON format as {shape}."
    )


def json_prompt(fields: Sequence[str]) -> str:
    """A JSON object with these keys and nothing else: what all variants but `docext` ask."""
    return (
        "Extract the following fields from this document image.\n"
        f"Return a JSON object with these keys: {', '.join(fields)}\n"
        "If a field is not found, use an empty string.\n"
        "Output ONLY the JSON, no explanations."
    )
