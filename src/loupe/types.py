"""The records that travel along the line: Sample → Request → Output → Prediction → Score → Result.

Only `Sample` holds ground truth; a `Request`, which is all an engine ever sees, has no field for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from loupe.explanation import Explanation, Fact, JudgedField
from loupe.typed import possible_tokens

Outcome: TypeAlias = Literal[
    "ok", "empty", "truncated", "repeated", "unfinished", "refused", "rejected", "timeout", "error", "missing"
]

#: What decoding somebody's JSON raises, depth included.
UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

#: Outcomes without an answer: they score as an empty answer and count as failed.
FAILED: frozenset[str] = frozenset({"unfinished", "refused", "rejected", "timeout", "error", "missing"})
#: The `finish_reason` of an answer that stands in a file, but is no text: it failed, and it is not missing.
UNREADABLE = "unreadable"
#: Outcomes that the same command tries again.
RETRIED: frozenset[str] = frozenset({"timeout", "error", "missing"})


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """One page of a file with pages; `page` counts from 1."""

    path: Path
    page: int = 1


@dataclass(frozen=True, slots=True)
class PdfPage(DocumentPage):
    """One page of a PDF. `variant` names what is done to its picture (loupe.data.variants)."""

    variant: str = ""

    def __str__(self) -> str:
        return f"{self.path}#page={self.page}" + (f", {self.variant}" if self.variant else "")


@dataclass(frozen=True, slots=True)
class TiffPage(DocumentPage):
    """One page of a TIFF file. Thumbnails and masks in the file are not counted."""


@dataclass(frozen=True, slots=True)
class PackedImage:
    """An image inside a data file: a member of a zip, of a parquet file as "ROW/COLUMN" (rows count from 0), of a table
    (`.tsv`) as the bytes "START+LENGTH".
    """

    path: Path
    member: str

    def __str__(self) -> str:
        return f"{self.path}, {self.member}"


#: Where a page image comes from: an image file, a page of a PDF or TIFF file, or an image inside a data file.
PageSource: TypeAlias = Path | PdfPage | TiffPage | PackedImage


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One page, line, table or question, with its ground truth.

    `prompt` is the sample's own question, if it has one. `task` overrides the benchmark's task where tasks are mixed.
    `group` names the cluster that the bootstrap resamples together (a document of many pages); empty: the sample alone.
    `text` is the input of samples without an image. `scoring` holds options that only say how answers are scored: they
    are no part of the data, nor of its digest.
    """

    id: str
    images: tuple[PageSource, ...] = ()
    truth: Any = None
    prompt: str = ""
    task: str = ""
    group: str = ""
    text: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    scoring: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What an engine may see of a sample. `max_tokens` is the benchmark's limit; a profile may set its own."""

    id: str
    prompt: str = ""
    images: tuple[PageSource, ...] = ()
    text: str = ""
    task: str = ""
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What an engine gives back for one request. `seconds` only if the engine knows better than the scheduler.

    `discarded_tokens` (in, out) are those of answers that were given up for this one, and are paid for too. `endpoint`
    is the server that answered, `first_token` the seconds until a streamed answer began. `charged` is what a service
    says that it charges for: `pages`, `credits`.
    """

    text: str
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning: str | None = None
    seconds: float | None = None
    response: Mapping[str, Any] | None = None
    discarded_tokens: tuple[int, int] = (0, 0)
    endpoint: str = ""
    first_token: float | None = None
    charged: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        """Forget counts of tokens that nothing can have: a server may say anything."""
        for name in ("input_tokens", "output_tokens"):
            object.__setattr__(self, name, possible_tokens(getattr(self, name)))
        object.__setattr__(
            self, "discarded_tokens", tuple(possible_tokens(each) or 0 for each in self.discarded_tokens)
        )


class Prediction(msgspec.Struct, frozen=True, kw_only=True, rename={"outcome": "class"}):
    """One ended attempt on one sample: a line of `predictions.jsonl`. `text` is exactly what the engine gave.

    `joined` says that `text` is what `AnswerLayout.join` made of several files. No engine can say so of its own answer.
    `began` and `ended` (Unix time) enclose all attempts, pauses included, while `seconds` is the time of the last one.
    Of a page in parts, `uncounted` are the calls whose tokens nobody told (answered, given up), and `lost` the parts
    that may be read another time: the same command asks for such a page again. `asked` is a digest of the question and
    the pages, for folders of one's own. `source` is the whole file that `AnswerLayout.read` took `text` from.
    """

    sample: str = ""
    text: str = ""
    outcome: Outcome = "ok"
    error: str = ""
    finish_reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    seconds: float = 0.0
    attempt: int = 1
    reasoning: str | None = None
    response: dict[str, Any] | None = None
    joined: bool | msgspec.UnsetType = msgspec.UNSET
    endpoint: str | msgspec.UnsetType = msgspec.UNSET
    began: float | msgspec.UnsetType = msgspec.UNSET
    ended: float | msgspec.UnsetType = msgspec.UNSET
    discarded_tokens: tuple[int, int] | msgspec.UnsetType = msgspec.UNSET
    uncounted: tuple[int, int] | msgspec.UnsetType = msgspec.UNSET
    lost: int | msgspec.UnsetType = msgspec.UNSET
    charged: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    asked: str | msgspec.UnsetType = msgspec.UNSET
    source: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def failed(self) -> bool:
        """True if there is no answer (one of `FAILED`). It then scores as an empty one."""
        return self.outcome in FAILED

    def __reduce__(self) -> tuple[Any, ...]:
        """As pickled, without the fields that are not set: pickle would search every module for UNSET, each time."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return _prediction, ({name: value for name, value in values.items() if value is not msgspec.UNSET},)


