"""Ask and score questions about images with short answers: what the QA benchmarks share.

Published sets are read in the layouts in use: hub parquet, official JSON, tables, the prepared form.
Protocol: docs/protocols/qa.md#prompts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from loupe.benchmarks.shared.answer_texts import literal
from loupe.benchmarks.shared.short_answer_faults import FAULTS, NUMBER_FAULTS
from loupe.data.hub.store import default_root
from loupe.data.parquet import columns_of, find_shards, rows
from loupe.data.prepared import is_prepared, read
from loupe.data.tsv import tsv_rows
from loupe.errors import DatasetError, UsageError
from loupe.files.foreign import is_inside, read_data, real_path
from loupe.metrics import anls
from loupe.typed import json_decoder
from loupe.types import (
    UNDECODABLE,
    Benchmark,
    Conclusion,
    FormatFault,
    Load,
    Measure,
    PageSource,
    ParityCases,
    Prediction,
    Sample,
    SampleScores,
    Score,
    ScoreFunction,
)

__all__ = [
    "ANLS_MEASURES",
    "DOCUMENT_PROMPTS",
    "FAULTS",
    "NUMBER_FAULTS",
    "SHORT",
    "Prompt",
    "QuestionSet",
    "Variant",
    "anls_points",
    "answered",
    "load_questions",
    "parity",
    "question_benchmark",
]


Variant: TypeAlias = Literal["vlmevalkit", "lmms_eval", "evalscope"]
#: Whose words stand around the question: those of the variant, of another runner, or none ("question").
Prompt: TypeAlias = Literal["variant", "vlmevalkit", "lmms_eval", "evalscope", "question"]

SHORT = "{question}\nAnswer the question using a single word or phrase."
#: The prompts of DocVQA and InfoVQA by runner.
DOCUMENT_PROMPTS: Mapping[str, str] = {
    "vlmevalkit": SHORT,
    "lmms_eval": SHORT,
    "evalscope": (
        "Answer the question according to the image using a single word or phrase.\n{question}\n"
        'The last line of your response should be of the form "ANSWER: [ANSWER]" (without quotes) '
        "where [ANSWER] is the answer to the question."
    ),
}


def ask(question: str, prompts: Mapping[str, str], variant: Variant, prompt: Prompt) -> str:
    """The question as one of the runners asks it; as it stands where none of them has words for it.

    `{question}` is the question, `{Question}` the same with its first letter large and all others small.
    """
    form = prompts.get(variant if prompt == "variant" else prompt, "{question}")
    # Not str.format: nothing else in braces is filled in.
    if "{Question}" in form:
        return form.replace("{Question}", question.capitalize())
    return form.replace("{question}", question)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSet:
    """The places where a set keeps its fields. Of several names for a field the first that is there counts.

    `config` is the folder of the set in a hub repository with several. `key` is the id; a row without one is known by
    its place. `group` says what belongs together (a document; "image": the same picture), `tags` are fields by the name
    of the slice. `hidden` are splits whose answers nobody has. `files` are the official JSON files of a split, below
    the data folder, each with the fields that all its questions have; their pictures are named by `picture`, `suffix`
    appended, in one of the folders `pictures`. `tables` are the names of VLMEvalKit's tables by split.
    """

    ident: str
    title: str
    config: str = ""
    key: str = ""
    question: tuple[str, ...] = ("question",)
    answers: tuple[str, ...] = ("answers", "answer")
    group: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    files: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    picture: tuple[str, ...] = ("image",)
    pictures: tuple[str, ...] = ("", "images")
    suffix: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The columns that are read, the image apart."""
        return frozenset({self.key, *self.question, *self.answers, *self.group, *self.tags.values()} - {""})


@dataclass(frozen=True, slots=True)
class _Row:
    """One question as published: its fields, its image, its place in the split from 0, and where that is."""

    fields: Mapping[str, Any]
    image: PageSource
    number: int
    place: str


