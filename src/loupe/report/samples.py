"""One sample as the report stores it: a thumbnail, and a gzipped payload that the browser unpacks on demand.

Everything slow or dangerous about a sample (decoding its image, rendering what a model wrote) happens here, in worker
processes: a sample that hangs or kills its worker loses its pictures and rendering, and the report says so.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from loupe.engines.adapters.steps import apply_adapters
from loupe.errors import EngineError, EngineUnavailableError, PageError
from loupe.explanation import Explanation, Fact, JudgedField
from loupe.report.markup import MARKUP_TASKS, render_markdown, without_surrogates
from loupe.report.matches import packed_layout, packed_match, packed_page
from loupe.report.pictures import Thumbnail, full_picture, make_thumbnail
from loupe.report.stored_facts import packed_facts, packed_fields
from loupe.types import DocumentPage, Output, PackedImage, PageSource, PdfPage, Prediction
from loupe.workers.child import Loaded
from loupe.workers.pool import threaded_pool

JsonObject: TypeAlias = dict[str, Any]

#: Characters of one text that go into the report; the run folder has the rest.
TEXT_LIMIT = 2_000_000
#: Pictures of one sample that go into the report.
PICTURE_LIMIT = 20
#: Seconds that one sample may take before it goes in without pictures and rendering.
SAMPLE_SECONDS = 10.0
#: What workers that pack samples load.
PACKER = "loupe.report.samples:load"
#: Fewer samples than this are not worth more than one worker.
_SINGLE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of one engine, and what it was worth. `values` and `units` are ready to be shown.

    `image_rule` says how pages were sent to the engine ("": it is not asked with images of ours).
    """

    prediction: Prediction | None
    adapters: tuple[str, ...] = ()
    values: tuple[JsonObject, ...] = ()
    units: tuple[JsonObject, ...] = ()
    hidden_units: int = 0
    diagnostics: tuple[tuple[str, str], ...] = ()
    scoring_error: str = ""
    explanation: Explanation | None = None
    facts: tuple[Fact, ...] = ()
    fields: tuple[JudgedField, ...] = ()
    image_rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleJob:
    """All of one sample that the report shows, before anything of it is decoded or rendered.

    `addresses` are those of its pictures where a server has them; else they are linked from `folder`, or put in.
    """

    ident: str
    task: str
    images: tuple[PageSource, ...] = ()
    prompt: str = ""
    text: str = ""
    reference: str = ""
    answers: tuple[Answer, ...] = ()
    folder: Path = Path()
    embed: bool = False
    plain: bool = False
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PackedSample:
    """A sample as it goes into the file. `payload` is gzipped JSON in base64; no thumbnail is ("", 0).

    `has_layout`: some engine tells where it saw the parts of the page.
    """

    thumbnail: Thumbnail
    payload: str
    has_layout: bool = False


def pack_all(jobs: Iterable[SampleJob], *, total: int, seconds: float = SAMPLE_SECONDS) -> Iterator[PackedSample]:
    """Pack samples on all cores, in order; only a few are in memory at a time."""
    workers = 1 if total < _SINGLE else min(os.cpu_count() or 1, 16)
    waiting: deque[tuple[SampleJob, Future[Output]]] = deque()
    with threaded_pool(PACKER, workers) as pool:
        for job in jobs:
            waiting.append((job, pool.submit(job, seconds=seconds)))
            if len(waiting) >= 4 * workers:
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())


def _finished(job: SampleJob, future: Future[Output]) -> PackedSample:
    try:
        return unpacked(future.result())
    except EngineUnavailableError:
        raise
    except EngineError:
        return pack(replace(job, plain=True))


def load() -> Loaded:
    """`pack` as a worker uses it."""
    return Loaded(read=_packed)


def _packed(job: SampleJob) -> Output:
    packed = pack(job)
    small = {"thumbnail": packed.thumbnail.data, "ratio": packed.thumbnail.ratio}
    return Output(text=packed.payload, response={**small, "has_layout": packed.has_layout})


def unpacked(output: Output) -> PackedSample:
    """The result of a job of `PACKER`, unpacked."""
    response = output.response or {}
    return PackedSample(Thumbnail(response["thumbnail"], response["ratio"]), output.text, response["has_layout"])


