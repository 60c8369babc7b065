"""RapidOCR: PP-OCR models on the CPU, brought by the package itself, with reading order made here.

Source: https://github.com/RapidAI/RapidOCR (3.8 or newer). It gives boxes in the order of detection; what is read
first, and what is one line, is decided in `shared/placed_text.py` (docs/engines/local.md).
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from loupe.data.extras import install_hint
from loupe.engines.pages.page_reader import single_page
from loupe.engines.registry import PLAIN_TEXT, Profile
from loupe.engines.shared.placed_text import PlacedLine, Quad, page_text, placed_line
from loupe.errors import MissingToolError
from loupe.helpers import for_children
from loupe.types import Engine, Output, Request
from loupe.workers.child import Loaded
from loupe.workers.limits import cores, processes
from loupe.workers.pool import worker_pool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

#: Measured peak of one process on pages of 2000 px.
_MEMORY = 1_200_000_000
#: Lines that vote on whether a page is upside down.
_VOTERS = 11


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of the kind `rapidocr`.

    `concurrency` is the number of worker processes. `upright` turns pages that lie on their side or upside down.
    `text_score` drops lines that the model itself trusts less. `dpi` is for PDF pages; `longest` limits the longer
    side in pixels (RapidOCR itself works at 2000 at most).
    """

    gives: ClassVar[frozenset[str] | None] = PLAIN_TEXT

    concurrency: int | None = msgspec.field(default_factory=lambda: processes(_MEMORY))
    upright: bool = True
    text_score: float = 0.5
    dpi: float = 200.0
    longest: int | None = None

    def signature(self) -> dict[str, str]:
        """The settings that the image is made with."""
        return {"img": f"dpi{self.dpi:g}" + (f"longest{self.longest}" if self.longest else "")}


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Load the models in a worker, then yield the engine. Raises MissingToolError without the extra."""
    for package in ("rapidocr", "onnxruntime"):
        if find_spec(package) is None:
            raise MissingToolError(f"the package {package} is not installed", hint=install_hint("rapidocr"))
    workers = settings.concurrency or 1
    threads = max(1, cores() // workers)
    arguments = {
        "threads": threads,
        "upright": settings.upright,
        "text_score": settings.text_score,
        "dpi": settings.dpi,
        "longest": settings.longest,
    }
    environment = {**for_children(), "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    async with worker_pool("loupe.engines.rapidocr:load", arguments, workers=workers, environment=environment) as pool:

        async def predict(request: Request) -> Output:
            single_page(request)
            return await pool.ask(request, timeout=settings.timeout)

        yield Engine(predict=predict, facts=pool.facts)


def load(*, threads: int, upright: bool, text_score: float, dpi: float, longest: int | None) -> Loaded:
    """The engine as a worker uses it. Raises MissingToolError if the package came without its models."""
    import cv2
    import rapidocr

    models = Path(rapidocr.__file__).parent / "models"
    _refuse_downloads()
    cv2.setNumThreads(threads)
    parameters = {
        "Global.log_level": "error",
        "Global.use_cls": False,
        "Global.text_score": text_score,
        "Global.model_root_dir": str(models),
        "EngineConfig.onnxruntime.intra_op_num_threads": min(threads, os.cpu_count() or 1),
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    reader = _Reader(rapidocr.RapidOCR(params=parameters), upright=upright)
    reader.load()

    def read(request: Request) -> Output:
        import numpy as np

        from loupe.data.pages import load_page

        image = load_page(request.images[0], longest=longest, dpi=dpi)
        # RapidOCR takes blue, green, red.
        pixels = np.ascontiguousarray(np.asarray(image)[:, :, ::-1])
        text, lines = reader.read(pixels)
        return Output(text=text, finish_reason="stop", response={"lines": lines})

    facts = {package: version(package) for package in ("rapidocr", "onnxruntime")}
    names = sorted(path.stem for path in models.glob("*.onnx"))
    return Loaded(read=read, facts={**facts, "models": ", ".join(names)})


@dataclass(frozen=True, slots=True)
class _Page:
    """The result of reading one image: boxes in its pixels, texts, and how sure the model is of each."""

    boxes: list[Quad]
    texts: list[str]
    scores: list[float]

    def letters(self, which: list[bool]) -> int:
        """Characters in the lines for which `which` holds."""
        return sum(len(text) for text, counts in zip(self.texts, which, strict=True) if counts)


class _Reader:
    """One RapidOCR with its three models."""

    def __init__(self, engine: Any, *, upright: bool) -> None:
        self._engine = engine
        self._upright = upright

    def load(self) -> None:
        """Load all models now, so that none is loaded within the time limit of a page."""
        import numpy as np

        line = np.full((48, 160, 3), 255, dtype=np.uint8)
        self._engine(line, use_det=True, use_cls=False, use_rec=False)
        self._engine(line, use_det=False, use_cls=True, use_rec=False)
        self._engine(line, use_det=False, use_cls=False, use_rec=True)

    def read(self, pixels: Pixels) -> tuple[str, list[PlacedLine]]:
        """The text of the page, in reading order, and where its lines stand on the page as it was given."""
        page, turns = self._recognise(pixels), 0
        boxes = page.boxes
        turned = self._turned(pixels, page) if self._upright and page.texts else None
        if turned is not None:
            again = self._recognise(turned[0])
            if _certainty(again) > _certainty(page):
                page, turns, boxes = again, turned[1], again.boxes
            elif turned[1] % 2:
                # RapidOCR reads lines that stand on end, but their order is that of the page on its side.
                boxes = _left_turned(page.boxes, pixels.shape[1])
        return page_text(boxes, page.texts), _placed(page, turns, pixels.shape[1], pixels.shape[0])

    def _recognise(self, pixels: Pixels) -> _Page:
        found = self._engine(pixels, use_det=True, use_cls=False, use_rec=True)
        if found.boxes is None or found.txts is None:
            return _Page([], [], [])
        return _Page([quad.tolist() for quad in found.boxes], list(found.txts), [float(s) for s in found.scores])

    def _turned(self, pixels: Pixels, page: _Page) -> tuple[Pixels, int] | None:
        """The page turned upright, and by how many quarters to the left; None if it is upright.

        Lines that stand on end betray a page on its side. What is then left, or upside down from the start, is up to
        RapidOCR's classifier of line direction: a majority of the longest lines.
        """
        import numpy as np

        standing = [_is_standing(box) for box in page.boxes]
        on_side = page.letters(standing) > 0.6 * page.letters([True] * len(standing))
        if on_side:
            boxes = _left_turned(page.boxes, pixels.shape[1])
            pixels = np.ascontiguousarray(np.rot90(pixels))
        else:
            boxes = page.boxes
        if self._is_upside_down(pixels, boxes):
            return np.ascontiguousarray(np.rot90(pixels, 2)), 2 + on_side
        return (pixels, 1) if on_side else None

    def _is_upside_down(self, pixels: Pixels, boxes: list[Quad]) -> bool:
        votes = total = 0
        for box in sorted(boxes, key=_length, reverse=True)[:_VOTERS]:
            crop = _straightened(pixels, box)
            if crop.shape[0] < 8 or crop.shape[1] < 2 * crop.shape[0]:
                continue
            answer = self._engine(crop, use_det=False, use_cls=True, use_rec=False).cls_res
            votes += answer[0][0] == "180" and answer[0][1] > 0.7
            total += 1
        return total > 0 and votes > total / 2


def _placed(page: _Page, turns: int, width: int, height: int) -> list[PlacedLine]:
    """Every line with its upright box as fractions of a page that was turned by so many quarters before it was read."""
    found: list[PlacedLine] = []
    for quad, text, score in zip(page.boxes, page.texts, page.scores, strict=True):
        points = [(float(x), float(y)) for x, y in quad]
        # One quarter back to the right at a time; `across` is the width of the page before that quarter was turned.
        for turn in range(turns, 0, -1):
            across = width if turn % 2 else height
            points = [(across - y, x) for x, y in points]
        xs, ys = [x / width for x, _ in points], [y / height for _, y in points]
        found.append(placed_line(text, (min(xs), min(ys), max(xs), max(ys)), score))
    return found


def _certainty(page: _Page) -> float:
    """Characters read, weighed by how sure the model is: text read the wrong way round is short or doubtful."""
    return sum(len(text) * score**4 for text, score in zip(page.texts, page.scores, strict=True))


def _left_turned(boxes: list[Quad], width: int) -> list[Quad]:
    """Boxes after a quarter turn of the page to the left: x becomes y, y width − x, and the second corner the first."""
    return [[(y, width - x) for x, y in (*box[1:], box[0])] for box in boxes]


def _length(box: Quad) -> float:
    return max(math.dist(box[0], box[1]), math.dist(box[3], box[2]))


def _straightened(pixels: Pixels, box: Quad) -> Pixels:
    """The pixels of a box alone: the upright rectangle around a sloping line would show parts of its neighbours."""
    import cv2
    import numpy as np

    width, height = round(_length(box)), round(max(math.dist(box[0], box[3]), math.dist(box[1], box[2])))
    if not width or not height:
        return pixels[:0]
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float32)
    onto = cv2.getPerspectiveTransform(np.asarray(box, np.float32), corners)
    return np.asarray(cv2.warpPerspective(pixels, onto, (width, height), borderMode=cv2.BORDER_REPLICATE), np.uint8)


def _rectangle(box: Quad) -> tuple[int, int, int, int]:
    xs, ys = [point[0] for point in box], [point[1] for point in box]
    return int(min(xs)), int(min(ys)), int(max(xs)), int(max(ys))


def _is_standing(box: Quad) -> bool:
    left, top, right, bottom = _rectangle(box)
    return bottom - top > 1.5 * (right - left)


def _refuse_downloads() -> None:
    """RapidOCR fetches a model that it does not find. A worker of ours has no business on the network."""

    def refuse(*_: object, **__: object) -> None:
        raise MissingToolError(
            "rapidocr came without its models and wants to download them",
            hint="install it again: pip install --force-reinstall 'rapidocr>=3.8'",
        )

    socket.getaddrinfo = refuse  # type: ignore[assignment]
    socket.create_connection = refuse  # type: ignore[assignment]
