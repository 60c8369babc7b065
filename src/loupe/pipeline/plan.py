"""Plans of runs, made before they start: their samples, their prompts, and the `run.json` that pins them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from loupe.benchmarks import benchmark_id, benchmark_of_run, filed_as
from loupe.benchmarks.registry import benchmark_ids, changed_options, check_options, is_own_folder
from loupe.data.digests import drawn_digest, source_digest
from loupe.data.hub.origin import seal_of_place
from loupe.engines.pages.anchor_text import MARK
from loupe.engines.pages.page_reader import anchored_by
from loupe.engines.registry import Profile, profile_names, slug
from loupe.errors import DatasetError, UsageError, word
from loupe.files.default_places import RUNS
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.inference.prompts import prompts_by_task
from loupe.inference.retries import Policy
from loupe.runs.drawn import Drawn, draw, draw_stratified
from loupe.runs.info import RunInfo, digest_of, host_facts, package_versions, signature
from loupe.servers.wanted import wanted_server
from loupe.typed import storable
from loupe.types import Benchmark, Engine, Sample

if TYPE_CHECKING:
    from loupe.inference.progress import Progress
    from loupe.scoring.process import Hands

#: What OCR alone does not give, by the task; and the tasks that ask something of a text, which a text model can answer.
NOT_BY_OCR = {"table": "tables", "fields": "fields", "class": "labels", "question": "answers", "formula": "LaTeX"}
ASKED = frozenset({"fields", "class", "question"})
#: Letters of the digest of a question with its pages.
_ASKED = 16
#: The kind of engine that is both.
OCR_AND_TEXT = "ocr_and_text"


class Executor(Protocol):
    """An executor elsewhere, such as a cluster (hooks of the group `executors`). `tell` takes its remarks."""

    tell: Callable[[str], None]

    def reads(self, profile: Profile) -> bool:
        """Return whether it opens this engine; the others ask a server, from this process."""

    def open_profile(
        self, profile: Profile, progress: Progress, known: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[Engine]:
        """Open an engine; `known` are its facts in the run so far. Raises what opening it raises."""

    def hands(self, benchmark: str, adapters: Sequence[str]) -> Hands:
        """Return its processes as scorers of a benchmark."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One engine on one benchmark. `redo` names classes of done samples to ask again; `name` files the run apart.
    `reuse` is a run whose answers to unchanged samples are taken over, which a command of several runs (not `alone`)
    does not take.

    `limit` asks for the first samples only, `sample` for so many at random by `seed`; "stratified" draws `limit` of
    them in proportion to task and tags. `max_cost` is what all attempts of the run may cost, in the currency of the
    profile's prices. `shared`: others on this machine may read a new run folder. `repeats` names the run that this one
    repeats. `opener` opens an engine that lives in this process; without it the profile is opened. A run that is not
    `lasting` goes with this process: nobody continues it, and its answers are not written as files beside it. With a
    `executor` its machines read and score.
    """

    benchmark: str
    label: str
    profile: Profile
    runs: Path | Folder = RUNS
    name: str = ""
    data: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    sample: int | Literal["stratified"] | None = None
    seed: int = 0
    fresh: bool = False
    redo: frozenset[str] = frozenset()
    reuse: Path | None = None
    jobs: int | None = None
    policy: Policy | None = None
    max_cost: float | None = None
    shared: bool = False
    repeats: str = ""
    lasting: bool = True
    alone: bool = True
    opener: Callable[[], AbstractAsyncContextManager[Engine]] | None = None
    executor: Executor | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "profile", self.profile.for_benchmark(benchmark_id(self.benchmark)))

    @property
    def folder(self) -> Folder:
        """The run folder: `runs/<engine or name>/<benchmark>`."""
        return self.root / f"{slug(self.name or self.label)}/{slug(filed_as(self.benchmark))}"

    @property
    def root(self) -> Folder:
        """The root of runs."""
        return self.runs if isinstance(self.runs, Folder) else Folder(self.runs)

    @property
    def path(self) -> Path:
        """Its path."""
        return self.folder.path


@dataclass(frozen=True)
class Survey:
    """The findings of one pass over the samples, without opening a page. `gone`: no page of any is there; this is one.

    `tasks` are those of samples without a question of their own, in order; `all_tasks` those of any.

    `truth_digest` covers everything but the page images: what a score depends on. `question_digest` leaves references
    out, too: what an answer depends on. `slicing_digest` covers tags and groups: what only the result depends on.
    `page_digests` are those of the images, in order. `anchored` is a question of a sample's own that wants the text of
    its page, "" if none does.

    Of a folder of one's own the order of lines changes no digest (`first_ids` has it), and `asked` has one of each
    sample's question and pages: answers to samples that have not changed stay good when others come or go.
    """

    ids: tuple[str, ...]
    data_digest: str
    truth_digest: str
    tasks: tuple[str, ...]
    all_tasks: frozenset[str] = frozenset()
    question_digest: str = ""
    slicing_digest: str = ""
    gone: Path | None = None
    page_digests: tuple[str, ...] = ()
    anchored: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)


def open_samples(info: RunInfo, *others: RunInfo) -> Iterator[Sample]:
    """The samples of a run again, in order, as many as it asked for; of several runs those that any of them asked for.

    Raises DatasetError if the data is gone.
    """
    runs = (info, *others)
    largest = max(runs, key=lambda run: run.total)
    benchmark = benchmark_of_run(largest.benchmark)
    every = partial(samples_of, benchmark, Path(largest.data) if largest.data else None, largest.options)
    # Parts that are drawn alike hold one another.
    if len({run.sample.way if run.sample else None for run in runs}) == 1:
        return every(largest.limit, largest.sample)
    return (one for number, one in enumerate(every()) if any(_asked_for(run, number, one.id) for run in runs))


def _asked_for(info: RunInfo, number: int, ident: str) -> bool:
    """True if a run asks for the sample with this number in the set."""
    return (info.limit is None or number < info.limit) and (info.sample is None or info.sample.holds(ident))


def asked_ids(ids: Sequence[str], info: RunInfo) -> tuple[str, ...]:
    """Of all ids of a set those that a run asks for, in their order."""
    return tuple(ident for number, ident in enumerate(ids) if _asked_for(info, number, ident))


def first_ids(ids: Sequence[str], info: RunInfo) -> str:
    """Return the digest of the ids that a limited run on a folder of one's own asks for, "" for any other run."""
    return digest_of(asked_ids(ids, info)) if info.limit is not None and is_own_folder(info.benchmark) else ""


