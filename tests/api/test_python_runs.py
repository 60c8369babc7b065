"""`import loupe`: runs from Python as people write them, in notebooks, threads and training loops."""

from __future__ import annotations

import asyncio
import csv
import functools
import gc
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
from PIL.Image import Image

import loupe
from loupe.api.runs import TemporaryFolder
from loupe.engines.shared.functions import function_of, open_function
from loupe.results.exports.sample_tables import write_csv
from loupe.runs.drawn import draw_stratified
from loupe.runs.folder import RunFolder
from loupe.types import Output, Request


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blank(page: loupe.Page) -> str:
    return ""


def test_importing_costs_little_and_imports_nothing_large() -> None:
    code = "import sys, time; t = time.process_time(); import loupe; print(time.process_time() - t, *sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "msgspec", "asyncio", "PIL"}.isdisjoint(said)
    assert float(said[0]) < 0.06


def test_packages_that_can_be_called_stay_packages() -> None:
    from loupe.benchmarks import get_benchmark

    assert loupe.benchmarks()["iam_lines"].id == "iam_lines"
    assert get_benchmark("iam_lines").headline_measure == "cer"
    assert any(one.id == "tesseract" for one in loupe.engines())
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        _ = loupe.rum  # type: ignore[attr-defined]


def test_a_run_goes_on_in_a_running_loop_in_a_thread_and_awaited() -> None:
    def read() -> loupe.Run:
        return loupe.run("sample_pages", blank, limit=2, runs=None)

    async def nested() -> tuple[loupe.Run, loupe.Run]:
        return read(), await loupe.arun("sample_pages", blank, limit=2, runs=None)

    found: list[loupe.Run] = []
    thread = threading.Thread(target=lambda: found.append(read()))
    thread.start()
    thread.join()
    assert [run.result.total for run in (*asyncio.run(nested()), *found)] == [2, 2, 2]


def test_a_temporary_run_goes_with_its_object_and_leaves_nothing() -> None:
    run = loupe.run("sample_pages", blank, limit=2, runs=None)
    path = run.path
    assert path.is_dir() and not (path / "predictions").exists()
    del run
    assert not path.exists() and list(Path().iterdir()) == []


def test_a_function_starts_over_unless_it_has_a_name_and_then_another_source_is_refused() -> None:
    seen: list[str] = []

    def read(page: loupe.Page) -> str:
        seen.append(page.id)
        return "one"

    loupe.run("sample_pages", read, limit=2)
    loupe.run("sample_pages", read, limit=2)
    assert len(seen) == 4
    loupe.run("sample_pages", read, limit=2, name="step-1")
    run = loupe.run("sample_pages", read, limit=2, name="step-1")
    assert len(seen) == 6 and "|function:" in run.signature

    def read(page: loupe.Page) -> str:  # type: ignore[no-redef]
        return "two"

    with pytest.raises(loupe.LoupeError, match=r"engine\.source: "):
        loupe.run("sample_pages", read, limit=2, name="step-1")


def test_a_page_that_raises_costs_itself_in_a_batch_too() -> None:
    sizes: list[int] = []

    def read(pages: list[loupe.Page]) -> list[str]:
        sizes.append(len(pages))
        if any(page.id == "blank" for page in pages):
            raise ValueError("no ink")
        return [page.id for page in pages]

    run = loupe.run("sample_pages", read, batch=4, runs=None)
    assert [failure.sample for failure in run.failures] == ["blank"]
    assert "ValueError: no ink" in run.failures[0].error and max(sizes) == 4
    assert all(sample.text == sample.id for sample in run.samples if sample.outcome == "ok")


