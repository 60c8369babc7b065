"""Benchmarks in a row and suites of one's own: one command, one table; one that fails stops nothing else."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loupe.benchmarks.published import published_rows
from loupe.benchmarks.registry import full_name, get_benchmark, is_own_folder
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.options import as_asked, make_plans, plans_of
from loupe.cli.shared.reading import carry_out
from loupe.cli.shared.suite_files import Entry, entries_of, find_suite
from loupe.cli.shared.suites import Series, _document, _store, data_of
from loupe.engines.registry import load_profile
from loupe.errors import EngineUnavailableError, UsageError
from tests.support.chat_server import Reply, in_thread
from tests.support.command_line import complaint, installed, loupe, make_folder, needs_engine, trusted

#: A benchmark whose second sample cannot be read, by a bug of its own.
BROKEN = """
from loupe.types import Benchmark, Measure, Sample, Score

def load(root, split: str = "test"):
    yield Sample(id="a", text="a", truth="a")
    raise ZeroDivisionError("second sample")

def score(sample, prediction):
    return [Score(measure="right", counts=(1.0, 1.0))]

benchmark = Benchmark(title="B", version="1", task="text", measures=(Measure(name="right"),), load=load, score=score)
"""
RIGHT = "python:reader.py:right"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Two folders of six texts, and readers."""
    for name in ("letters", "bills"):
        make_folder(tmp_path, name=name)
    return tmp_path


def cells(document: dict[str, Any]) -> dict[str, list[str]]:
    return {row["engine"]: sorted(row["cells"]) for row in document["table"]["rows"]}


def test_benchmarks_in_a_row_with_engines_in_a_row_make_one_table(here: Path) -> None:
    words = ("run", "letters", "bills", "-e", RIGHT, "-e", "python:reader.py:wrong", "--plain")
    done = loupe(*words, cwd=here)
    assert done.returncode == 0, done.stderr
    header, right, wrong, saved = done.stdout.splitlines()
    assert [cell.partition("@")[0] for cell in header.split("\t")] == ["engine", "letters", "bills"]
    assert right.startswith("python-reader.py_right\t100.00 %") and wrong.startswith("python-reader.py_wrong\t")
    assert saved.startswith("saved in runs/results-20")
    lines = [line for line in done.stderr.splitlines() if line.startswith("run ")]
    assert [line.partition(",")[0] for line in lines] == [f"run {number} of 4" for number in (1, 2, 3, 4)]
    assert lines[1].endswith("python-reader.py_right on bills: 100.00 % [54.07 … 100.00]")


def test_a_bug_in_one_benchmark_costs_only_that_one(here: Path) -> None:
    (here / "broken.py").write_text(BROKEN)
    done = loupe("run", "letters", "broken.py", "bills", "-e", RIGHT, "--json", cwd=here)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    fault = "error: python-reader.py_right on broken.py: broken.py:6: ZeroDivisionError: second sample\n"
    assert fault in done.stderr
    document = json.loads(done.stdout)
    assert list(document["failed"]) == ["python-reader.py_right on broken.py"]
    assert [len(names) for names in cells(document).values()] == [2]


def test_a_benchmark_without_a_first_sample_is_named_and_left_out_like_a_missing_one(here: Path) -> None:
    (here / "bad.py").write_text(BROKEN.replace("    yield", "    raise ValueError('no index')\n    yield"))
    words = ("run", "letters", "bad.py", "-e", RIGHT)
    done = loupe(*words, cwd=here)
    assert done.returncode == 2 and "\n  bad.py: bad.py:5: ValueError: no index\n" in done.stderr
    done = loupe(*words, "--skip-missing", "--json", cwd=here)
    assert done.returncode == 0 and list(json.loads(done.stdout)["skipped"]) == ["bad.py"]


def test_a_series_of_which_one_plan_is_left_behaves_as_one(here: Path) -> None:
    words = ("letters", "nowhere/", "--skip-missing", "-e", "command:nosuchprogram {image}", "--json")
    done = loupe("run", *words, cwd=here)
    document = json.loads(done.stdout)
    assert done.returncode == 4 and list(document["skipped"]) == ["nowhere/"]
    [name] = document["failed"]
    assert name.endswith(" on letters") and json.loads((here / "runs/results-latest.json").read_text()) == document


