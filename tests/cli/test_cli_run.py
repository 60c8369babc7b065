"""`loupe run`, `infer`, `score`, `runs` and `export` as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from loupe.cli.shared.top import root
from loupe.files.folder import Folder
from loupe.runs.folder import RunFolder
from loupe.runs.lock import locked
from tests.support.chat_server import Reply, in_thread
from tests.support.command_line import command, complaint, environment, every_command, installed, loupe, make_folder

RIGHT, WRONG = ("-e", "python:reader.py:right"), ("-e", "python:reader.py:wrong")
RUN = Path("runs/python-reader.py_right/mydocs")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    make_folder(tmp_path)
    return tmp_path


def test_run_prints_the_table_the_signature_and_the_folder_and_nothing_else_on_stdout(here: Path) -> None:
    done = loupe("run", "mydocs", *RIGHT, "--plain", cwd=here)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "# python-reader.py_right on mydocs@1, 6 samples"
    assert lines[2].startswith("text_similarity ↑\t100.00 %\t")
    assert lines[-2].startswith("mydocs:1|n:6|data:") and lines[-1] == f"saved in {RUN}"
    assert f"loupe report {RUN} -o report.html" in done.stderr


def test_json_is_one_object_with_value_interval_and_n_of_every_measure(here: Path) -> None:
    done = loupe("run", "mydocs", *RIGHT, "--json", cwd=here)
    result = json.loads(done.stdout)
    assert set(result["measures"]["text_similarity"]) == {"value", "low", "high", "n", "few_carry_error"}
    assert (result["measures"]["text_similarity"]["value"], result["run"]) == (1.0, str(RUN))


def test_several_engines_give_several_results_and_a_broken_one_does_not_stop_the_next(here: Path) -> None:
    done = loupe("run", "mydocs", "-e", "python:reader.py:nope", "--engines", RIGHT[1], "--json", cwd=here)
    assert done.returncode == 2
    assert [run["engine"] for run in json.loads(done.stdout)["runs"]] == ["python-reader.py_right"]
    assert "error: python-reader.py_nope: " in done.stderr


def test_the_same_command_again_asks_nothing_again(here: Path) -> None:
    loupe("run", "mydocs", *RIGHT, cwd=here)
    before = (here / RUN / "predictions.jsonl").read_bytes()
    assert loupe("run", "mydocs", *RIGHT, cwd=here).returncode == 0
    assert (here / RUN / "predictions.jsonl").read_bytes() == before


def test_other_settings_are_refused_with_the_list_of_differences(here: Path) -> None:
    loupe("run", "mydocs", *RIGHT, cwd=here)
    done = loupe("run", "mydocs", *RIGHT, "--prompt", "Read!", cwd=here)
    assert done.returncode == 2
    assert f"error: {RUN} holds a run with other settings:" in done.stderr and "prompts: " in done.stderr
    assert "hint: use --name NAME to keep both, or --fresh to start over" in done.stderr
    assert loupe("run", "mydocs", *RIGHT, "--prompt", "Read!", "--name", "asked", cwd=here).returncode == 0
    assert (here / "runs/asked/mydocs/result.json").exists()


def test_limit_reads_only_the_first_samples(here: Path) -> None:
    loupe("run", "mydocs", *RIGHT, "--limit", "2", cwd=here)
    assert set(RunFolder.open(here / RUN).predictions()) == {"p0", "p1"}


def test_a_smaller_limit_on_a_finished_run_says_that_it_changes_nothing(here: Path) -> None:
    loupe("run", "mydocs", *RIGHT, cwd=here)
    done = loupe("run", "mydocs", *RIGHT, "--limit", "2", cwd=here)
    assert (
        "this run is finished with 6 samples, so --limit 2 changes nothing; --name NAME with it makes a run of 2"
        in done.stderr
    )
    assert "--limit" not in loupe("run", "mydocs", *RIGHT, cwd=here).stderr


def drawn(here: Path, *words: str, run: Path = RUN) -> set[str]:
    done = loupe("run", "mydocs", *RIGHT, *words, cwd=here)
    assert done.returncode == 0, done.stderr
    return set(RunFolder.open(here / run).predictions())


def test_a_sample_is_drawn_by_its_seed_grows_into_larger_ones_and_stands_in_the_signature(here: Path) -> None:
    make_folder(here, name="many", count=40)
    few = drawn(here, "--sample", "3")
    signature = RunFolder.open(here / RUN).info.signature
    assert len(few) == 3 and "|n:3|" in signature and "|sample:random(seed=0)|" in signature
    assert drawn(here, "--sample", "3", "--fresh") == few
    again = drawn(here, "--sample", "5")
    assert few < again and len(again) == 5
    other = [
        drawn(here, "--sample", "3", "--seed", f"{seed}", "--name", f"s{seed}", run=Path(f"runs/s{seed}/mydocs"))
        for seed in range(1, 6)
    ]
    assert any(each != few for each in other)
    assert drawn(here) == {f"p{number}" for number in range(6)}
    assert "sample:" not in RunFolder.open(here / RUN).info.signature
    result = json.loads((here / RUN / "result.json").read_text())
    assert (result["total"], result["outcomes"]) == (6, {"ok": 6})


def test_another_choice_of_samples_does_not_slip_into_a_run(here: Path) -> None:
    drawn(here, "--sample", "3")
    for words in (["--limit", "3"], ["--sample", "3", "--seed", "7"]):
        done = loupe("run", "mydocs", *RIGHT, *words, cwd=here)
        assert done.returncode == 2 and "samples: drawn at random with seed 0 in the folder, " in done.stderr
    assert complaint(loupe("run", "mydocs", *RIGHT, "--limit", "2", "--sample", "2", cwd=here))[0] == (
        "--limit and --sample cannot be combined"
    )
    assert complaint(loupe("run", "mydocs", *RIGHT, "--seed", "2", cwd=here))[0] == "--seed is for --sample"
    drawn(here)
    said = loupe("run", "mydocs", *RIGHT, "--sample", "2", cwd=here).stderr
    assert "this run is finished with 6 samples, so --sample 2 changes nothing" in said


def test_a_sample_is_scored_again_filed_from_answers_and_reported_beside_other_parts(here: Path) -> None:
    few = drawn(here, "--sample", "3", "--seed", "1")
    done = loupe("score", RUN, "--json", cwd=here)
    assert json.loads(done.stdout)["total"] == 3, done.stderr
    (here / "answers.jsonl").write_text("".join(f'{{"id": "p{number}", "text": "eta"}}\n' for number in range(6)))
    done = loupe("score", "mydocs", "answers.jsonl", "--sample", "3", "--seed", "1", "--json", cwd=here)
    assert json.loads(done.stdout)["total"] == 3, done.stderr
    assert set(RunFolder.open(here / "runs/answers/mydocs").predictions()) == few
    assert complaint(loupe("score", RUN, "--seed", "0", cwd=here))[0] == "--seed is for answers, not for a run"
    drawn(here, "--limit", "2", "--name", "first", run=Path("runs/first/mydocs"))
    done = loupe("report", RUN, "runs/first/mydocs", "-o", "report.html", cwd=here)
    assert done.returncode == 0, done.stderr
    matrix = loupe("compare", "--plain", cwd=here).stdout
    assert "3 of 6 at random (seed 1)" in matrix and "first 2 of 6" in matrix


def test_repeats_are_runs_of_their_own_with_their_spread_and_each_goes_on_where_it_stopped(here: Path) -> None:
    (here / "luck.py").write_text(
        "import os\n\n\ndef read(request):\n"
        "    seen = os.path.exists(request.id)\n    open(request.id, 'w').close()\n"
        "    return request.text.upper() if seen and request.id == 'p1' else request.text\n"
    )
    words = ("run", "mydocs", "-e", "python:luck.py:read", "--name", "luck", "-n", "1")
    done = loupe(*words, "--repeats", "3", "--plain", cwd=here)
    assert done.returncode == 0, done.stderr
    names = ["luck", "luck-repeat2", "luck-repeat3"]
    assert sorted(path.name for path in (here / "runs").iterdir()) == names
    values = [json.loads((here / f"runs/{name}/mydocs/result.json").read_text()) for name in names]
    assert [value["total"] for value in values] == [6, 6, 6]
    first, *others = [value["measures"]["text_similarity"]["value"] for value in values]
    assert first == 1 > others[0] == others[1]
    assert (
        "# luck, spread over 3 repeats of the same requests; "
        "5 of 6 samples got the same answer every time" in done.stdout
    )
    before = {name: (here / f"runs/{name}/mydocs/predictions.jsonl").read_bytes() for name in names}
    (here / "runs/luck-repeat3/mydocs/predictions.jsonl").write_bytes(
        b"".join(before["luck-repeat3"].splitlines(keepends=True)[:4])
    )
    again = json.loads(loupe(*words, "--repeats", "3", "--json", cwd=here).stdout)
    assert (here / "runs/luck/mydocs/predictions.jsonl").read_bytes() == before["luck"]
    assert len(RunFolder.open(here / "runs/luck-repeat3/mydocs").predictions()) == 6
    (spread,) = again["repeats"]
    assert (spread["engine"], spread["same_answers"], spread["samples"]) == ("luck", 5, 6)
    found = spread["measures"]["text_similarity"]
    assert found["values"] == [first, *others] and found["mean"] == pytest.approx((first + 2 * others[0]) / 3)
    assert found["deviation"] == pytest.approx((first - others[0]) / 3**0.5)
    assert [run["run"] for run in again["runs"]] == [f"runs/{name}/mydocs" for name in names]


def test_failed_samples_are_counted_named_and_fatal_only_when_strict(here: Path) -> None:
    done = loupe("run", "mydocs", "-e", "python:reader.py:sometimes", "--plain", cwd=here)
    assert done.returncode == 0
    assert "failed\t1 of 6\t16.7 %\tscored as empty" in done.stdout and "p3\terror\tsmudged" in done.stdout
    assert loupe("run", "mydocs", "-e", "python:reader.py:sometimes", "--strict", cwd=here).returncode == 3


def test_a_run_without_a_single_answer_is_no_success_and_the_list_of_runs_shows_it(here: Path) -> None:
    (here / "broken.py").write_text("def read(request):\n    raise ValueError('no luck')\n")
    words = ("mydocs", "-e", "python:broken.py:read", "-o", "retries=0", "--limit", "2")
    for stage in ("infer", "run", "run"):
        done = loupe(stage, *words, cwd=here)
        assert done.returncode == 3, stage
        said = "error: python-broken.py_read: all 2 samples failed; the first: broken.py:2: ValueError: no luck"
        assert said in done.stderr
    listed = loupe("runs", "--plain", cwd=here).stdout
    assert ", 2 of 2 failed" in listed
    assert json.loads(loupe("runs", "--json", cwd=here).stdout)[0]["failed"] == 2


def test_an_engine_that_reads_none_of_the_samples_is_not_asked_again_and_one_that_cannot_start_is_named_last(
    tmp_path: Path,
) -> None:
    words = ("run", "sample_pages", "-e", "pdf_text", "-e", "command:nosuchprogram {image}", "--limit", "2")
    done = loupe(*words, cwd=tmp_path)
    assert "it reads none of these samples" in done.stderr and "try again" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("not read, for the errors above: nosuchprogram")
    speed = json.loads((tmp_path / "runs/pdf_text/sample_pages/result.json").read_text())["speed"]
    assert "seconds_per_page" not in speed, "no page was answered, so no page took 0 seconds"


FAILING = """
from loupe.types import Benchmark, Measure, Sample, Score