def load_questions(
    where: QuestionSet,
    root: Path | None,
    split: str,
    prompts: Mapping[str, str],
    variant: Variant = "vlmevalkit",
    prompt: Prompt = "variant",
) -> Iterator[Sample]:
    """Yield the questions of a split in file order, each with the words that a runner puts around it.

    `truth` is {"question", "answers"}, without answers where nobody has them. Raises DatasetError.
    """
    folder = default_root(where.ident) if root is None else root
    form = partial(ask, prompts=prompts, variant=variant, prompt=prompt)
    scoring = {} if variant == "vlmevalkit" else {"variant": variant}
    if is_prepared(folder):
        return _prepared(folder, form, scoring)
    shards = find_shards(folder / where.config, split) or find_shards(folder, split)
    table = folder if folder.suffix == ".tsv" else folder / where.tables.get(split, "")
    if shards:
        found = _of_parquet(where, shards)
    else:
        found = _of_table(where, table) if table.is_file() else _of_json(where, folder, split)
    return (_sample(where, row, split, form, scoring) for row in found)


def _of_parquet(where: QuestionSet, shards: list[Path]) -> Iterator[_Row]:
    there = columns_of(shards)
    columns = [name for name in there if name in where.names]
    for number, row in enumerate(rows(shards, columns)):
        yield _Row(row, row.image(), number, f"{row.path}, row {row.number}")


def _of_table(where: QuestionSet, path: Path) -> Iterator[_Row]:
    """Rows of VLMEvalKit's table. Its ids are places; a list of answers stands there as Python writes one."""
    for row in tsv_rows(path, ("question", "answer")):
        image = row.image()
        part = row.get("split") or row.get("category")
        fields: dict[str, Any] = dict.fromkeys(where.tags.values(), part) | dict(row) | {"image": image.member}
        if "answers" in where.answers:
            fields["answers"] = _written_list(row["answer"])
        yield _Row(fields, image, row.number, f"{path}, row {row.number}")


def _written_list(text: str) -> str | list[str]:
    try:
        found = literal(text)
    except ValueError:
        return text
    return [str(each) for each in found] if isinstance(found, list) else text


def _of_json(where: QuestionSet, folder: Path, split: str) -> Iterator[_Row]:
    files = where.files.get(split, {})
    found = {path: known for name, known in files.items() if (path := folder / name).is_file()}
    if not found and folder.suffix == ".json":
        found = {folder: next((known for name, known in files.items() if Path(name).name == folder.name), {})}
    if not found:
        named = list(files)[:1]
        expected = ", ".join(["parquet files of this split", *named, "or the prepared form (metadata.jsonl)"])
        raise DatasetError(
            f"{folder}: no split {split!r} of {where.title} here; expected {expected}",
            hint=f"download it: loupe data get {where.ident}",
        )
    number = 0
    for file, known in found.items():
        listed, outermost = _listed(file), real_path(folder if folder.is_dir() else folder.parent)
        at = _picture_folder(where, file, listed, outermost)
        for index, fields in enumerate(listed):
            place = f"{file}, entry {index}"
            if not isinstance(fields, dict):
                raise DatasetError(f"{place}: not an object")
            image = at / (_text(fields, where.picture, place) + where.suffix)
            if not is_inside(image, outermost):
                raise DatasetError(f"{place}: the image {image.name!r} leaves the folder")
            yield _Row({**known, **fields}, image, number, place)
            number += 1


def _listed(file: Path) -> list[Any]:
    """The questions of an official file: a list, or an object that holds it as `data`."""
    try:
        found = json_decoder(Any).decode(read_data(file))
    except (*UNDECODABLE, OSError) as error:
        raise DatasetError(f"{file}: not JSON ({error})") from None
    listed = found.get("data") if isinstance(found, dict) else found
    if not isinstance(listed, list):
        raise DatasetError(f"{file}: no list of questions, nor an object with one as `data`")
    return listed


def _picture_folder(where: QuestionSet, file: Path, listed: Sequence[Any], outermost: Path) -> Path:
    """The folder with the picture of the first question; beside the file where there is none."""
    first = next((entry for entry in listed if isinstance(entry, dict)), {})
    name = next((each for key in where.picture if isinstance(each := first.get(key), str)), "")
    for parent in (file.parent, outermost):
        for folder in where.pictures:
            path = parent / folder / (name + where.suffix)
            if name and is_inside(path, outermost) and path.is_file():
                return parent / folder
    return file.parent