def asks_for_others(info: RunInfo, ids: Sequence[str]) -> bool:
    """Return whether a limited run would ask for other samples now, because lines were moved."""
    return bool(info.first) and first_ids(ids, info) != info.first


def samples_of(
    benchmark: Benchmark,
    data: Path | None,
    options: Mapping[str, str],
    limit: int | None = None,
    drawn: Drawn | None = None,
) -> Iterator[Sample]:
    """The samples of a benchmark with checked options: all, the first `limit` of them, or those drawn."""
    for count, sample in enumerate(benchmark.load(data, **check_options(benchmark, options))):
        if limit is not None and count >= limit:
            return
        whole = _with_whole_characters(sample)
        if drawn is None or drawn.holds(whole.id):
            yield whole


def _with_whole_characters(sample: Sample) -> Sample:
    """The sample as its answers are stored: half a surrogate pair is U+FFFD on both sides of a comparison."""
    texts = {name: getattr(sample, name) for name in ("id", "truth", "prompt", "text", "group", "tags")}
    try:
        msgspec.json.encode(texts, enc_hook=lambda _: None)
    except UnicodeEncodeError:
        return replace(sample, **storable(texts))
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass  # A truth of some other kind: whoever stores it says so.
    return sample


class _OwnFolder:
    """The digests of a folder of one's own, in which the order of lines does not matter."""

    def __init__(self) -> None:
        self.asked: dict[str, str] = {}
        self._rows: list[tuple[str, str, str, str]] = []

    def add(self, part: list[object], question: list[object], pages: list[str], slices: str) -> None:
        """Take a sample, whose id is the first of its question."""
        ident = str(question[0])
        shown, sliced = digest_of([ident, pages]), digest_of([ident, slices])
        self._rows.append((digest_of([part]), shown, digest_of([question]), sliced))
        self.asked[ident] = digest_of([question, pages])[:_ASKED]

    def close(self, questions: hashlib._Hash, slicing: hashlib._Hash) -> tuple[str, list[str]]:
        """Return the digest of the truth and those of the pages; the others go on with what was taken."""
        truths, shown, asked, sliced = map(sorted, zip(*self._rows, strict=True))
        questions.update("".join(asked).encode())
        slicing.update("".join(sliced).encode())
        return digest_of(truths), shown


