"""The layout pipeline against a real server on loopback: pages cut up, regions asked, lost, joined, resumed.

The layout model is a stand-in (tests/stand_ins/layout) where faults are wanted; its calls are those of the package.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from loupe.engines.pages.page_images import encode, encode_image, glm_resize, parse_rule
from loupe.engines.registry import load_profile
from loupe.errors import EngineUnavailableError, MissingToolError, ProfileError
from loupe.features.layout.cutting import trimmed
from loupe.features.layout.engine import Settings, open_engine
from loupe.features.layout.filtering import LABELS
from loupe.inference.progress import Progress
from loupe.pipeline import Plan, infer, run
from loupe.pipeline.finished import Remaining
from loupe.runs.folder import RunFolder, counts_instead
from loupe.types import Output, Prediction, Request
from tests.support.chat_server import Received, Reply, in_thread
from tests.support.command_line import command, environment, loupe
from tests.support.layout_pages import FIGURE, TABLE, TWO_COLUMNS, drawn
from tests.support.served import make_benchmark, ports_in_use

STAND_IN = Path(__file__).parents[2] / "stand_ins" / "layout"
BENCHMARK = '''
"""Pages of a folder."""
from loupe.types import Benchmark, Measure, Sample, Score

def load(root):
    for page in sorted(root.glob("*.png")):
        yield Sample(id=page.stem, images=(page,), prompt="How many?" if page.stem.startswith("question") else "")

def score(sample, prediction):
    return [Score(measure="read", counts=(float(bool(prediction.text)), 1.0))]

benchmark = Benchmark(title="Pages", version="1", task="markdown", load=load, score=score,
                      measures=(Measure(name="read"),))
'''
PROMPTS = {"text": "T", "table": "B", "formula": "F"}
WHITE = (255, 255, 255)
Stage = Callable[[Plan, Progress], Awaitable[RunFolder]]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the stand-in's model; workers find its packages before any others."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "labels.json").write_text(json.dumps(LABELS))
    monkeypatch.syspath_prepend(str(STAND_IN))
    yield folder


def pages(folder: Path, **colours: tuple[int, int, int]) -> Path:
    """One page of each colour; all are of different sizes."""
    for number, (name, colour) in enumerate(colours.items()):
        Image.new("RGB", (600 + 10 * number, 800), colour).save(folder / f"{name}.png")
    return folder


def read(folder: Path, url: str, *, stage: Stage = infer, **keys: Any) -> RunFolder:
    """Read all pages of a folder; `keys` are settings of the engine."""
    (folder / "pages.py").write_text(BENCHMARK)
    settings = {"base_url": url, "prompts": PROMPTS, "concurrency": 2, "retries": 0, **keys}
    _, profile = load_profile("layout_pipeline", settings)
    file, runs = str(folder / "pages.py"), folder / "runs"
    plan = Plan(benchmark=file, label="e", profile=profile, runs=runs, data=folder, jobs=1)
    return asyncio.run(_finished(stage, plan))


async def _finished(stage: Stage, plan: Plan) -> RunFolder:
    return await stage(plan, Progress())


def one(folder: RunFolder) -> Prediction:
    (prediction,) = folder.predictions().values()
    return prediction


def by_task(request: Received) -> Reply:
    texts = {"T": "Some text", "B": "<table><tr><td>1</td></tr></table>", "F": "x^2"}
    return Reply(text=texts[request.prompt])


def test_a_page_is_cut_asked_region_by_region_and_joined(tmp_path: Path, model: Path) -> None:
    with in_thread(by_task) as server:
        folder = read(pages(tmp_path, page=WHITE), server.url, stage=run, detector_model=str(model), images="keep")
    found = one(folder)
    crop = "![Image 0-0](imgs/cropped_page0_idx0.jpg)"
    assert found.text == f"# Some text\n\nSome text\n\n<table><tr><td>1</td></tr></table>\n\n{crop}"
    assert sorted(request.prompt for request in server.requests) == ["B", "T", "T"]
    sizes = {Image.open(io.BytesIO(data)).size for request in server.requests for _, data in request.images}
    assert sizes == {(480, 80), (480, 160)}
    assert (found.outcome, found.input_tokens, found.output_tokens) == ("ok", 33, 21)
    response = found.response or {}
    assert (response["calls"], response["regions_read"], response["failed_regions"]) == (3, 3, 0)
    embed = pytest.importorskip("loupe.features.embed.inputs")
    assert [embed.read_region(row) is not None for row in response["regions"]] == [True] * 4
    assert [row["native_label"] for row in response["regions"]] == ["doc_title", "text", "table", "image"]
    assert [row["text"] for row in response["answers"]] == ["Some text", "Some text", found.text.split("\n\n")[2]]
    assert folder.info.facts["layout_model"].endswith("model@0123abc")
    assert folder.info.facts["detector"] == "pp_doclayout_v3"
    assert folder.info.prompts == PROMPTS
    result = folder.stored_result()
    assert result is not None and result.speed["calls_per_page"] == 3.0 and result.warnings == []
    parts = dict(part.partition(":")[::2] for part in folder.info.signature.split("|"))
    assert (parts["layout"], parts["images"]) == ("pp_doclayout_v3@0.3", "keep")


def lossy(request: Received) -> Reply:
    """The table hangs, and the title (the lower one of the two texts) is refused."""
    height = Image.open(io.BytesIO(request.images[0][1])).height
    if request.prompt == "B":
        return Reply(hang=True)
    return Reply(status=500, error="no memory") if height == 80 else Reply(text="Body", finish_reason="length")


def test_lost_regions_are_counted_in_the_page_and_in_the_result(tmp_path: Path, model: Path) -> None:
    keys = {"detector_model": str(model), "timeout": 1.0, "images": "drop"}
    with in_thread(lossy) as server:
        folder = read(pages(tmp_path, page=WHITE), server.url, stage=run, **keys)
    found = one(folder)
    response = found.response or {}
    assert (found.text, found.outcome) == ("Body", "truncated")
    assert (response["regions_read"], response["failed_regions"]) == (1, 2)
    assert [(loss["index"], loss["label"], loss["class"]) for loss in response["lost"]] == [
        (0, "doc_title", "error"),
        (2, "table", "timeout"),
    ]
    result = folder.stored_result()
    assert result is not None and result.speed["failed_regions"] == 2.0
    assert result.warnings == ["2 regions (66.7 %) on 1 pages were lost: their text is missing"]
    assert (found.lost, found.uncounted) == (2, (0, 1))

    assert counts_instead("ok", "ok", 1, 2) and not counts_instead("ok", "ok", 2, 1)
    # The same command asks for the page again; what it loses then is no reason to forget what was read before.
    with in_thread(Reply(status=500)) as server:
        read(tmp_path, server.url, **keys)
    assert len(server.requests) == 3 and one(folder).text == "Body"
    with in_thread(by_task) as server:
        read(tmp_path, server.url, **keys)
    assert (one(folder).lost, one(folder).outcome, len(server.requests)) == (msgspec.UNSET, "ok", 3)
    with in_thread(by_task) as server:
        read(tmp_path, server.url, **keys)
    assert server.requests == []


def test_a_page_of_which_nothing_is_read_fails_and_is_asked_again(tmp_path: Path, model: Path) -> None:
    folder = pages(tmp_path, page=WHITE)
    with in_thread(Reply(status=500)) as server:
        found = one(read(folder, server.url, detector_model=str(model)))
    assert (found.outcome, found.text, (found.response or {})["failed_regions"]) == ("error", "", 3)
    assert found.error.startswith("none of the page's 3 regions could be read: ")
    with in_thread(by_task) as server:
        assert one(read(folder, server.url, detector_model=str(model))).outcome == "ok"


def test_where_the_layout_fails_the_page_failed_and_the_same_command_asks_it_again(tmp_path: Path, model: Path) -> None:
    red, green, blue = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    folder = pages(tmp_path, a=WHITE, crash=green, raising=red, slow=blue, z=WHITE)
    (folder / "broken.png").write_bytes(b"no picture")
    with in_thread(by_task) as server:
        made = read(folder, server.url, stage=run, detector_model=str(model), layout_timeout=2.0)
    found = made.predictions()
    outcomes = {name: prediction.outcome for name, prediction in found.items()}
    failed = {"broken": "error", "crash": "error", "raising": "error", "slow": "timeout"}
    assert outcomes == {"a": "ok", "z": "ok", **failed}
    assert "exit code 3" in found["crash"].error and "within 2 s" in found["slow"].error
    said = "RuntimeError: OpenCV(4.10.0) !ssize.empty() in function 'resize'"
    assert found["raising"].error == f"the layout detector failed: {said}"
    assert (found["raising"].response or {})["layout_failed"] == said
    result = made.stored_result()
    assert result is not None
    assert {failure.sample for failure in result.failures} == failed.keys()
    assert "the layout of 1 pages failed: they count as failed" in result.warnings
    assert sorted(Remaining.of(outcomes, made.prediction_places(), ()).repeated) == sorted(failed)


@pytest.mark.parametrize("batch", [1, 4])
def test_the_detector_sees_as_many_pages_at_once_as_it_is_told_and_finds_the_same(
    tmp_path: Path, model: Path, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "batches"
    monkeypatch.setenv("OMP_LAYOUT_BATCHES", str(log))
    folder = pages(tmp_path, **dict.fromkeys("abcdefghi", WHITE))
    with in_thread(by_task) as server:
        found = read(folder, server.url, detector_model=str(model), layout_batch=batch).predictions()
    assert {each.outcome for each in found.values()} == {"ok"}
    boxes = [[region["bbox_2d"] for region in (each.response or {})["regions"]] for each in found.values()]
    assert all(one == boxes[0] for one in boxes)
    sizes = [int(line) for line in log.read_text().split()]
    assert sum(sizes) == 9 and max(sizes) == batch


def test_a_page_that_breaks_its_batch_costs_itself_only(tmp_path: Path, model: Path) -> None:
    red, green, blue = (255, 0, 0), (0, 255, 0), (0, 0, 255)
    folder = pages(tmp_path, a=WHITE, b=WHITE, c=red, d=WHITE, e=green, f=WHITE, g=WHITE, h=blue, i=WHITE, j=WHITE)
    (folder / "broken.png").write_bytes(b"no picture")
    with in_thread(by_task) as server:
        found = read(folder, server.url, detector_model=str(model), layout_batch=4, layout_timeout=2.0).predictions()
    failed = {name: each.outcome for name, each in found.items() if each.outcome != "ok"}
    assert failed == {"broken": "error", "c": "error", "e": "error", "h": "timeout"}
    assert "exit code 3" in found["e"].error and len(found) == 11


@pytest.mark.parametrize("colour", [(255, 255, 0), (255, 0, 255)])
def test_a_detector_that_works_no_more_stops_the_run(tmp_path: Path, model: Path, colour: tuple[int, int, int]) -> None:
    """Yellow runs out of memory, which is fatal at once; after magenta nothing works any more."""
    folder = pages(tmp_path, a=WHITE, b=colour, c=WHITE, d=WHITE, e=WHITE, f=WHITE)
    with in_thread(by_task) as server, pytest.raises(EngineUnavailableError) as caught:
        read(folder, server.url, detector_model=str(model), concurrency=1)
    outcomes = [each.outcome for each in RunFolder.open(folder / "runs" / "e" / "pages").predictions().values()]
    if colour == (255, 255, 0):
        assert "cannot go on: OutOfMemoryError: CUDA out of memory" in caught.value.message
        assert "error" not in outcomes
    else:
        assert "failed on 3 pages in a row" in caught.value.message and "and on a plain page" in caught.value.message
        assert outcomes.count("error") == 2


def test_regions_of_several_pages_are_in_flight_and_a_hanging_one_holds_up_none(tmp_path: Path, model: Path) -> None:
    def script(request: Received) -> Reply:
        width = Image.open(io.BytesIO(request.images[0][1])).width
        # Pages differ in width, and crops with them: the first page hangs for a while.
        return Reply(text="a", hang=True) if width == 480 and request.prompt == "B" else Reply(text="a", delay=0.02)

    folder = pages(tmp_path, **{f"p{number}": WHITE for number in range(8)})
    with in_thread(script) as server:
        made = read(folder, server.url, detector_model=str(model), concurrency=3, timeout=3.0)
    found = made.predictions()
    assert server.peak == 3 and len(server.requests) == 24
    losses = [name for name, each in found.items() if (each.response or {})["failed_regions"]]
    assert losses == ["p0"]
    lines = [json.loads(line)["sample"] for line in made.predictions_file.read_text().splitlines()]
    assert lines[-1] == "p0"


def test_born_digital_pages_need_no_model_and_questions_are_said_to_be_none(tmp_path: Path) -> None:
    for name, source in {"columns": TWO_COLUMNS, "figure": FIGURE, "question": TABLE}.items():
        drawn(source, dpi=100).save(tmp_path / f"{name}.png")
    with in_thread(lambda request: Reply(text=f"read {request.prompt}")) as server:
        made = read(tmp_path, server.url, stage=run, detector="geometric", concurrency=4)
    found = made.predictions()
    assert found["columns"].text == "# read T\n\n## read T\n\nread T\n\n## read T\n\nread T"
    assert found["question"].text == "read T\n\nread B\n\nread T"
    result = made.stored_result()
    assert result is not None
    assert result.warnings == ["1 samples are questions, which a layout pipeline cannot answer"]
    assert made.info.facts["detector"] == "geometric/2"


def test_killed_and_started_again_every_page_is_read_once_and_nothing_is_left(tmp_path: Path) -> None:
    for number in range(6):
        drawn(TABLE, dpi=60).save(tmp_path / f"p{number}.png")
    (tmp_path / "pages.py").write_text(BENCHMARK)
    with in_thread(Reply(text="read", delay=0.15)) as server:
        words = ["infer", "pages.py", "--data", ".", "-e", "layout_pipeline:test-model", "-o", "detector=geometric"]
        words += ["--base-url", server.url, "-n", "2", "--name", "e"]
        first = subprocess.Popen(
            command(*words),
            cwd=tmp_path,
            env=environment(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        file = tmp_path / "runs" / "e" / "pages" / "predictions.jsonl"
        end = time.monotonic() + 60
        while not (file.is_file() and file.read_bytes().count(b"\n") >= 2) and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        done = file.read_bytes().count(b"\n")
        again = loupe(*words, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert 2 <= done < 6 and sorted(line["sample"] for line in lines) == [f"p{number}" for number in range(6)]
    assert {line["text"] for line in lines} == {"read\n\nread\n\nread"}
    assert server.peak <= 2


@pytest.mark.parametrize("name", ["glm-ocr-pipeline", "paddleocr-vl-pipeline"])
def test_profiles_are_shown_whole_with_their_sources_and_what_differs_is_signed(name: str, tmp_path: Path) -> None:
    shown = loupe("engine", "show", name, cwd=tmp_path)
    assert shown.returncode == 0 and "never ran here with its weights" in shown.stdout
    profile = load_profile(name)[1]
    for source in profile.sources:
        assert source in shown.stdout
    signature = profile.signature()
    for changed in (
        {"detector": "geometric"},
        {"threshold": 0.5},
        {"thresholds": {"table": 0.4}},
        {"images": "drop"},
        {"unread": ["chart"]},
        {"image": "fit1000"},
        {"region_adapters": ["strip"]},
        {"nesting": "paddle" if name.startswith("glm") else "glm"},
    ):
        other = load_profile(name, changed)[1]
        assert other.signature() != signature
        assert other.version == f"{name}/2+{next(iter(changed))}"
    neutral = {
        "detector_device": "cuda:1",
        "detector_processes": 3,
        "layout_batch": 8,
        "layout_timeout": 9.0,
        "concurrency": 32,
    }
    assert load_profile(name, neutral)[1].version == f"{name}/2"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"detector": "geometry"}, "no detector 'geometry'; did you mean 'geometric'?"),
        ({"prompts": {"text": "a"}}, "none for table, formula"),
        ({"prompts": {"*": "a", "markdown": "b"}}, "regions have no task 'markdown'"),
        ({"threshold": 1.5}, "a score is from 0 to 1"),
        ({"thresholds": {"tabel": 0.5}}, "no label 'tabel'"),
        ({"unread": ["seals"]}, "no label 'seals'"),
        ({"layout_timeout": 0.0}, "must be above 0"),
        ({"region_adapters": ["unfences"]}, "no step 'unfences'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ProfileError, match=said.replace("?", r"\?")):
        load_profile("glm-ocr-pipeline", keys)


def test_without_package_or_model_the_error_says_what_to_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingToolError) as caught:
        read(pages(tmp_path, page=WHITE), "http://127.0.0.1:9/v1")
    assert "torch" in caught.value.message and "[layout]" in caught.value.hint
    monkeypatch.syspath_prepend(str(STAND_IN))
    with pytest.raises(MissingToolError) as caught:
        read(pages(tmp_path, page=WHITE), "http://127.0.0.1:9/v1")
    assert "PaddlePaddle/PP-DocLayoutV3_safetensors is not on this machine" in caught.value.message
    assert "detector_download=true" in caught.value.hint and "geometric" in caught.value.hint


def test_crops_are_encoded_as_the_vendors_encode_them() -> None:
    image = Image.effect_noise((333, 95), 90).convert("RGB")
    sent = Image.open(io.BytesIO(encode_image(image, parse_rule("glm"), Path("a")).data))
    assert sent.size == tuple(reversed(glm_resize(95, 333)))
    first = io.BytesIO()
    image.save(first, "JPEG")
    again = io.BytesIO()
    Image.open(first).resize(sent.size, Image.Resampling.BICUBIC).save(again, "JPEG")
    assert encode_image(image, parse_rule("glm"), Path("a")).data == again.getvalue()
    assert encode_image(image, parse_rule("jpeg"), Path("a")).data == first.getvalue()


def test_a_jpeg_that_fits_is_still_encoded_by_the_rules_that_always_encode(tmp_path: Path) -> None:
    Image.effect_noise((112, 112), 90).convert("RGB").save(tmp_path / "a.jpg", quality=99)
    untouched = (tmp_path / "a.jpg").read_bytes()
    assert encode(tmp_path / "a.jpg", parse_rule("fit2048")).data == untouched
    for rule in ("glm", "jpeg"):
        assert hashlib.sha256(encode(tmp_path / "a.jpg", parse_rule(rule)).data) != hashlib.sha256(untouched)


def test_formulas_lose_their_white_margins_and_nothing_else() -> None:
    image = Image.new("RGB", (100, 60), "#eeeeee")
    image.paste((40, 40, 40), (30, 20, 50, 40))
    assert trimmed(image).size == (20, 20)
    assert trimmed(Image.new("RGB", (100, 60), "white")).size == (100, 60)
    image = Image.new("RGB", (100, 60), "white")
    image.paste((0, 0, 0), (30, 20, 50, 22))
    assert trimmed(image).size == (100, 60)


def test_asked_alone_it_reads_a_whole_page_with_what_was_lost(tmp_path: Path, model: Path) -> None:
    page = pages(tmp_path, page=WHITE) / "page.png"

    async def ask(url: str) -> Output:
        settings = {"base_url": url, "prompts": PROMPTS, "detector_model": str(model), "timeout": 1.0, "images": "keep"}
        profile = load_profile("layout_pipeline", settings)[1]
        assert isinstance(profile, Settings)
        async with open_engine(profile) as engine:
            return await engine.predict(Request(id="p", images=(page,)))

    with in_thread(lossy) as server:
        output = asyncio.run(ask(server.url))
    assert output.text == "Body\n\n![Image 0-0](imgs/cropped_page0_idx0.jpg)"
    assert (output.response or {})["failed_regions"] == 2


def test_a_managed_server_that_dies_under_a_region_is_started_again_and_the_region_asked_again(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    drawn(TABLE, dpi=60).save(tmp_path / "pages" / "p.png")
    make_benchmark(tmp_path, [])
    prompts = {"text": "hello", "table": "crash-once", "formula": "hello"}
    keys = {"serve": f"loupe:python:{tmp_path / 'faulty.py'}:read", "server_port": "auto", "detector": "geometric"}
    folder = read(tmp_path / "pages", "", prompts=prompts, **keys)
    assert one(folder).text == "read hello\n\nread crash-once\n\nread hello"
    assert (one(folder).response or {})["failed_regions"] == 0
    assert ports_in_use(tmp_path) == []


def test_its_answers_may_be_drafts_of_tables() -> None:
    assert "table" in Settings.gives