def test_a_function_gets_pictures_where_it_says_so_and_an_object_reads_with_predict() -> None:
    class Model:
        name = "mine"

        async def predict(self, image: Image) -> Output:
            return Output(text=f"{image.width}", output_tokens=1)

    run = loupe.run("sample_pages", Model(), limit=2, runs=None)
    assert run.engine == "mine" and int(run.samples[0].text) == run.samples[0].image.width
    assert run.rows()[0]["output_tokens"] == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"limt": 3}, "no option 'limt'; did you mean 'limit'"),
        ({"limit": 0}, "must be a whole number from 1 on"),
        ({"sample": "stratified"}, "needs to know how many"),
        ({"limit": 2, "sample": 3}, "do not go together"),
        ({"timeout": 3.0}, "nobody can end a call"),
        ({"model": "x"}, "model is no setting of a function"),
    ],
)
def test_options_that_do_not_fit_are_refused_with_a_hint(options: dict[str, object], said: str) -> None:
    with pytest.raises(loupe.LoupeError, match=said) as refusal:
        loupe.run("sample_pages", blank, **options)  # type: ignore[arg-type]
    assert refusal.value.hint or "whole number" in said
    assert list(Path().iterdir()) == []


def test_a_traceback_shows_the_hint_as_it_is_now() -> None:
    error = loupe.LoupeError("no such page", hint="loupe data get")
    error.add_note("seen at night")
    assert "".join(traceback.format_exception(error)).splitlines()[-2:] == ["hint: loupe data get", "seen at night"]
    error.hint = "loupe bench list"
    shown = "".join(traceback.format_exception(pickle.loads(pickle.dumps(error))))
    assert "hint: loupe bench list" in shown and "data get" not in shown and str(error) == "no such page"


def test_answers_are_scored_from_a_mapping_a_folder_and_a_file(here: Path) -> None:
    (here / "answers").mkdir()
    (here / "answers/prose.txt").write_text("The Ferry Clock")
    (here / "answers.jsonl").write_text('{"id": "prose", "text": "The Ferry Clock"}\n')
    given = [{"prose": "The Ferry Clock"}, "answers", here / "answers.jsonl"]
    values = [loupe.score("sample_pages", one)["text_similarity"] for one in given]  # type: ignore[arg-type]
    assert values[0] == values[1] == values[2]
    assert sorted(path.name for path in here.iterdir()) == ["answers", "answers.jsonl"]
    kept = loupe.score("sample_pages", given[0], runs="runs", name="mine")  # type: ignore[arg-type]
    assert loupe.load_run("runs/mine/sample_pages").metrics() == kept.metrics()
    with pytest.raises(loupe.LoupeError, match="no answers at nowhere"):
        loupe.score("sample_pages", "nowhere")


def test_tables_need_a_library_that_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    run = loupe.run("sample_pages", blank, limit=2, runs=None)
    assert [row["sample"] for row in run.rows()] == [sample.id for sample in run.samples]
    assert {"unit", "measure", "value"} <= set(run.rows("unit")[0])
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(loupe.LoupeError, match="polars is not installed") as refusal:
        run.to_polars()
    assert refusal.value.hint.startswith((sys.executable, "uv")) and " polars; " in refusal.value.hint


def test_rows_are_those_of_the_exported_table(here: Path) -> None:
    references = {"prose": "The Ferry Clock", "lists": "- one", "blank": ""}
    run = loupe.score("sample_pages", references, runs="runs", name="mine")
    write_csv([RunFolder.open(run.path)], here / "samples.csv")
    with (here / "samples.csv").open(newline="", encoding="utf-8") as file:
        stored = list(csv.DictReader(file))
    rows = run.rows()
    assert list(rows[0]) == list(stored[0]) and "measure.text_similarity" in rows[0]
    assert [row["class"] for row in rows] == [row["class"] for row in stored]
    assert [row["reference"] for row in rows if row["sample"] == "prose"] == [run.samples["prose"].reference]
    common = {"run", "engine", "benchmark", "version", "scored", "sample", "group", "class", "error"}
    columns = set(run.rows("unit")[0])
    assert common | {"unit", "measure", "value"} == {name for name in columns if not name.startswith("tag.")}
    assert {name for name in columns if name.startswith("tag.")} <= set(rows[0])
    assert {row["sample"] for row in rows if row["class"] == "missing"}.isdisjoint(references)


def test_what_a_notebook_shows_is_escaped() -> None:
    run = loupe.run("sample_pages", lambda page: "<script>x</script>", limit=2, runs=None)
    shown = [run, run.samples, run.samples[0], loupe.benchmarks(), loupe.benchmarks()[0], loupe.engines()]
    pictures = [each._repr_html_() for each in shown]
    assert all("<script" not in html and html.startswith("<style>") for html in pictures)
    assert "&lt;" in pictures[2] and "data:image/png" in pictures[2]