def _sample(
    where: QuestionSet, row: _Row, split: str, form: Callable[[str], str], scoring: Mapping[str, str]
) -> Sample:
    question = _text(row.fields, where.question, row.place)
    truth: dict[str, Any] = {"question": question}
    answers = next((found for name in where.answers if (found := row.fields.get(name)) is not None), None)
    if split not in where.hidden and answers is not None:
        truth["answers"] = _answers(answers, row.place)
    key = row.fields.get(where.key) if where.key else None
    group = next((_group(found) for name in where.group if (found := row.fields.get(name)) not in (None, "")), "")
    tags = {tag: _tag(row.fields.get(name)) for tag, name in where.tags.items()}
    return Sample(
        id=f"{row.number:05d}" if key is None else str(key),
        images=(row.image,),
        truth=truth,
        prompt=form(question),
        group=group,
        tags={tag: value for tag, value in tags.items() if value},
        scoring=scoring,
    )


def _prepared(root: Path, form: Callable[[str], str], scoring: Mapping[str, str]) -> Iterator[Sample]:
    for row in read(root):
        place = f"{root}, sample {row.sample_id!r}"
        facts, truth = row.metadata, row.ground_truth
        if not isinstance(truth, dict):  # as others write it: the answers, and the question beside them
            truth = {"question": facts.get("question") or facts.get("prompt"), "answers": _read_list(truth)}
        question = _text(truth, ("question",), place)
        answers = truth.get("answers")
        known = {} if answers is None else {"answers": _answers(answers, place)}
        tags = facts.get("tags")
        yield Sample(
            id=row.sample_id,
            images=(row.image,),
            truth={"question": question, **known},
            prompt=form(question),
            group=str(facts.get("group") or ""),
            tags={str(tag): str(value) for tag, value in tags.items()} if isinstance(tags, dict) else {},
            scoring=scoring,
        )


def _read_list(value: Any) -> Any:
    """A list written as JSON is read as one; anything else stays."""
    if isinstance(value, str) and value.startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _text(fields: Mapping[str, Any], names: Sequence[str], place: str) -> str:
    found = next((fields[name] for name in names if fields.get(name) is not None), None)
    if not isinstance(found, str):
        raise DatasetError(f"{place}: {' or '.join(names)} is no text")
    return found


def _answers(value: Any, place: str) -> str | list[str]:
    """One answer or several, as published; which of both it is matters to some rules."""
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        return value
    raise DatasetError(f"{place}: the answers are neither a text nor a list of texts")


def _group(value: Any) -> str:
    """A picture, as the hub stores it, stands for itself by what it holds."""
    held = value.get("bytes") if isinstance(value, dict) else value
    return hashlib.sha256(held).hexdigest()[:16] if isinstance(held, bytes) else str(held)


def _tag(value: Any) -> str:
    """Several values of one question, as DocVQA has types, are one slice of their own."""
    return " + ".join(sorted(map(str, value))) if isinstance(value, list) else "" if value is None else str(value)


#: What an answer earns by measure; gets the answer, the references, and the variant.
Rule: TypeAlias = Callable[[str, Sequence[str], Variant], Mapping[str, float]]

DEVIATIONS = (
    "A question without any reference earns 0; VLMEvalKit and lmms-eval end their run at it.",
    "A failed answer earns 0, also where the reference is an empty text.",
)
_MARKED = re.compile(r"ANSWER:\s*(.*)")
_HIDDEN = "its answers are not public; `loupe export RUN --to submission` writes the file for the official server"

ANLS_MEASURES = (
    Measure(name="anls", title="ANLS"),
    Measure(name="partly_right", title="answers partly right (ANLS from 0.5, below 1)", higher_is_better=False),
    Measure(name="zeroed", title="answers alike, but below 0.5: counted 0", higher_is_better=False),
)


def answered(text: str, variant: Variant, *, whole: bool) -> str:
    """The part of an answer that a runner scores. `whole`: all of it where evalscope finds no mark, else nothing."""
    if variant == "vlmevalkit":
        return text
    if variant == "lmms_eval":
        return text.strip()
    marked = _MARKED.findall(text)
    return str(marked[-1]).strip() if marked else text.strip() if whole else ""