def test_an_id_wins_over_a_folder_of_that_name_for_every_option(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    (here / "ocrbench").mkdir()
    assert [is_own_folder(name) for name in ("ocrbench", "ocrbench@2", "letters", "nowhere")] == [0, 0, 1, 0]
    assert data_of(Entry(benchmark="ocrbench"), Path("data")) == "data/ocrbench"
    assert data_of(Entry(benchmark="letters"), Path("data")) is None
    asked, _ = as_asked([Entry(benchmark="ocrbench"), Entry(benchmark="letters")], Flags(allow_unverified=True))
    assert [entry.texts for entry in asked] == [{}, {"allow_unverified": "true"}]
    with pytest.raises(UsageError, match="ocrbench: --allow-unverified is for folders of your own"):
        as_asked([Entry(benchmark="ocrbench")], Flags(allow_unverified=True))


def test_infer_reads_several_benchmarks_and_says_how_to_score_them(here: Path) -> None:
    done = loupe("infer", "letters", "bills", "-e", RIGHT, "-e", "python:reader.py:sometimes", "--plain", cwd=here)
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines[0] == ["engine", "benchmark", "read", "failed", "run"]
    assert lines[4] == ["python-reader.py_sometimes", "bills", "6", "1", "runs/python-reader.py_sometimes/bills"]
    assert done.stderr.splitlines()[-1] == "to score: loupe score runs"
    assert loupe("score", "runs", "--plain", cwd=here).returncode == 0
    shutil.rmtree(here / "runs")
    one = loupe("infer", "letters", "-e", RIGHT, cwd=here)
    assert one.stderr.splitlines()[-1] == "to score: loupe score runs/python-reader.py_right/letters"
    assert " s · python-reader.py_right on letters: 6 of 6 read\n" in done.stderr
    assert not (here / "runs/python-reader.py_right/letters/result.json").exists()


def test_one_that_is_missing_is_named_before_anything_is_read_or_left_out(here: Path) -> None:
    done = loupe("run", "letters", "nowhere/", "ocrbnch", "-e", RIGHT, cwd=here)
    assert done.returncode == 2 and not (here / "runs").exists()
    assert "error: 2 of 3 benchmarks cannot be read here:\n  nowhere/: no folder nowhere/\n" in done.stderr
    assert "did you mean 'ocrbench'?" in done.stderr
    assert "loupe bench list, or add --skip-missing" in done.stderr
    assert loupe("run", "letters", "nowhere/", "-e", RIGHT, "--skip-missing", cwd=here).returncode == 0


def test_the_same_benchmark_twice_and_a_suite_named_as_a_benchmark_are_refused(here: Path) -> None:
    assert complaint(loupe("run", "letters", "./letters", cwd=here))[0] == "letters is named twice"
    assert complaint(loupe("infer", "core", cwd=here)) == ("core is a suite", "run: loupe run --suite core")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("omnidoc", "omnidocbench"),
        ("OmniDoc@1.5", "omnidocbench@1.5"),
        ("unimer", "unimer_test"),
        ("UniMER-Test", "unimer_test"),
        ("olmocr", "olmocr_bench"),
        ("dp", "dp_bench"),
        ("iam", "iam_lines"),
        ("teds", "teds_test"),
        ("o", "o"),
        ("./omnidoc", "./omnidoc"),
    ],
)
def test_the_beginning_of_a_name_is_enough(typed: str, meant: str) -> None:
    assert full_name(typed) == meant