def test_a_comparison_says_better_or_how_many_pages_would_tell() -> None:
    references = {sample.id: sample.reference for sample in loupe.run("sample_pages", blank, runs=None).samples}
    good = loupe.score("sample_pages", references, name="good")
    bad = loupe.score("sample_pages", {ident: text[:5] for ident, text in references.items()}, name="bad")
    near = loupe.score("sample_pages", references | {"prose": "The"}, name="near")
    assert loupe.compare(bad, good).outcome == "better" and loupe.compare(good, bad).outcome == "worse"
    assert loupe.compare(bad, good).sentence.startswith("good is better than bad: text_similarity ")
    unsure = loupe.compare(good, near)
    assert unsure.outcome == "cannot tell yet" and "Pages needed: " in unsure.sentence
    assert "</table>" in unsure._repr_html_()


def test_a_stratified_draw_is_in_proportion_and_a_larger_one_holds_the_smaller() -> None:
    samples = [(f"{n}", "text", {"language": "zh" if n % 4 == 0 else "en", "file": f"{n}"}) for n in range(400)]
    before: set[str] = set()
    for count in (4, 40, 100):
        drawn = draw_stratified(samples, count, seed=3)
        assert drawn.strata == ("task", "language") and len(drawn.ids) == count
        chinese = sum(drawn.holds(f"{n}") for n in range(0, 400, 4))
        assert abs(chinese - count / 4) <= 1 and before <= set(drawn.ids)
        before = set(drawn.ids)
    assert draw_stratified(reversed(samples), 40, seed=3) == draw_stratified(samples, 40, seed=3)
    assert draw_stratified(samples, 40, seed=4).ids != draw_stratified(samples, 40, seed=3).ids


def test_a_stratified_part_stands_in_the_signature_and_grows() -> None:
    few = loupe.run("sample_pages", blank, limit=4, sample="stratified", name="part")
    before = {one.id for one in few.samples}
    more = loupe.run("sample_pages", blank, limit=8, sample="stratified", name="part")
    assert "|sample:stratified(by=task,seed=0)|" in few.signature
    assert len(before) == 4 and before < {one.id for one in more.samples}
    with pytest.raises(loupe.LoupeError, match="samples: drawn in proportion to task with seed 0 in the folder"):
        loupe.run("sample_pages", blank, limit=8, name="part")


