"""A scoring process on a node: an actor that starts one as on one machine, and passes on what goes to and fro."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from loupe.benchmarks.registry import benchmark_ids
from loupe.cluster.pages import NODE_FOLDER
from loupe.cluster.sameness import differences, differing
from loupe.errors import LoupeError
from loupe.files.foreign import read_data
from loupe.files.scratch import scratch_folder
from loupe.scoring.process import Process
from loupe.types import PackedImage, PageSource, PdfPage, Sample

#: What a folder of one's own, or a saved selection, is opened from.
_DEFINING = (".toml", ".json", ".jsonl")
#: Pages that a scoring process keeps at a time.
_KEPT = 64
_files: list[Path] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringOrder:
    """What a node must be able to do: score `benchmark` as the driver would, by its `digest` of what scores.

    `files` are those that define a benchmark of one's own; `tools` the driver's programs, for a message.
    """

    benchmark: str
    adapters: tuple[str, ...]
    digest: str
    versions: Mapping[str, str]
    tools: Mapping[str, str]
    files: Mapping[str, bytes] = field(default_factory=dict)


class ScoringHost:
    """The actor. It does one thing at a time, and ends with its process."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    def open(self, order: ScoringOrder) -> tuple[str, str]:
        """Start a process; gives back why this node cannot score so ("": it can), and where the benchmark is here."""
        from loupe.benchmarks.registry import load_benchmark
        from loupe.scoring.digest import scorer_digest

        if differ := differences(order.versions, scoring=True):
            return f"other versions: {differ}", ""
        # For everything that scorers leave behind, killed ones too.
        folder = self._stack.enter_context(scratch_folder(NODE_FOLDER))
        here = _placed(order, folder)
        try:
            benchmark = load_benchmark(here)
            tools = benchmark.tools() if benchmark.tools else {}
        except LoupeError as error:
            return error.message, ""
        if differ := differing(order.tools, tools, order.tools.keys() | tools.keys()):
            return f"other programs: {differ}", ""
        if scorer_digest(benchmark, order.adapters) != order.digest:
            return "its Loupe scores by other rules, although it has the same version", ""
        self._process = Process(str(folder))
        return "", here

    def write(self, data: bytes) -> None:
        """Send this to the process."""
        self._process.write(data)

    def read(self, seconds: float) -> bytes | None:
        """What the process said, as `Line.read`."""
        return self._process.read(seconds)

    def death(self) -> str:
        """How the process ended."""
        return self._process.death()

    def last_words(self) -> str:
        """The end of what the process wrote while it started."""
        return self._process.last_words()

    def close(self) -> None:
        """End the process, and remove what it left."""
        self._process.close()
        self._stack.close()


def files_of(benchmark: str) -> dict[str, bytes]:
    """The files that define a benchmark which is not installed, by name."""
    path = Path(benchmark)
    if benchmark.partition("@")[0] in benchmark_ids():
        return {}
    if path.is_file():
        return {path.name: read_data(path)}
    return {each.name: read_data(each) for each in path.iterdir() if each.suffix in _DEFINING and each.is_file()}


def _placed(order: ScoringOrder, folder: Path) -> str:
    """What the benchmark is called here, with its files in a folder of the same name."""
    if not order.files:
        return order.benchmark
    path = Path(order.benchmark)
    is_file = set(order.files) == {path.name}
    place = folder / "benchmark" if is_file else folder / "benchmark" / path.absolute().name
    place.mkdir(parents=True)
    for name, content in order.files.items():
        (place / name).write_bytes(content)
    return str(place / path.name if is_file else place)


@dataclass(frozen=True, slots=True)
class CarriedPage:
    """A page that is pickled with its bytes, and is the file of a page again where it is unpickled."""

    name: str
    content: bytes
    number: int = 0
    variant: str = ""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _laid_down, (self.name, self.content, self.number, self.variant)


def carrying(sample: Sample) -> Sample:
    """The sample with the bytes of its pages, where scoring looks at them: is a page without truth blank?

    Raises what reading them raises.
    """
    if sample.truth or not sample.images:
        return sample
    return replace(sample, images=tuple(map(_carried, sample.images)))


def _carried(page: PageSource) -> PageSource:
    from loupe.data.packed import read_packed

    if isinstance(page, PackedImage):
        found = CarriedPage(Path(page.member).name, read_packed(page))
    elif isinstance(page, PdfPage):
        found = CarriedPage(page.path.name, read_data(page.path), page.page, page.variant)
    else:
        found = CarriedPage(page.name, read_data(page))
    return cast("PageSource", found)  # it is one as soon as it has been unpickled


def _laid_down(name: str, content: bytes, number: int, variant: str) -> PageSource:
    """A page file of this process; the last ones are kept."""
    folder = Path(tempfile.mkdtemp(prefix="loupe-page-"))
    path = folder / name
    path.write_bytes(content)
    _files.append(folder)
    for each in _files[:-_KEPT]:
        shutil.rmtree(each, ignore_errors=True)
    del _files[:-_KEPT]
    return PdfPage(path, number, variant) if number else path