def _prediction(values: dict[str, Any]) -> Prediction:
    return Prediction(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One measurement on one unit (a page, a table, a fact, a field) of one prediction, as counts that add up.

    A mean over pages: `(value, 1)`; an F1 over everything: `(2 * hits, given + wanted)`.
    """

    measure: str
    counts: tuple[float, ...]
    unit: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Scores of one answer, and what the benchmark keeps beside them: `details` go to `scores.jsonl` as they are."""

    scores: list[Score]
    details: Mapping[str, Any]


#: Finished values by measure name: numbers, or arrays of bootstrap draws.
Values: TypeAlias = dict[str, Any]


def reference_text(sample: Sample) -> str:
    """The ground truth where it is a text, else nothing to compare with."""
    return sample.truth if isinstance(sample.truth, str) else ""


#: What samples without an answer are to the numbers of a benchmark.
FailedAre: TypeAlias = Literal["empty", "left out", "partly left out"]

#: Keyword parameters are options. The first is the data folder; None: `loupe.data.hub.store.default_root(id)`.
Load: TypeAlias = Callable[..., Iterable[Sample]]
ScoreFunction: TypeAlias = Callable[[Sample, Prediction], list[Score] | Scored]
#: Does work for many samples at once that scoring each of them would do again, and leaves it where `score` finds it.
Prepare: TypeAlias = Callable[[Sequence[tuple[Sample, Prediction]]], None]
Predict: TypeAlias = Callable[[Request], Awaitable[Output]]


#: What the value of a measure is; see `Measure`.
Unit: TypeAlias = Literal["fraction", "number", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """How the summed counts of one measure become a number.

    `value` maps an array of sums, shape (..., k), to an array of shape (...); None means first count over second (0/0
    is nan: not computed). `pooled` measures get all their rows, shape (n, k), instead, and pay with a slower interval.
    `unit` is "fraction" (shown in percent), "number", or "count": points out of one for each score, shown as
    `838 / 1,000`. `bounded` numbers lie between 0 and 1, as fractions do.
    `of_parts` is made of what other measures tell: where samples have fewer of these, it is another number.
    `sampled=False` counts what happened in a run, which is no sample of anything: the same in every draw, no interval.
    """

    name: str
    higher_is_better: bool = True
    title: str = ""
    value: Callable[[Any], Any] | None = None
    pooled: bool = False
    unit: Unit = "fraction"
    bounded: bool = False
    of_parts: bool = False
    sampled: bool = True

    def merit(self, value: float) -> float:
        """The value with a sign by which more is better: what is sorted by, and what gains are differences of."""
        return value if self.higher_is_better else -value


class Edit(NamedTuple):
    """What takes the place of the characters from `start` up to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatFault:
    """Something in an answer's form, and not in what was read, that costs points: one edit mends one place of it.

    `edits` gets the answer with newlines alone as line ends; it returns edits in order that do not overlap. `adapter`
    is the step that mends it in a run, "" where none does.
    """

    name: str
    meaning: str
    edits: Callable[[str], Sequence[Edit]]
    adapter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLayout:
    """Where answers that exist already stand, as a benchmark's official evaluator has it; None: as anywhere else.

    `in_document(document, samples)` yields (sample id, text) out of an official JSON document. `published_names` gives
    sample ids by the names that answers have elsewhere. In a folder, `file_names(sample)` are tried in order; or
    `in_folder(samples, names)` says which files answer each sample; it comes with `join`, which makes one text of
    several (None: one that cannot be read). `read(path, samples)` reads all itself, by sample id or else file name.
    """

    read: Callable[[Path, Iterable[Sample]], Iterable[Prediction]] | None = None
    in_document: Callable[[Any, Iterable[Sample]], Iterable[tuple[str, str]]] | None = None
    published_names: Callable[[Iterable[Sample]], Mapping[str, str]] | None = None
    file_names: Callable[[Sample], Sequence[str]] | None = None
    in_folder: Callable[[Iterable[Sample], Iterable[str]], Mapping[str, Sequence[str]]] | None = None
    join: Callable[[Sequence[str | None]], str] | None = None


#: Marks a parameter of a benchmark's `load` that Loupe sets itself: `Annotated[str, INTERNAL]`.
INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Composite:
    """One number of several benchmarks: the mean of the headlines of an engine that has read all `of` them (ids)."""

    name: str
    of: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Where the data of a benchmark is published on the hub, and which files of it are needed.

    `patterns` are globs over paths of `repo`, in which `*` also crosses `/`; `unpack` are globs of zip files that are
    unpacked after the download. `revision` is resolved when the data is fetched; the manifest pins the commit found.
    `folder` is the name in the store, by default the `id`: that of the benchmark, which its registry fills in.
    `sources` are other places of the same data, by name (`--source`). `tasks` are the measures that the hub's
    leaderboard of the data set has, under these names.
    """

    repo: str
    id: str = ""
    patterns: tuple[str, ...] = ("*",)
    revision: str = "main"
    licence: str = "not stated: read the page of the data set"
    note: str = ""
    unpack: tuple[str, ...] = ()
    folder: str = ""
    sources: Mapping[str, DataSet] = field(default_factory=dict)
    tasks: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """The name of its folder in the store."""
        return self.folder or self.id

    @property
    def page(self) -> str:
        """Where a person reads about it, and accepts its terms."""
        return f"https://huggingface.co/datasets/{self.repo}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityCases:
    """How `loupe verify` holds a benchmark against its official evaluator, case by case of `verify_cases/<id>.jsonl`.

    `compare` gives pairs of our value and the official one, None for a case that cannot be compared on this machine,
    of which `not_compared` says why. `deviations` are the known differences, one sentence each. `oracles` are the files
    of a checkout's `tests/oracles` that hold more cases, each with what makes the benchmark's cases of one of the
    file's; None where they are its cases as they are.
    """

    compare: Callable[[dict[str, Any]], list[tuple[float, float]] | None]
    deviations: tuple[str, ...] = ()
    not_compared: Callable[[], tuple[str, ...]] = tuple
    oracles: Mapping[str, Callable[[dict[str, Any]], Iterable[dict[str, Any]]] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A benchmark: where samples come from, what is asked, and how an answer is scored. One module each.

    `task` is text, markdown, table, formula, fields, class or question, which have default prompts and are refused to
    engines that cannot do them; any other word has neither.
    `prompt` is asked of samples without a prompt of their own; `usual_prompt` says what these are asked by default.
    `summarize` turns finished values of measures into further ones (an "overall"); it must work on numbers and on
    arrays of bootstrap draws alike, and its names are declared in `measures` too. `reference` gives the right answer as
    a text, which diagnostics compare with and `loupe bench check` scores; set it where `truth` is no text ("": none).
    `suffix` is that of the exported prediction files, `published_total` how many samples the published set has (0:
    unknown, or a question of its options).
    `conclude` looks at all samples of a run together. `explain` tells the report how an answer was matched, from what
    the benchmark keeps in `details`; `facts` tells it of the tests that an answer was put to, failed ones with what
    shows why, `fields` of the fields of a document, each with the rule that decided; both get the answer as it was
    scored. `faults` are those of form that cost points, in the order in which they are mended; `harmless` names those
    of adapters that cost nothing by its rules. `answers` says where existing answers stand; `submission` makes the JSON
    document that the official server takes of answers ("": none).
    With `further`, scores may have measures that are not declared, as a data set may bring
    parts of its own: each is then a measure like this one, under its own name. `composite` is the number that it forms
    with other benchmarks. `data` is what `loupe data get` brings, `parity` what `loupe verify` checks.

    `prepare` is for scores that need an outside program (TeX, a browser), which is quick only with many inputs at once.
    A scoring process calls it with a batch of samples and their answers as `score` will see them, then `score` for
    each; what it finds it leaves in memory or in a cache on disk. It is only ever a way to be faster: `score` must give
    the same alone, and does so where `prepare` raised, hung or died. `tools` names these programs with their versions
    ("" where one is missing): other tools, and samples are scored anew. It must be quick.

    `draw` makes the pages of a sample where they are not there yet, in a process beside inference; each is called by
    the digest of everything that decides about its pixels, which stands for them in the digest of the data.
    """

    title: str
    version: str
    task: str
    measures: tuple[Measure, ...]
    load: Load
    score: ScoreFunction
    prompt: str = ""
    usual_prompt: str = ""
    headline: str = ""
    summarize: Callable[[Values], Values] | None = None
    reference: Callable[[Sample], str] = reference_text
    max_tokens: int = 4096
    suffix: Literal[".txt", ".md"] = ".txt"
    conclude: Callable[[Sequence[SampleScores]], Conclusion] | None = None
    prepare: Prepare | None = None
    draw: Callable[[Sample], None] | None = None
    tools: Callable[[], Mapping[str, str]] | None = None
    explain: Callable[[Sample, SampleScores], Explanation | None] | None = None
    facts: Callable[[Sample, Prediction, SampleScores], Sequence[Fact]] | None = None
    fields: Callable[[Sample, Prediction], Sequence[JudgedField]] | None = None
    faults: Sequence[FormatFault] = ()
    harmless: frozenset[str] = frozenset()
    further: Measure | None = None
    composite: Composite | None = None
    answers: AnswerLayout = AnswerLayout()
    submission: Callable[[Iterable[tuple[Sample, str]]], Any] | None = None
    paper: str = ""
    data: DataSet | None = None
    parity: ParityCases | None = None
    published_total: int = 0

    def measures_of(self, names: Iterable[str]) -> tuple[Measure, ...]:
        """The declared measures, and behind them those that are `further` ones among these names."""
        if self.further is None:
            return self.measures
        others = sorted({*names} - {measure.name for measure in self.measures})
        return (*self.measures, *(replace(self.further, name=name, title=name.replace("_", " ")) for name in others))

    @property
    def headline_measure(self) -> str:
        """The measure that ranks engines: `headline`, else the first one declared."""
        return self.headline or self.measures[0].name


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """What was read of a page in parts. `outcome` is its class where the text does not tell; `error` is why it failed.

    `lost` counts the parts that may be read another time; `uncounted` is as in `Prediction`.
    """

    output: Output
    outcome: Outcome | None = None
    error: str = ""
    lost: int = 0
    uncounted: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """A page that is read in parts: requests to the same engine, and what makes one answer of how these ended.

    `join` gets one prediction for each part, in their order: failed ones too, and `missing` for those that the run came
    to no more.
    """

    parts: Sequence[Request]
    join: Callable[[Sequence[Prediction]], Joined]


class RequestPlaces(Protocol):
    """Places for requests, of which there may be more or fewer from one moment to the next, and never above `most`."""

    limit: int
    most: int

    def place(self) -> AbstractAsyncContextManager[None]:
        """Wait for a place and hold it."""

    def note(self, outcome: Literal["answered", "refused", "timeout", "failed"]) -> None:
        """An attempt has ended so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An opened engine: one function that reads, and what is known about it.

    `facts` goes to run.json (resolved model id, server kind, package versions). `healthy` answers whether the engine as
    a whole still works; None: every failure concerns its own sample only. `status` says in a few words what a person
    who watches should know ("1 of 2 servers out"). An engine that reads pages in parts has `divide`, for up to
    `dividers` pages at once: its parts are then asked like requests of their own, those of several pages together.
    `places` are those of an engine that has more or fewer workers as time goes by, whatever the profile says.
    """

    predict: Predict
    facts: Mapping[str, str] = field(default_factory=dict)
    healthy: Callable[[], Awaitable[bool]] | None = None
    status: Callable[[], str] | None = None
    divide: Callable[[Request], Awaitable[Division]] | None = None
    dividers: int = 1
    places: RequestPlaces | None = None


class SampleScores(msgspec.Struct, frozen=True, kw_only=True, rename={"outcome": "class"}):
    """All scores of one sample: a line of `scores.jsonl`.

    `error` says why there is no answer, or why scoring failed; either way it counts as an empty answer. `diagnostics`
    holds numbers beside the score (see docs/diagnostics.md), `details` what the benchmark explains its scores with.
    `digest` identifies what was scored, so that unchanged samples are reused; it is empty where scoring failed. `seal`
    is the proof that this user's Loupe wrote the line (loupe.data.seals).
    """

    sample: str
    group: str = ""
    tags: dict[str, str] = {}
    outcome: str = "ok"
    scores: list[Score] = []
    diagnostics: dict[str, float] = {}
    details: dict[str, Any] = {}
    error: str = ""
    digest: str = ""
    seal: str = ""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """What a benchmark says of all samples together: `figures` in its own layout, `warnings` for people.

    `failed_are` says what samples without an answer are to its numbers: empty ones, or (as upstream has it) left out.
    `official` is the row of an official table in one line, where it is not simply the measures. `not_computed` says why
    measures have no value ("": they are none of this run, and not worth a word). `slices` are further ones, by
    attributes of what is smaller than a sample.
    """

    figures: dict[str, Any] = {}
    failed_are: FailedAre = "empty"
    warnings: list[str] = []
    official: str = ""
    not_computed: dict[str, str] = {}
    slices: dict[str, dict[str, dict[str, Estimate]]] = {}


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its 95 % interval, and whether few pages carry its error; `n` counts units. None: not computed."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    few_carry_error: bool = False


class PublishedRow(msgspec.Struct, frozen=True, kw_only=True):
    """What others have published of an engine on a benchmark: values by measure, in the measure's own unit.

    `name` is the engine's at the source; `engines` are the ids that Loupe knows it by, its own first, then others of
    the same model. `published=False`: told to us, and nobody else can look it up. `half_width` is half of the
    headline's official interval. `settings` is what the source says of how the numbers were made, `options` and
    `limit` how the same samples and rules are had here. `not_reproducible` is why nobody else can make the number.
    """

    benchmark: str
    version: str
    name: str
    engines: list[str]
    values: dict[str, float]
    source: str
    published: bool = True
    not_reproducible: str = ""
    half_width: float | None = None
    options: dict[str, str] = {}
    limit: int | None = None
    settings: dict[str, str] = {}
    notes: list[str] = []


class Failure(msgspec.Struct, frozen=True, kw_only=True, rename={"outcome": "class"}):
    """A sample that has no answer, or whose scoring failed (class `scorer`)."""

    sample: str
    outcome: str
    error: str = ""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `result.json`: every number with interval and n, and everything that was not scored as it is.

    `slices` maps tag → value of the tag → measure → estimate. `outcomes` counts samples by class (those without any
    record as `missing`, too); `total` is the number of samples asked for, `part` which of all these are, as `first 2 of
    19` ("": all). `diagnostics` are shares and counts beside the score, `figures` further numbers in the layout of the
    benchmark's official evaluator, `official` a row of its table. `not_computed` says why measures have no
    value, `published_total` how many samples the published set has. `speed` holds time, tokens and costs, these in
    `currency`. `scored_here` is False if the scores came from elsewhere; whoever reads a file finds that out, and never
    believes it (loupe.results.scored_here). `data_origin` is `pack`, `named` or `unknown` if the data did not come
    from the hub ("": it did, or there is no published set).
    """

    benchmark: str
    version: str
    engine: str
    signature: str
    headline: str
    measures: dict[str, Estimate]
    directions: dict[str, bool]
    units: dict[str, str]
    slices: dict[str, dict[str, dict[str, Estimate]]] = {}
    total: int = 0
    part: str = ""
    outcomes: dict[str, int] = {}
    failures: list[Failure] = []
    diagnostics: dict[str, float] = {}
    speed: dict[str, float] = {}
    currency: str = ""
    statistics: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    failed_are: FailedAre = "empty"
    warnings: list[str] = []
    official: str = ""
    not_computed: dict[str, str] = {}
    published_total: int = 0
    scored_here: bool = True
    data_origin: str = ""
