"""Scoring on a node: an actor that starts scoring processes as one machine does, and passes on what goes to and fro."""

from __future__ import annotations

import itertools
import shutil
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from loupe.benchmarks.registry import benchmark_ids
from loupe.data.pages import document_page
from loupe.errors import LoupeError
from loupe.features.cluster.pages import NODE_FOLDER
from loupe.features.cluster.sameness import differences, differing
from loupe.files.foreign import read_data
from loupe.files.scratch import lay_down, scratch_folder
from loupe.hooks import found
from loupe.scoring.process import LocalLine
from loupe.types import DocumentPage, PackedImage, PageSource, PdfPage, Sample

#: What a folder of one's own is opened from; whatever else lies there stays there.
_DEFINING = ("loupe.toml", "samples.jsonl", "facts.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringOrder:
    """What a node must be able to do: score `benchmark` as the driver would, by its `digest` of what scores.

    `tools` are the driver's programs, for a message.
    """

    benchmark: str
    adapters: tuple[str, ...]
    digest: str
    versions: Mapping[str, str]
    tools: Mapping[str, str]


class ScoringHost:
    """The actor of a node. Each of its processes has a number; what one number is asked, it is asked in turn."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._numbers = itertools.count()
        self._processes: dict[int, tuple[LocalLine, threading.Lock]] = {}

    def open(self, order: ScoringOrder, files: Mapping[str, bytes]) -> tuple[str, str]:
        """Get ready; gives back why this node cannot score so ("": it can), and where the benchmark is here.

        `files` define a benchmark of one's own. Raises OSError where the node has no room for them.
        """
        from loupe.benchmarks.registry import load_benchmark
        from loupe.scoring.digest import scorer_digest

        if differ := differences(order.versions, scoring=True):
            return f"other versions: {differ}", ""
        # For everything that scorers leave behind, killed ones too.
        self._folder = self._stack.enter_context(scratch_folder(NODE_FOLDER))
        here = _placed(order, files, self._folder)
        try:
            benchmark = load_benchmark(here)
            tools = benchmark.tools() if benchmark.tools else {}
        except LoupeError as error:
            return error.message, ""
        if differ := differing(order.tools, tools, order.tools.keys() | tools.keys()):
            return f"other programs: {differ}", ""
        if scorer_digest(benchmark, order.adapters) != order.digest:
            return "its Loupe scores by other rules, although it has the same version", ""
        return "", here

    def start(self) -> int:
        """A new process; its number. Raises OSError where the node has no room for one."""
        number = next(self._numbers)
        folder = self._folder / f"process-{number}"
        folder.mkdir()
        self._processes[number] = LocalLine(str(folder)), threading.Lock()
        return number

    def write(self, number: int, data: bytes) -> None:
        """Send this to the process."""
        self._processes[number][0].write(data)

    def read(self, number: int, seconds: float) -> bytes | None:
        """What the process said, as `Line.read`."""
        process, reading = self._processes[number]
        with reading:
            return process.read(seconds)

    def death(self, number: int) -> str:
        """How the process ended."""
        return self._processes[number][0].death()

    def last_words(self, number: int) -> str:
        """The end of what the process wrote while it started."""
        return self._processes[number][0].last_words()

    def kill(self, number: int) -> None:
        """End the process now; who reads from it hears of it."""
        if number in self._processes:
            self._processes[number][0].kill()

    def end(self, number: int) -> None:
        """End the process, and remove what it left."""
        if number in self._processes:
            process, reading = self._processes.pop(number)
            process.kill()
            with reading:  # Closed under somebody's eyes, its number could already be that of another file.
                process.close()
            shutil.rmtree(self._folder / f"process-{number}", ignore_errors=True)

    def close(self) -> None:
        """End all processes, and remove what they left."""
        for number in list(self._processes):
            self.end(number)
        self._stack.close()


def files_of(benchmark: str) -> dict[str, bytes]:
    """The files that define a benchmark which is not installed, by name."""
    path = Path(benchmark)
    if benchmark.partition("@")[0] in benchmark_ids():
        return {}
    if path.is_file():
        return {path.name: read_data(path)}
    return {name: read_data(path / name) for name in (*_DEFINING, *found("folders")) if (path / name).is_file()}


def _placed(order: ScoringOrder, files: Mapping[str, bytes], folder: Path) -> str:
    """What the benchmark is called here, with its files in a folder of the same name."""
    if not files:
        return order.benchmark
    path = Path(order.benchmark)
    is_file = set(files) == {path.name}
    place = folder / "benchmark" if is_file else folder / "benchmark" / path.absolute().name
    place.mkdir(parents=True)
    for name, content in files.items():
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
    elif isinstance(page, DocumentPage):
        variant = page.variant if isinstance(page, PdfPage) else ""
        found = CarriedPage(page.path.name, read_data(page.path), page.page, variant)
    else:
        found = CarriedPage(page.name, read_data(page))
    return cast("PageSource", found)  # it is one as soon as it has been unpickled


def _laid_down(name: str, content: bytes, number: int, variant: str) -> PageSource:
    """A page file of this process, for as long as its batch is scored."""
    path = lay_down(name, content)
    if variant:
        return PdfPage(path, number, variant)
    return document_page(path, number) if number else path