def test_a_folder_is_never_taken_for_the_beginning_of_a_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    (here / "dp").mkdir()
    assert full_name("dp") == "dp"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("tables", "pubtabnet or teds_test"),
        ("kie", "handwritten_forms or nanonets_kie"),
        ("formulas", "unimer_test"),
        ("omnidcobench", "'omnidocbench'"),
    ],
)
def test_a_word_for_benchmarks_suggests_them(typed: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean {meant}\\?"):
        get_benchmark(typed)


@pytest.mark.parametrize(
    "words",
    installed(
        [
            ("bench", "show", "unimer"),
            ("data", "where", "unimer"),
            ("load", "unimer", "-e", RIGHT),
            ("score", "unimer", "answers"),
            ("data", "prepare", "unimer", "--to", "there"),
        ]
    ),
    ids=" ".join,
)
def test_commands_beside_run_understand_it_too(words: tuple[str, ...], here: Path) -> None:
    (here / "answers").mkdir()
    done = loupe(*words, cwd=here)
    assert "unimer_test" in done.stdout + done.stderr and "no benchmark" not in done.stderr


def write_suite(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


MINE = """
[suites.mine]
benchmarks = ["letters", { benchmark = "bills", limit = 2 }, { benchmark = "sized.py", options = { size = 3 } }]
engines = ["python:reader.py:right"]
"""
SIZED = """
from pathlib import Path
from loupe.types import Benchmark, Measure, Sample, Score

Path(__file__).with_name("executed").touch()

def load(root, size: int = 1, strict: bool = False):
    for number in range(size):
        yield Sample(id=str(number), text="a", truth="a")

def score(sample, prediction):
    return [Score(measure="right", counts=(1.0, 1.0))]

benchmark = Benchmark(title="B", version="1", task="text", measures=(Measure(name="right"),), load=load, score=score)
"""


def test_the_results_file_has_limits_and_addresses_and_a_found_server_is_said_once(
    here: Path,
) -> None:
    with in_thread(Reply(text="alpha")) as server:
        env = {"LOUPE_BASE_URL": server.url}
        done = loupe("run", "letters", "bills", "--limit", "2", "--json", cwd=here, env=env)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [(each["benchmark"], each["limit"]) for each in document["benchmarks"]] == [("letters", 2), ("bills", 2)]
    assert [each["addresses"] for each in document["results"]] == [[server.url]] * 2
    assert done.stderr.count("named by LOUPE_BASE_URL") == 1
    done = loupe("run", "letters", "bills", "-e", RIGHT, "--json", cwd=here)
    assert [each["addresses"] for each in json.loads(done.stdout)["results"]] == [[], []]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            '[suites.mine]\nbenchmrks = ["letters"]\n',
            "[suites.mine]: unknown key 'benchmrks'; did you mean 'benchmarks'?",
        ),
        ("suites = {mine = 3}\n", "[suites.mine]: expected"),
        ('[engines.mine]\nkind = "tesseract"\npms = 6\n', "[engines.mine]: unknown key 'pms'; did you mean 'psm'?"),
    ],
)
def test_what_cannot_be_read_is_not_trusted(here: Path, settings: str, said: str) -> None:
    (here / "loupe.toml").write_text(settings)
    done = loupe("trust", ".", "--yes", cwd=here)
    assert done.returncode == 2 and said in done.stderr.splitlines()[0]
    assert loupe("trust", "--list", cwd=here).stdout == ""


def test_a_suite_in_a_folder_runs_nothing_until_the_folder_is_trusted(here: Path) -> None:
    (here / "sized.py").write_text(SIZED)
    write_suite(here / "loupe.toml", MINE)
    for command in ("run", "infer"):
        done = loupe(command, "--suite", "mine", cwd=here)
        message, hint = complaint(done)
        assert message.startswith(
            "loupe.toml is not trusted, so it is not used: suite mine runs letters bills sized.py"
        )
        assert "(Python code) with python:reader.py:right" in message
        assert "loupe trust" in hint and not (here / "runs").exists() and not (here / "executed").exists()
    listed = loupe("bench", "suites", "--plain", cwd=here)
    assert "mine: loupe.toml is not trusted" in listed.stderr and not (here / "executed").exists()
    shown = loupe("trust", ".", cwd=here)
    assert '[suites] "mine" = ' in shown.stderr


def test_no_suite_of_an_untrusted_folder_stands_for_ours_but_ours_beside_it_are_used(here: Path) -> None:
    write_suite(here / "loupe.toml", '[suites.core]\nbenchmarks = ["letters"]\nengines = ["command:./evil"]\n')
    message, _ = complaint(loupe("run", "--suite", "core", cwd=here))
    assert "suite core (instead of the one that Loupe has) runs letters with command:./evil" in message
    done = loupe("run", "--suite", "eight", "-e", RIGHT, "--data", ".", cwd=here)
    assert "8 of 8 benchmarks of suite 'eight' cannot be read here" in done.stderr


def test_a_suite_of_ones_own_has_engines_options_and_parts_which_stand_in_the_signature(here: Path) -> None:
    (here / "sized.py").write_text(SIZED)
    write_suite(here / "loupe.toml", MINE)
    trusted(here / "loupe.toml")
    done = loupe("run", "--suite", "mine", "--json", cwd=here)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["suite"] == "mine" and document["benchmarks"][1]["limit"] == 2
    found = {result["benchmark"]: result for result in document["results"]}
    assert {name: result["total"] for name, result in found.items()} == {"letters": 6, "bills": 2, "sized": 3}
    single = json.loads(loupe("run", "bills", "-e", RIGHT, "--limit", "2", "--runs", "b", "--json", cwd=here).stdout)
    assert found["bills"]["signature"] == single["signature"] and "n:2" in single["signature"]
    assert "size=3" in found["sized"]["signature"]

    words = ("run", "--suite", "mine", "--runs", "other", "--json", "-o", "sized.size=4", "-o", "sized.strict=true")
    again = json.loads(loupe(*words, "--limit", "5", "-e", "python:reader.py:wrong", cwd=here).stdout)
    assert {one["benchmark"]: one["total"] for one in again["results"]} == {"letters": 5, "bills": 5, "sized": 4}
    assert {one["engine"] for one in again["results"]} == {"python-reader.py_wrong"}