def anls_points(text: str, references: Sequence[str], variant: Variant) -> dict[str, float]:
    """ANLS of DocVQA and InfoVQA, 0..1, and whether it lies between right and wrong, or was cut to 0.

    Without any reference it is 0, where evalscope's is; the other programs end their run.
    """
    alike = anls(answered(text, variant, whole=True), references, threshold=0.0) if references else 0.0
    found = alike if alike >= 0.5 else 0.0
    return {"anls": found, "partly_right": float(0.5 <= alike < 1), "zeroed": float(0 < alike < 0.5)}


def question_benchmark(
    where: QuestionSet,
    load: Load,
    *,
    rule: Rule,
    measures: tuple[Measure, ...],
    faults: tuple[FormatFault, ...] = FAULTS,
    **more: Any,
) -> Benchmark:
    """A benchmark of a question set: the first measure ranks; `more` are further fields of Benchmark."""
    return Benchmark(
        title=where.title,
        version="1",
        task="question",
        usual_prompt="(each sample's own question, with the words of the runner around it)",
        measures=measures,
        load=load,
        score=scored_by(rule),
        conclude=partial(_conclude, measures[0].name),
        reference=reference_text,
        faults=faults,
        submission=partial(_submission, where.key) if where.hidden else None,
        max_tokens=2_048,
        **more,
    )


def scored_by(rule: Rule) -> ScoreFunction:
    """The score function of a set: the rule's points, none for a failed answer, no score where nobody has the truth."""

    def score(sample: Sample, prediction: Prediction) -> list[Score]:
        answers = sample.truth.get("answers")
        if answers is None:
            return []
        references = [answers] if isinstance(answers, str) else answers
        variant: Any = sample.scoring.get("variant", "vlmevalkit")
        points = rule(prediction.text, references, variant)
        if prediction.failed:  # no answer earns nothing, also where an empty one would hold an empty answer
            points = dict.fromkeys(points, 0.0)
        return [Score(measure=name, counts=(value, 1.0)) for name, value in points.items()]

    return score


def _conclude(headline: str, rows: Sequence[SampleScores]) -> Conclusion:
    """Says why there is no number where the answers of a split are not public."""
    hidden = bool(rows) and not any(row.scores for row in rows)
    return Conclusion(not_computed={headline: _HIDDEN} if hidden else {})


def reference_text(sample: Sample) -> str:
    """The first accepted answer; "" where nobody has one."""
    answers = sample.truth.get("answers") or ""
    return answers if isinstance(answers, str) else next(iter(answers), "")


def _submission(key: str, answers: Iterable[tuple[Sample, str]]) -> list[dict[str, Any]]:
    """Return what the official server takes: a list of objects with the id, as a number where it is one, and the
    answer.

    Raises UsageError for questions whose answers are public: no server scores these.
    """
    rows = []
    for sample, text in answers:
        if "answers" in sample.truth:
            raise UsageError(
                f"the answer to {sample.id} is public; the server takes those to the test split", hint="-o split=test"
            )
        variant: Any = sample.scoring.get("variant", "vlmevalkit")
        ident = int(sample.id) if re.fullmatch(r"[0-9]{1,18}", sample.id) else sample.id
        rows.append({key: ident, "answer": answered(text, variant, whole=True).strip()})
    return rows


def parity(rule: Rule, kind: str, headline: str) -> ParityCases:
    """The official cases of one kind, under every variant that scores it."""

    def compare(case: dict[str, Any]) -> list[tuple[float, float]]:
        given = case["input"]
        answers = given.get("answers", given.get("answer"))
        references = [answers] if isinstance(answers, str) else answers
        return [
            (rule(given["prediction"], references, variant)[headline], expected)
            for variant in get_args(Variant)
            if isinstance(expected := case["expected"].get(variant), float | int)
        ]

    def of_kind(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if case["kind"] == kind:
            yield case | {"tolerance": 1e-12}

    return ParityCases(compare=compare, oracles={"qa/cases.jsonl": of_kind}, deviations=DEVIATIONS)