def test_ctrl_c_keeps_answers_and_the_same_call_goes_on(here: Path) -> None:
    script = (
        "import loupe, time\n"
        "def read(page):\n    print(page.id, flush=True)\n    time.sleep(0.3)\n    return page.id\n"
        "loupe.run('sample_pages', read, name='mine')\n"
    )
    (here / "script.py").write_text(script)
    started = subprocess.Popen([sys.executable, "script.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert started.stdout is not None
    for _ in range(3):
        started.stdout.readline()
    os.kill(started.pid, signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert "KeyboardInterrupt: " in err and "samples are read; the same call goes on" in err and out.count("\n") < 3
    again = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, check=True)
    assert 12 <= again.stdout.count("\n") <= 17
    assert loupe.load_run("runs/mine/sample_pages").failures == []


async def ask(function: object, ids: list[str], **options: object) -> list[str]:
    found = function_of(function)
    assert found is not None
    async with open_function(found, **options) as engine:  # type: ignore[arg-type]
        outputs = await asyncio.gather(*(engine.predict(Request(id=ident)) for ident in ids))
    return [output.text for output in outputs]


def test_the_last_batch_is_not_waited_for_and_order_is_kept() -> None:
    sizes: list[int] = []

    def read(pages: list[loupe.Page]) -> list[str]:
        sizes.append(len(pages))
        time.sleep(0.01)
        return [page.id for page in pages]

    ids = [f"{number}" for number in range(10)]
    assert asyncio.run(ask(read, ids, batch=4)) == ids
    assert sizes == [4, 4, 2]


def test_a_list_of_another_length_and_an_answer_that_is_no_text_are_errors() -> None:
    from loupe.errors import EngineError

    with pytest.raises(EngineError, match="got 1 pages and returned 2 texts"):
        asyncio.run(ask(lambda pages: ["a", "b"], ["1"], batch=4))
    with pytest.raises(EngineError, match="returned int, not a str"):
        asyncio.run(ask(lambda page: 3, ["1"]))


@pytest.mark.parametrize(
    "options", [{"concurrency": 0}, {"concurrency": True}, {"retries": -1}, {"redo": "ok"}, {"redo": ["x"]}]
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(loupe.LoupeError, match=next(iter(options))):
        loupe.run("sample_pages", lambda page: page.prompt, runs=None, **options)


def test_partials_and_wrappers_are_told_apart_and_awaited_as_they_are() -> None:
    def read(page: Any, model: str) -> str:
        return model

    def plain(page: Any) -> str:
        return "x"

    @functools.wraps(plain)
    async def awaited(page: Any) -> str:
        return "x"

    one, same, other = (function_of(functools.partial(read, model=name)) for name in ("a", "a", "b"))
    assert one and same and other and one.source == same.source != other.source
    found = function_of(awaited)
    assert found is not None and found.is_async


def test_a_time_out_of_the_callers_own_is_a_time_out() -> None:
    async def read(page: Any) -> str:
        raise TimeoutError("too slow")

    with pytest.warns(UserWarning, match="all 2 samples failed"):
        run = loupe.run("sample_pages", read, limit=2, runs=None, progress=False)
    assert {one.outcome for one in run.failures} == {"timeout"} and "too slow" in run.failures[0].error


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class UnspeakableExit(BaseException):
    def __str__(self) -> str:
        raise ValueError("no words")


class Label(str):
    """As numpy and tokenizers return texts: a subclass of str."""


ENDS: list[tuple[str, Any]] = [
    ("UnspeakableError", UnspeakableError()),
    ("UnspeakableExit", UnspeakableExit()),
    ("SystemExit: 3", SystemExit(3)),
    ("invalid Output: .*str", Output(text=5)),  # type: ignore[arg-type]
    ("invalid Output: .*int", Output(text="", input_tokens="many")),  # type: ignore[arg-type]
    ("invalid Output: .*object", Output(text="", response={"raw": object()})),
    ("returned NoneType", None),
]


@pytest.mark.parametrize(("said", "end"), ENDS, ids=[said for said, _ in ENDS])
@pytest.mark.parametrize("kind", ["plain", "awaited", "batch"])
def test_whatever_a_function_raises_or_returns_costs_one_page_alone(said: str, end: Any, kind: str) -> None:
    def read(page: loupe.Page) -> Any:
        if page.id != "prose":
            return "text"
        if isinstance(end, BaseException):
            raise end
        return end

    async def awaited(page: loupe.Page) -> Any:
        return read(page)

    def batch(pages: list[loupe.Page]) -> Any:
        return [read(page) for page in pages]

    if kind == "batch":
        run = loupe.run("sample_pages", batch, limit=2, runs=None, batch=2)
    else:
        run = loupe.run("sample_pages", awaited if kind == "awaited" else read, limit=2, runs=None)
    [failure] = run.failures
    assert failure.sample == "prose"
    assert re.search(said, failure.error)


def test_a_text_of_a_subclass_of_str_is_a_text() -> None:
    run = loupe.run("sample_pages", lambda page: Label("a page"), limit=2, runs=None)
    assert [sample.text for sample in run.samples] == ["a page", "a page"]
    labels = {"prose": Label("a page")}
    assert loupe.score("sample_pages", labels, limit=1).samples[0].text == "a page"


def test_results_that_are_kept_hold_no_descriptor_each_and_go_with_their_objects() -> None:
    first = TemporaryFolder()
    before = len(list(Path("/dev/fd").iterdir()))
    kept = [TemporaryFolder() for _ in range(30)]
    assert len(list(Path("/dev/fd").iterdir())) == before
    paths = [each.path for each in kept]
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in paths) and len(set(paths)) == 30
    del kept
    gc.collect()
    assert not any(path.exists() for path in paths) and first.path.is_dir()
    shutil.rmtree(first.path.parent)
    assert TemporaryFolder().path.parent != first.path.parent