def test_suites_of_the_user_need_no_trust(here: Path) -> None:
    write_suite(here / ".config/loupe/suites.toml", '[suites.core]\nbenchmarks = ["bills"]\n')
    done = loupe("run", "--suite", "core", "-e", RIGHT, "--json", cwd=here)
    assert [one["benchmark"] for one in json.loads(done.stdout)["results"]] == ["bills"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('benchmarks = ["a"]\nengine = ["x"]', "unknown key 'engine'; did you mean 'engines'?"),
        ("benchmarks = []", "benchmarks: expected `array` of length >= 1"),
        ('engines = ["x"]', "no `benchmarks`"),
        (
            'benchmarks = [{ benchmark = "a", limits = 3 }]',
            "benchmarks[0]: unknown key 'limits'; did you mean 'limit'?",
        ),
        ('benchmarks = [{ benchmark = "a", limit = 0 }]', "benchmarks[0].limit: expected `int` >= 1"),
        ('benchmarks = [{ benchmark = "a", limit = 3, sample = 3 }]', "a: limit and sample cannot be combined"),
        ('benchmarks = [{ benchmark = "a", seed = 3 }]', "a: seed is for sample"),
    ],
)
def test_a_suite_that_is_written_wrongly_is_named_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    write_suite(tmp_path / ".config/loupe/suites.toml", f"[suites.mine]\n{text}\n")
    done = loupe("run", "--suite", "mine", cwd=tmp_path)
    assert (
        done.returncode == 2 and complaint(done)[0] == f"{tmp_path}/.config/loupe/suites.toml [suites.mine]: {message}"
    )


@pytest.mark.parametrize(
    ("option", "message", "hint"),
    [
        ("size=3", "-o size=3: the engine has no such setting; for one of several benchmarks, put its name in front",
         "-o sized.size=3"),
        ("dp.size=3", "-o dp.size=3: dp is not one of the benchmarks", "benchmarks: letters, sized"),
        ("sized.siz=3", "sized has no option 'siz'; did you mean 'size'?", "options: size, strict"),
        ("sized.size", "-o size: not KEY=VALUE", "see its options: loupe bench show sized.py"),
        ("letters.draft_for=x", "letters has no option 'draft_for'", "options: allow_unverified"),
    ],
)  # fmt: skip
def test_options_of_several_benchmarks_bear_their_name(option: str, message: str, hint: str, here: Path) -> None:
    (here / "sized.py").write_text(SIZED)
    done = loupe("run", "letters", "sized.py", "-e", RIGHT, "-o", option, cwd=here)
    assert complaint(done) == (message, hint) and done.returncode == 2


def test_settings_of_engines_need_no_name_and_options_of_one_benchmark_may_bear_it() -> None:
    entries = [Entry(benchmark="iam_lines"), Entry(benchmark="ocrbench")]
    asked, flags = as_asked(entries, Flags(option=("temperature=0.2", "iam.split=validation")))
    assert [entry.texts for entry in asked] == [{"split": "validation"}, {}] and flags.settings == {"temperature": 0.2}
    [entry], _ = as_asked(entries[:1], Flags(option=("iam_lines.split=train", "text=raw")))
    assert entry.texts == {"split": "train", "text": "raw"}


def test_each_call_keeps_its_results_also_within_a_second(here: Path) -> None:
    for _ in range(2):
        assert loupe("run", "letters", "bills", "-e", RIGHT, cwd=here).returncode == 0
    kept = sorted((here / "runs").glob("results-2*.json"))
    assert len(kept) == 2
    newest = max(kept, key=lambda path: path.stat().st_mtime_ns)
    assert (here / "runs/results-latest.json").read_bytes() == newest.read_bytes()

    carried: Any = SimpleNamespace(results=[], failed={})
    document = _document(Series("", [], [], skip_missing=False), carried)
    assert datetime.fromisoformat(document.created).tzinfo == UTC
    same = [_store(document, here / "same") for _ in range(3)]
    assert len(set(same)) == 3 and all(path.is_file() for path in same)