def survey(
    benchmark: Benchmark, name: str, data: Path | None, options: Mapping[str, str], *, pages: bool = True
) -> Survey:
    """Read through all samples once: ids (unique), tasks, and digests of everything that is asked and expected.

    The digests cover the whole data set, also beyond `--limit`, so that a limited run can be continued without one.
    Without `pages` no image is read, and `data_digest` is empty. Raises DatasetError for equal ids or no samples.
    """
    seen, tasks, all_tasks = dict[str, None](), dict[str, None](), set[str]()
    images, files, anchored = list[str](), list[Path](), list[str]()
    slicing, questions = hashlib.sha256(), hashlib.sha256()
    own, there = _OwnFolder() if is_own_folder(name) else None, False
    digest = drawn_digest if benchmark.draw else source_digest  # A page that is yet to be drawn has its own.

    def parts() -> Iterator[list[object]]:
        nonlocal there
        for sample in samples_of(benchmark, data, options):
            if sample.id in seen:
                raise DatasetError(f"{name}: two samples have the id {sample.id!r}", hint="ids must differ")
            seen[sample.id] = None
            task = sample.task or benchmark.task
            all_tasks.add(task)
            if not sample.prompt:
                tasks[task] = None
            elif MARK in sample.prompt and not anchored:
                anchored.append(sample.prompt)
            of_sample = list(map(digest, sample.images)) if pages else []
            there = there or not all(page.startswith("missing") for page in of_sample)
            shown = sample.images[:1] if pages and not files else ()
            files.extend(image if isinstance(image, Path) else image.path for image in shown)
            slices = repr((sample.group, sorted(sample.tags.items())))
            question = [sample.id, sample.prompt, sample.text, task, len(sample.images)]
            part = [*question[:4], sample.truth, question[4]]
            if own:
                own.add(part, question, of_sample, slices)
            else:
                images.extend(of_sample)
                slicing.update(slices.encode("utf-8", "surrogatepass"))
                questions.update(repr(question).encode("utf-8", "surrogatepass"))
                yield part

    truth = digest_of(parts())
    if own and own.asked:
        truth, images = own.close(questions, slicing)
    if not seen:
        raise DatasetError(f"{name}: no samples", hint=f"see its options: loupe bench show {word(name)}")
    return Survey(
        ids=tuple(seen),
        data_digest=digest_of([truth, *images]) if pages else "",
        truth_digest=truth,
        tasks=tuple(tasks),
        all_tasks=frozenset(all_tasks),
        question_digest=questions.hexdigest(),
        slicing_digest=slicing.hexdigest(),
        gone=files[0] if files and not there else None,
        page_digests=tuple(images),
        anchored="".join(anchored),
        asked=own.asked if own and pages else {},
    )


def draft_engine(task: str) -> str:
    """Options that name an engine which can draft this task: OCR alone does not give everything."""
    if task not in NOT_BY_OCR:
        return "-e ENGINE"
    return f"-e {OCR_AND_TEXT}:rapidocr --base-url URL" if task in ASKED else "--base-url URL"