def pack(job: SampleJob) -> PackedSample:
    """One sample, packed. With `plain`, nothing of it is decoded or rendered."""
    small, pictures = (Thumbnail("", 0), []) if job.plain else _pictures(job)
    payload = {
        "pictures": pictures,
        "prompt": _cut(job.prompt)[0],
        "input": _cut(job.text)[0],
        "task": job.task,
        "notice": "This sample took too long to render, so it is shown as plain text." if job.plain else "",
        "reference": _text(job.reference, job) if job.reference else None,
        "answers": (answers := [_answer(answer, job) for answer in job.answers]),
        "ratio": round(small.ratio, 4),
        **({} if job.plain else _matches(job.answers, small.ratio)),
    }
    has_layout = any(answer is not None and answer["layout"] is not None for answer in answers)
    return PackedSample(small, compressed(payload), has_layout)


def _matches(answers: Sequence[Answer], ratio: float) -> JsonObject:
    """The annotated page and, for each answer, its match; nothing if no score is explained."""
    page = packed_page([answer.explanation for answer in answers], ratio)
    if page is None:
        return {}
    matches = [packed_match(answer.explanation) if answer.explanation else None for answer in answers]
    return {"page": page, "matches": matches}


def compressed(payload: JsonObject) -> str:
    """A JSON value as base64 of gzip; the same value always gives the same bytes."""
    data = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def _pictures(job: SampleJob) -> tuple[Thumbnail, list[JsonObject]]:
    """The thumbnail of the first image that can be read, and the full picture (or what is wrong with it) of each."""
    small = Thumbnail("", 0)
    found: list[JsonObject] = []
    for place, source in enumerate(job.images[:PICTURE_LIMIT]):
        name = _name(source)
        try:
            if not small.data:
                small = make_thumbnail(source)
            address = (
                job.addresses[place] if job.addresses else full_picture(source, folder=job.folder, embed=job.embed)
            )
            found.append({"name": without_surrogates(name), "src": address})
        except (PageError, OSError) as error:
            found.append({"name": without_surrogates(name), "error": without_surrogates(str(error))})
    if len(job.images) > PICTURE_LIMIT:
        found.append({"name": f"{len(job.images) - PICTURE_LIMIT} more pages are not in this report", "error": ""})
    return small, found


def _name(source: PageSource) -> str:
    if isinstance(source, DocumentPage):
        variant = source.variant if isinstance(source, PdfPage) else ""
        return f"{source.path.name}, page {source.page}" + (f", {variant}" if variant else "")
    return f"{source.path.name}, {source.member}" if isinstance(source, PackedImage) else source.name


def _answer(answer: Answer, job: SampleJob) -> JsonObject | None:
    prediction = answer.prediction
    if prediction is None:
        return None
    adapted = apply_adapters(prediction.text, answer.adapters) if answer.adapters else prediction.text
    shown: JsonObject = {
        "outcome": prediction.outcome,
        "failed": prediction.failed,
        "error": _cut(prediction.error)[0],
        "scoringError": _cut(answer.scoring_error)[0],
        "facts": _facts(prediction),
        "values": list(answer.values),
        "units": list(answer.units),
        "hiddenUnits": answer.hidden_units,
        "diagnostics": list(answer.diagnostics),
        "reasoning": _cut(prediction.reasoning or "")[0],
        "tests": packed_facts(answer.facts),
        "fields": packed_fields(answer.fields),
        "layout": None if job.plain else packed_layout(prediction, _page(job), answer.image_rule),
        **_text(adapted, job),
    }
    if adapted != prediction.text:
        shown["raw"] = _cut(prediction.text)[0]
        shown["adapters"] = list(answer.adapters)
    return shown


def _page(job: SampleJob) -> PageSource | None:
    """The page that engines tell areas of: they take one alone."""
    return job.images[0] if len(job.images) == 1 else None


def _facts(prediction: Prediction) -> list[tuple[str, str]]:
    found = [("finish reason", prediction.finish_reason or "")]
    for name, count in (("input tokens", prediction.input_tokens), ("output tokens", prediction.output_tokens)):
        found.append((name, "" if count is None else f"{count:,}"))
    found.append(("seconds", f"{prediction.seconds:.2f}" if prediction.seconds else ""))
    found.append(("attempt", str(prediction.attempt) if prediction.attempt > 1 else ""))
    return [(name, value) for name, value in found if value]


def _text(text: str, job: SampleJob) -> JsonObject:
    """A text and, where the task is one of markup, its rendering."""
    kept, hidden = _cut(text)
    shown: JsonObject = {"text": kept, "hidden": hidden}
    if job.task in MARKUP_TASKS and not job.plain:
        rendered = render_markdown(text)
        shown |= {"html": rendered.html, "notice": rendered.notice}
    return shown


def _cut(text: str) -> tuple[str, int]:
    """The text as far as the report keeps it, and how many characters it does not."""
    return without_surrogates(text[:TEXT_LIMIT]), max(0, len(text) - TEXT_LIMIT)