def load(root):
    for number in range(4):
        yield Sample(id=f"p{number}", text=str(number), truth=str(number))

def score(sample, prediction):
    if sample.id == "p1" and prediction.text:
        raise ValueError("odd page")
    return [Score(measure="m", counts=(float(prediction.text == sample.truth), 1.0))]

benchmark = Benchmark(title="f", version="1", task="text", measures=(Measure(name="m"),), load=load, score=score)
"""


def test_a_sample_whose_scorer_failed_is_a_failed_sample(here: Path) -> None:
    (here / "failing.py").write_text(FAILING)
    done = loupe("run", "failing.py", *RIGHT, "--strict", "--plain", cwd=here)
    assert done.returncode == 3
    assert "failed\t1 of 4\t25.0 %\tscored as empty" in done.stdout
    assert "1 of 4 samples failed, more than 5 %; each counts as an empty answer" in done.stdout


def test_an_engines_words_cannot_steer_the_terminal(here: Path) -> None:
    done = loupe("run", "mydocs", "-e", "python:reader.py:broken", cwd=here)
    assert "ink on p0" in done.stdout and "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("floor", ["99", "100%", "0.5%"])
def test_a_good_headline_is_not_under_the_floor(floor: str, here: Path) -> None:
    assert loupe("run", "mydocs", *RIGHT, "--fail-under", floor, cwd=here).returncode == 0


def test_a_headline_under_the_floor_ends_with_1_and_says_so(here: Path) -> None:
    done = loupe("run", "mydocs", *WRONG, "--fail-under", "60", cwd=here)
    assert done.returncode == 1
    assert "python-reader.py_wrong: text_similarity 4.72 % is worse than 60.00 %" in done.stderr


SHOW = "see its settings: loupe engine show python:reader.py:right"


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (
            ("--fail-under", "0.9"),
            "--fail-under 0.9: text_similarity is in percent; did you mean 90 %?",
            "use --fail-under 90, or --fail-under 0.9%",
        ),
        (
            ("--data", "nope"),
            "invalid value for '--data': Path 'nope' does not exist",
            "see the options: loupe run --help",
        ),
        (("--fail-under", "much"), "--fail-under much: not a number", "use --fail-under 90"),
        (("-o", "splitt"), "-o splitt: not KEY=VALUE", "see its options: loupe bench show mydocs"),
        (("--temperature", "1"), "engine 'python:reader.py:right' has no setting for --temperature", SHOW),
        (("--base-url", "http://h/v1"), "engine 'python:reader.py:right' has no setting for --base-url", SHOW),
    ],
)
def test_what_does_not_fit_together_is_refused_before_anything_is_read(
    words: tuple[str, ...], error: str, hint: str, here: Path
) -> None:
    done = loupe("run", "mydocs", *RIGHT, *words, cwd=here)
    assert (done.returncode, complaint(done)) == (2, (error, hint))
    assert not (here / "runs").exists()


def test_an_unknown_option_of_a_benchmark_is_named_with_the_nearest(tmp_path: Path) -> None:
    make_folder(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from loupe.types import Benchmark, Measure, Sample\n"
        "def load(root, split='test'): return [Sample(id='a', text='x', truth='x', tags={'split': split})]\n"
        "def score(sample, prediction): return []\n"
        "benchmark = Benchmark(title='t', version='1', task='text', measures=(Measure(name='m'),),\n"
        "                      load=load, score=score)\n"
    )
    done = loupe("run", "./mine.py", *RIGHT, "-o", "splti=test", cwd=tmp_path)
    assert done.returncode == 2 and "split" in complaint(done)[0]


def test_a_broken_line_of_a_folder_is_named_with_its_number(here: Path) -> None:
    (here / "mydocs/samples.jsonl").write_text('{"id": "a", "text": "x", "reference": "x"}\n{"id": \n')
    done = loupe("run", "mydocs", *RIGHT, cwd=here)
    assert done.returncode == 2 and "samples.jsonl:2" in done.stderr and "Traceback" not in done.stderr


def test_bench_check_names_every_problem_and_ends_with_2(here: Path) -> None:
    (here / "mydocs/samples.jsonl").write_text('{"id": "a", "text": "x", "reference": "x"}\n{"id": \n{"id": "a"}\n')
    done = loupe("bench", "check", "mydocs", cwd=here)
    assert done.returncode == 2
    assert "samples.jsonl:2" in done.stdout and "samples.jsonl:3" in done.stdout and "error: mydocs: " in done.stderr
    assert loupe("bench", "check", "mydocs", "--json", cwd=here).returncode == 2


def test_bench_check_is_content_with_a_good_folder(here: Path) -> None:
    done = loupe("bench", "check", "mydocs", cwd=here)
    assert (done.returncode, done.stdout) == (0, "")


def test_infer_then_score_gives_what_run_gives(here: Path) -> None:
    whole = json.loads(loupe("run", "mydocs", *RIGHT, "--json", cwd=here).stdout)
    done = loupe("infer", "mydocs", *RIGHT, "--runs", "apart", cwd=here)
    assert (done.returncode, done.stdout) == (0, "apart/python-reader.py_right/mydocs\n")
    assert not (here / "apart/python-reader.py_right/mydocs/result.json").exists()
    scored = json.loads(loupe("score", done.stdout.strip(), "--json", cwd=here).stdout)
    assert (scored["measures"], scored["signature"]) == (whole["measures"], whole["signature"])


def test_score_takes_a_folder_of_answers(here: Path) -> None:
    loupe("run", "mydocs", *RIGHT, cwd=here)
    done = loupe("export", RUN, cwd=here)
    assert (done.returncode, done.stdout.strip()) == (0, str(RUN / "predictions"))
    again = loupe("score", "mydocs", RUN / "predictions", "--name", "copied", "--json", cwd=here)
    assert again.returncode == 0, again.stderr
    result = json.loads(again.stdout)
    assert (result["run"], result["measures"]["text_similarity"]["value"]) == ("runs/copied/mydocs", 1.0)


def test_runs_lists_what_there_is(here: Path) -> None:
    assert loupe("runs", cwd=here).stderr == "no run below runs; to make some: loupe demo\n"
    loupe("infer", "mydocs", *RIGHT, cwd=here)
    loupe("run", "mydocs", *WRONG, cwd=here)
    rows = {row["run"]: row for row in json.loads(loupe("runs", "--json", cwd=here).stdout)}
    assert rows[str(RUN)]["headline"] == "6 of 6 read, not scored" and len(rows) == 2
    assert loupe("runs", "--plain", cwd=here).stdout.startswith("run\tbenchmark\tengine\theadline\tn\tcreated\n")
    assert str(RUN) in loupe("runs", cwd=here, env={"COLUMNS": "50"}).stdout


def test_ctrl_c_keeps_the_answers_and_prints_the_command_that_continues(here: Path) -> None:
    words = ("run", "mydocs", "-e", "python:reader.py:slow", "--api-key", "sk-secret", "--fresh")
    process = subprocess.Popen(
        command(*words), cwd=here, env=environment(here), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    answers = here / "runs/python-reader.py_slow/mydocs/predictions.jsonl"
    while process.poll() is None and not (answers.exists() and answers.stat().st_size):
        continue
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finishing 1 in flight; again to stop now" in err
    assert err.splitlines()[-1].endswith("to continue: loupe run mydocs -e python:reader.py:slow")
    assert "sk-secret" not in err
    done = loupe("run", "mydocs", "-e", "python:reader.py:slow", "--json", cwd=here)
    assert json.loads(done.stdout)["outcomes"] == {"ok": 6}
    assert len(answers.read_text().splitlines()) == 6


def test_a_server_is_named_by_its_model_and_the_key_is_sent_but_stored_nowhere(here: Path) -> None:
    with in_thread("alpha") as server:
        done = loupe("run", "mydocs", "--base-url", server.url, "--api-key", "sk-secret", "--json", cwd=here)
        assert done.returncode == 0, done.stderr
        sent = [request for request in server.requests if request.path.endswith("/chat/completions")]
    assert {request.headers["authorization"] for request in sent} == {"Bearer sk-secret"}
    result = json.loads(done.stdout)
    assert result["engine"] not in ("", "openai")
    files = [path.read_bytes() for path in (here / "runs").rglob("*") if path.is_file()]
    assert files and not any(b"sk-secret" in content for content in [*files, done.stderr.encode()])


def test_the_environment_names_the_server_where_no_option_does(here: Path) -> None:
    with in_thread("alpha") as server:
        done = loupe("run", "mydocs", "--limit", "1", "--json", cwd=here, env={"OPENAI_BASE_URL": server.url})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcomes"] == {"ok": 1}


def test_a_server_that_is_not_there_ends_with_4_and_a_hint(here: Path) -> None:
    done = loupe("run", "mydocs", "--base-url", "http://127.0.0.1:9/v1", cwd=here)
    assert done.returncode == 4 and "Traceback" not in done.stderr
    assert complaint(done)[0]


def test_a_second_process_on_the_same_run_is_refused(here: Path) -> None:
    folder = here / "runs/python-reader.py_slow/mydocs"
    with locked(Folder(folder)):
        done = loupe("run", "mydocs", "-e", "python:reader.py:slow", cwd=here)
    error, hint = complaint(done)
    assert done.returncode == 2
    assert error == f"runs/python-reader.py_slow/mydocs is in use by process {os.getpid()}" and "--name NAME" in hint


def test_an_engine_that_is_done_for_ends_with_4_and_keeps_what_it_gave(here: Path) -> None:
    refuse = Reply(status=401, raw=b'{"error": {"message": "key expired"}}')
    with in_thread(["alpha", "beta gamma", refuse]) as server:
        words = ("run", "mydocs", "--base-url", server.url, "-n", "1", "--name", "server")
        done = loupe(*words, cwd=here)
        assert done.returncode == 4
        assert "2 answers are kept; to continue: loupe run mydocs" in done.stderr
        assert "key expired" in done.stderr and "Traceback" not in done.stderr
    assert len(RunFolder.open(here / "runs/server/mydocs").predictions()) == 2


def test_too_many_timeouts_give_up_and_show_what_there_is_as_partial(tmp_path: Path) -> None:
    make_folder(tmp_path, count=120)
    with in_thread(Reply(hang=True)) as server:
        words = ("--base-url", server.url, "--timeout", "0.2", "--retries", "0", "-n", "16", "--plain")
        done = loupe("run", "mydocs", *words, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "to continue: loupe run mydocs" in done.stderr
    assert "not read\t" in done.stdout and "timeout\t" in done.stdout


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('{"id": "a", "image": "zero.pdf", "reference": "x"}', "'zero.pdf' is empty (0 bytes)"),
        ('{"id": "a", "image": "../x.png", "reference": "x"}', "path '../x.png' leaves the folder"),
        ('{"id": "a", "image": "nope.png", "reference": "x"}', "'nope.png': no such file"),
        ('{"id": "p", "text": "x", "reference": "x"}', "id 'p' was used in line 1"),
    ],
)
def test_bad_samples_are_one_clear_line_each(line: str, error: str, here: Path) -> None:
    (here / "mydocs/zero.pdf").touch()
    (here / "mydocs/samples.jsonl").write_text('{"id": "p", "text": "x", "reference": "x"}\n' + line + "\n")
    done = loupe("run", "mydocs", *RIGHT, cwd=here)
    assert done.returncode == 2
    complaint, hint = done.stderr.splitlines()[-2:]  # above them: files that no line names
    assert complaint.startswith("error: ") and f"samples.jsonl:2: {error}" in complaint and hint.startswith("hint: ")


def test_a_server_that_offers_a_local_engine_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    models = {"object": "list", "data": [{"id": "tesseract", "object": "model"}]}
    with in_thread("read", models=models) as server:
        done = loupe("run", "sample_pages", "--limit", "1", "--base-url", server.url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "tesseract-server" / "sample_pages" / "result.json").is_file()


def test_a_memory_limit_of_the_user_below_that_of_scoring_stands(here: Path) -> None:
    words = ["sh", "-c", 'ulimit -d 2000000; exec "$@"', "sh", *command("run", "mydocs", *RIGHT, "-j", "1")]
    done = subprocess.run(
        words, cwd=here, env=environment(here), capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, "100.00 %" in done.stdout) == (0, True), done.stderr


def test_a_tag_without_slices_takes_no_verdict_away(here: Path) -> None:
    done = loupe("run", "mydocs", "-e", "python:reader.py:right", "--by", "field", cwd=here)
    assert done.returncode == 2 and "field" in done.stderr
    assert "pages and answers: loupe report" in done.stderr
    assert loupe("run", "mydocs", "-e", "python:reader.py:right", "--by", "half", cwd=here).returncode == 0


def test_resume_is_understood_and_is_never_needed(here: Path) -> None:
    said = "--resume changes nothing: the same command always continues where it stopped"
    for _ in range(2):
        done = loupe("run", "mydocs", "-e", "python:reader.py:right", "--resume", cwd=here)
        assert done.returncode == 0 and said in done.stderr
    assert said not in loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=here).stderr
    known = {
        name
        for name, command in every_command(root)
        for option in command.params
        if "--resume" in (*option.opts, *option.secondary_opts)
    }
    named = installed(tuple(name.split()) for name in ("run", "infer", "draft", "embed", "select", "setup", "data get"))
    assert known == {" ".join(words) for words in named}