def refuse_plain_ocr(plan: Plan, tasks: Collection[str]) -> None:
    """Raise UsageError where all samples are of tasks whose answers an engine that only reads cannot give."""
    gives = plan.profile.gives
    if gives is None or not tasks or not gives.isdisjoint(tasks):
        return
    wanted = " and ".join(NOT_BY_OCR.get(task, task) for task in sorted(tasks))
    # Runs of a file of settings bear a label that `-e` does not take.
    reader = plan.label if plan.label in profile_names() else plan.profile.kind
    both = f"OCR and a text model as one engine: -e {OCR_AND_TEXT}:{word(reader)} --base-url URL; or "
    raise UsageError(
        f"{plan.name or plan.label} only reads the text of a page and gives no {wanted}",
        hint=f"{both if ASKED.issuperset(tasks) else ''}a vision model: --base-url URL (or -e NAME)",
    )


def make_info(plan: Plan, benchmark: Benchmark, found: Survey) -> RunInfo:
    """The `run.json` of a plan, but for what only the opened engine knows."""
    ident = benchmark_id(plan.benchmark)
    prompts = prompts_by_task(found.tasks, profile=plan.profile, benchmark=benchmark, benchmark_id=ident)
    parts = plan.profile.signature()
    defining = plan.profile.defining()
    # An engine with a token limit that its profile leaves open takes the benchmark's.
    if "t" in parts and "max" not in parts:
        parts = {"img": parts.pop("img", "none"), "max": str(benchmark.max_tokens), **parts}
        defining["max_tokens"] = benchmark.max_tokens
    if wanted := wanted_server(plan.profile):
        defining |= wanted.defining
        parts |= wanted.signature
    if anchors := anchored_by([*prompts.values(), found.anchored]):
        defining |= {"anchors": anchors}
        parts |= {"anchor": anchors}
    if plan.profile.version:
        parts = {"profile": plan.profile.version, **parts}
    data = str(real_path(plan.data)) if plan.data else ""
    info = RunInfo(
        benchmark=_lasting_name(plan.benchmark),
        benchmark_id=ident,
        version=benchmark.version,
        engine=plan.name or plan.label,
        profile=plan.profile.stored(),
        defining=defining,
        data=data,
        data_seal=seal_of_place(data),
        options=changed_options(benchmark, plan.options),
        data_digest=found.data_digest,
        truth_digest=found.truth_digest,
        question_digest=found.question_digest,
        prompt_digest=digest_of([sorted(prompts.items())]) if any(prompts.values()) else "",
        prompts=prompts,
        adapters=list(plan.profile.adapters),
        packages=package_versions(),
        host=host_facts(),
        limit=plan.limit if plan.sample is None else None,
        sample=_drawn(plan, benchmark, found),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        parts=parts,
    )
    info = msgspec.structs.replace(
        info, total=len(asked_ids(found.ids, info)), whole=len(found.ids), first=first_ids(found.ids, info)
    )
    return msgspec.structs.replace(info, signature=signature(info))


def _drawn(plan: Plan, benchmark: Benchmark, found: Survey) -> Drawn | None:
    """The samples that a plan draws; None if it asks for all, or for the first ones."""
    if plan.sample is None:
        return None
    if plan.sample != "stratified":
        return draw(found.ids, plan.sample, plan.seed)
    samples = samples_of(benchmark, plan.data, plan.options)
    kinds = ((sample.id, sample.task or benchmark.task, sample.tags) for sample in samples)
    return draw_stratified(kinds, plan.limit or len(found.ids), plan.seed)


def _lasting_name(benchmark: str) -> str:
    """The benchmark's name so that it is found again from another folder. An id wins over a folder of that name."""
    known = benchmark.partition("@")[0] in benchmark_ids()
    return benchmark if known else str(real_path(Path(benchmark)))