def test_suite_eight_has_the_options_and_sizes_of_the_figures_it_is_for() -> None:
    asked = "measured by an unpublished source"
    for entry in entries_of(find_suite("eight").benchmarks):
        ident, _, version = entry.benchmark.partition("@")
        rows = [row for row in published_rows(ident, version) if row.source.startswith(asked)]
        assert rows or ident == "omnidocbench"
        assert all((row.options, row.limit) == (entry.texts, entry.limit) for row in rows), ident
    assert len(find_suite("eight").benchmarks) == 8


@needs_engine("glm-ocr-pipeline")
def test_what_depends_on_the_benchmark_is_decided_for_each_of_them() -> None:
    engine = load_profile("glm-ocr-pipeline")
    row = plans_of([Entry(benchmark="ocrbench"), Entry(benchmark="omnidocbench")], [engine], Flags())
    alone = [plans_of([Entry(benchmark=name)], [engine], Flags())[0] for name in ("ocrbench", "omnidocbench")]
    assert [plan.profile for plan in row] == [plan.profile for plan in alone]
    assert len({plan.profile.signature()["images"] for plan in alone}) == 2


def test_errors_of_repeats_name_the_repeat_and_a_lost_engine_is_tried_twice(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(here)
    plans = make_plans("letters", Flags(engine=(RIGHT,), repeats=4))
    tried = []

    def act(plan: Any) -> tuple[None, int]:
        tried.append(plan)
        raise EngineUnavailableError("gone")

    carried = carry_out(plans, act)
    assert len(tried) == 2 and (carried.code, carried.found) == (4, [])
    assert list(carried.failed) == [plan.name or plan.label for plan in plans]
    assert "python-reader.py_right-repeat2: gone" in capsys.readouterr().err


def test_a_slip_in_by_is_refused_before_anything_is_read(here: Path) -> None:
    done = loupe("run", "letters", "-e", RIGHT, "--by", "hlaf", cwd=here)
    assert done.returncode == 2 and not (here / "runs").exists()
    assert complaint(done) == (
        "--by hlaf: no sample has this tag; they have half; did you mean 'half'?",
        "use --by half",
    )
    assert "--by" not in loupe("run", "letters", "-e", RIGHT, "--by", "half", cwd=here).stderr


def test_a_tag_that_scores_may_bring_is_only_spoken_of_before_the_run(here: Path) -> None:
    done = loupe("run", "letters", "-e", RIGHT, "--by", "field", cwd=here)
    assert done.stderr.startswith("--by field: no sample has this tag; they have half; the table comes only if ")


def test_bench_show_names_the_values_of_options_and_none_that_users_cannot_set(here: Path) -> None:
    shown = loupe("bench", "show", "iam_lines", cwd=here).stdout
    assert "-o split=test|validation|train (default: test)" in shown and "-o sample=N (default: 0)" in shown
    own = loupe("bench", "show", "letters", cwd=here).stdout
    assert "-o allow_unverified=true|false (default: false)" in own and "draft" not in own
    options = json.loads(loupe("bench", "show", "dp", "--json", cwd=here).stdout)["options"]
    assert options[1] == {"name": "pairing", "default": "all", "values": ["all", "first"]} or "values" in options[1]


@pytest.mark.parametrize("floor", ["nan", "inf", "-inf%"])
def test_a_floor_is_a_number(floor: str, here: Path) -> None:
    done = loupe("run", "letters", "-e", RIGHT, f"--fail-under={floor}", cwd=here)
    assert complaint(done) == (f"--fail-under {floor}: not a number", "use --fail-under 90")


def test_benchmarks_say_whether_their_data_is_here(here: Path, tmp_path: Path) -> None:
    (tmp_path / "store/ocrbench").mkdir(parents=True)
    store = {"LOUPE_DATA": str(tmp_path / "store")}
    rows = loupe("bench", "list", "--plain", cwd=here, env=store).stdout.splitlines()
    place = rows[0].split("\t").index("data")
    found = {line.split("\t")[0]: line.split("\t")[place] for line in rows[1:]}
    assert (found["ocrbench"], found["pubtabnet"], found["sample_pages"]) == ("here", "not here", "here")
    shown = loupe("bench", "show", "pubtabnet", cwd=here, env=store).stdout
    assert "data       not here (loupe data get pubtabnet)" in shown
    for name, is_here in (("pubtabnet", False), ("ocrbench", True), ("letters", True)):
        assert json.loads(loupe("bench", "show", name, "--json", cwd=here, env=store).stdout)["data"] is is_here
