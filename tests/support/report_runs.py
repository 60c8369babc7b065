"""Runs for the tests of the report: a small benchmark as a file, pages drawn on the spot, answers as the test wants."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from PIL import Image, ImageDraw

from loupe.data import trust
from loupe.metrics import character_errors
from loupe.runs.folder import RunFolder, claim
from loupe.runs.info import RunInfo
from loupe.stats.analysis import Analysis
from loupe.stats.estimates import estimate
from loupe.types import FAILED, Estimate, Failure, Measure, Prediction, Result, Sample, SampleScores, Score

BENCHMARK = '''"""A benchmark of the tests."""
import json
import random
from collections.abc import Iterator
from pathlib import Path
from loupe.metrics import character_errors
from loupe.types import Benchmark, Measure, Prediction, Sample, Score

def load(root: Path) -> Iterator[Sample]:
    for line in (Path(__file__).parent / "samples.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        images = tuple(Path(__file__).parent / image for image in row["images"])
        yield Sample(id=row["id"], images=images, truth=row["truth"], tags=row["tags"], prompt=row.get("prompt", ""))

def score(sample: Sample, prediction: Prediction) -> list[Score]:
    return [Score(measure="cer", counts=tuple(map(float, character_errors(prediction.text, sample.truth))))]

benchmark = Benchmark(
    title="Toy pages", version="1", task="TASK", load=load, score=score,
    measures=(Measure(name="cer", higher_is_better=False, title="CER"),),
)
'''

_DICE = random.Random(7)
#: Invented words of two to five syllables.
WORDS = [
    "".join(_DICE.choice("bdfgklmnprstvw") + _DICE.choice("aeiou") for _ in range(_DICE.randint(1, 4)))
    + _DICE.choice("lnrst")
    for _ in range(4000)
]

CER = Measure(name="cer", higher_is_better=False, title="CER")


@dataclass(kw_only=True)
class Toy:
    """A benchmark on disk with its samples; `run` adds an engine's run."""

    root: Path
    samples: Sequence[Sample]
    task: str = "markdown"
    ident: str = "toy"
    runs: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        (self.root / "toy.py").write_text(BENCHMARK.replace("TASK", self.task), encoding="utf-8")
        trust.remember(self.root / "toy.py")
        rows = [
            {
                "id": sample.id,
                "images": [str(image.relative_to(self.root)) for image in sample.images if isinstance(image, Path)],
                "truth": sample.truth,
                "tags": dict(sample.tags),
                "prompt": sample.prompt,
            }
            for sample in self.samples
        ]
        (self.root / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def run(self, engine: str, answers: Mapping[str, Prediction | str], *, scored: bool = True) -> Path:
        """A finished run with these answers by sample id; a sample without one is missing."""
        path = self.root / "runs" / engine.replace("/", "_") / "toy"
        info = RunInfo(
            benchmark=str(self.root / "toy.py"),
            benchmark_id=self.ident,
            version="1",
            engine=engine,
            profile={},
            data_digest="3f2a9c1e",
            total=len(self.samples),
            created="2025-11-20T14:00:00+00:00",
            signature=f"toy:1|n:{len(self.samples)}|data:3f2a9c1e|engine:{engine}|prompt:none|adapter:none|loupe:0.1.0",
        )
        predictions = [
            answer if isinstance(answer, Prediction) else Prediction(sample=ident, text=answer, seconds=0.42)
            for ident, answer in answers.items()
        ]
        with claim(path, info) as folder:
            folder.write_info(info)
            folder.predictions_file.write_bytes(b"".join(msgspec.json.encode(item) + b"\n" for item in predictions))
            if scored:
                rows = list(self._scores({item.sample: item for item in predictions}))
                folder.write_scores(msgspec.json.encode(row) for row in rows)
                folder.write_result(self._result(folder, rows, predictions))
        self.runs.append(path)
        return path

    def _scores(self, answers: Mapping[str, Prediction]) -> list[SampleScores]:
        return [
            SampleScores(
                sample=sample.id,
                tags=dict(sample.tags),
                outcome=answers[sample.id].outcome,
                scores=[Score(measure="cer", counts=_errors(answers[sample.id].text, sample.truth))],
                diagnostics={"insertion_rate": 0.01, "empty": float(not answers[sample.id].text)},
            )
            for sample in self.samples
            if sample.id in answers
        ]

    def _result(self, folder: RunFolder, rows: Sequence[SampleScores], predictions: Sequence[Prediction]) -> Result:
        outcomes: dict[str, int] = {}
        for prediction in predictions:
            outcomes[prediction.outcome] = outcomes.get(prediction.outcome, 0) + 1
        return Result(
            benchmark=self.ident,
            version="1",
            engine=folder.info.engine,
            signature=folder.info.signature,
            headline="cer",
            measures=_estimates(rows),
            directions={"cer": False},
            units={"cer": "fraction"},
            slices={
                tag: {
                    value: _estimates([row for row in rows if row.tags.get(tag) == value])
                    for value in sorted({row.tags[tag] for row in rows if tag in row.tags})
                }
                for tag in sorted({tag for row in rows for tag in row.tags})
            },
            total=len(self.samples),
            outcomes=outcomes,
            failures=[
                Failure(sample=item.sample, outcome=item.outcome, error=item.error)
                for item in predictions
                if item.outcome in FAILED
            ],
            diagnostics={"truncated": 1.0, "insertion_rate": 0.0213},
            speed={"seconds_per_page": 0.42},
        )


def _errors(prediction: str, reference: str) -> tuple[float, float]:
    if len(prediction) > 20_000:
        return float(len(prediction)), float(len(reference))
    edits, length = character_errors(prediction, reference)
    return float(edits), float(length)


def _estimates(rows: Sequence[SampleScores]) -> dict[str, Estimate]:
    return estimate(Analysis([CER], draws=200), [(row.sample, score) for row in rows for score in row.scores])


def draw_page(path: Path, text: str, *, size: tuple[int, int] = (620, 877)) -> Path:
    """A page with this text on it, as PNG."""
    page = Image.new("RGB", size, "white")
    words, line, top = text.split(), "", 40
    pen = ImageDraw.Draw(page)
    for word in [*words, ""]:
        if len(line) + len(word) > size[0] // 7 or not word:
            pen.text((40, top), line, fill="black")
            line, top = "", top + 18
        line += word + " "
    path.parent.mkdir(parents=True, exist_ok=True)
    page.save(path)
    return path


def toy_pages(
    root: Path,
    count: int = 12,
    *,
    task: str = "markdown",
    pages: int = 12,
    characters: int = 300,
    size: tuple[int, int] = (620, 877),
) -> Toy:
    """A toy benchmark of `count` samples of prose, each with its own text, on at most `pages` different pages."""
    samples = []
    for number in range(count):
        truth = f"Page {number} of the harbour book. " + prose(characters, seed=number)
        image = root / "pages" / f"page-{number % pages}.png"
        if not image.exists():
            draw_page(image, prose(9 * characters, seed=number), size=size)
        tags = {"kind": ("prose", "table", "form")[number % 3], "language": ("en", "zh")[number % 2]}
        samples.append(Sample(id=f"book/page-{number:04}", images=(image,), truth=truth, tags=tags))
    return Toy(root=root, samples=samples, task=task)


def prose(characters: int, *, seed: int) -> str:
    """Text of invented words in sentences, about as compressible as English."""
    dice = random.Random(seed)
    words: list[str] = []
    while sum(map(len, words)) + len(words) < characters:
        # Squaring makes some words frequent and most rare, as in a language.
        word = WORDS[int(len(WORDS) * dice.random() ** 2)]
        words.append(word.capitalize() if not words or words[-1].endswith(".") else word)
        words[-1] += "." if dice.random() < 0.1 else ""
    return " ".join(words) + "."


def misread(text: str, every: int) -> str:
    """The text with an error at every so many characters."""
    return "".join("#" if place % every == every - 1 and char.isalpha() else char for place, char in enumerate(text))
