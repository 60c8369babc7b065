"""The whole line from Python: a benchmark file, a real engine, files on the disk, and the same numbers again."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from loupe.benchmarks import get_benchmark
from loupe.engines.registry import load_profile
from loupe.errors import DatasetError, LoupeError, RunError, UsageError
from loupe.inference.progress import Progress
from loupe.pipeline import Plan, open_samples, run, score_run
from loupe.pipeline import infer as infer_only
from loupe.pipeline.stages import policy_of
from loupe.runs.folder import RunFolder
from loupe.types import Result

BENCHMARK = '''
"""Ten words to be read back."""
from pathlib import Path
from loupe.metrics import character_errors
from loupe.types import Benchmark, Measure, Sample, Score

def load(root: Path | None, count: int = 10):
    for number in range(count):
        yield Sample(id=f"w/{number}", text=f"word {number}", truth=f"word {number}", tags={"parity": "eo"[number % 2]})

def score(sample, prediction):
    return [Score(measure="cer", counts=tuple(map(float, character_errors(prediction.text, sample.truth))))]

benchmark = Benchmark(
    title="Words", version="1", task="text", load=load, score=score,
    measures=(Measure(name="cer", higher_is_better=False),),
)
'''

ENGINE = '''
"""Reads the text that stands in the request, some of it badly."""
from pathlib import Path

def read(request):
    with (Path(__file__).parent / "asked.txt").open("a") as file:
        file.write(request.id + "\\n")
    if request.id == "w/3" and not (Path(__file__).parent / "mended").exists():
        raise ValueError("cannot read this one")
    return request.text.upper() if request.id == "w/4" else request.text
'''


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "words.py").write_text(BENCHMARK)
    (tmp_path / "reader.py").write_text(ENGINE)
    label, profile = load_profile("python", {"function": f"{tmp_path / 'reader.py'}:read", "concurrency": 1})
    return Plan(benchmark=str(tmp_path / "words.py"), label=label, profile=profile, runs=tmp_path / "runs", jobs=1)


def go(plan: Plan) -> tuple[RunFolder, Result]:
    folder = asyncio.run(run(plan, Progress()))
    result = RunFolder.open(folder.path).stored_result()
    assert result is not None
    return folder, result


def replace(plan: Plan, **changes: object) -> Plan:
    return Plan(**{name: changes.get(name, getattr(plan, name)) for name in plan.__dataclass_fields__})


def asked(tmp_path: Path) -> list[str]:
    return (tmp_path / "asked.txt").read_text().split()


def test_a_run_leaves_plain_files_and_an_honest_result(plan: Plan) -> None:
    folder, result = go(plan)
    # One failed page (6 characters lost) and one in capitals (4 wrong) of 60 characters.
    assert result.measures["cer"].value == pytest.approx(10 / 60)
    assert result.measures["cer"].n == 10 and result.total == 10
    assert result.outcomes["error"] == 1 and result.outcomes["ok"] == 9
    assert [(failure.sample, failure.outcome) for failure in result.failures] == [("w/3", "error")]
    assert "cannot read this one" in result.failures[0].error
    assert set(result.slices["parity"]) == {"e", "o"}
    assert any("5 %" in warning for warning in result.warnings)
    assert (folder.path / "predictions" / "w" / "4.txt").read_text() == "WORD 4"
    assert not (folder.path / "predictions" / "w" / "3.txt").exists()
    assert result.signature.startswith("words:1|n:10|data:")


def test_the_same_command_asks_only_for_what_failed(plan: Plan, tmp_path: Path) -> None:
    go(plan)
    (tmp_path / "mended").touch()
    before = len(asked(tmp_path))
    _, result = go(plan)
    assert asked(tmp_path)[before:] == ["w/3"]
    assert result.measures["cer"].value == pytest.approx(4 / 60)
    assert not result.failures


def test_a_limited_run_grows_into_the_whole_one(plan: Plan, tmp_path: Path) -> None:
    _, few = go(replace(plan, limit=2))
    assert (few.total, few.measures["cer"].n) == (2, 2)
    _, all_of_them = go(plan)
    assert all_of_them.total == 10
    assert sorted(asked(tmp_path)) == sorted(set(asked(tmp_path)))


def test_redo_asks_again_for_a_class(plan: Plan, tmp_path: Path) -> None:
    go(replace(plan, limit=2))
    go(replace(plan, limit=2, redo=frozenset({"ok"})))
    assert asked(tmp_path) == ["w/0", "w/1"] * 2


def test_infer_then_score_gives_the_numbers_of_run(plan: Plan) -> None:
    _, together = go(plan)
    apart = asyncio.run(infer_only(replace(plan, name="apart"), Progress()))
    assert apart.stored_result() is None
    result = score_run(apart.path)
    assert result.measures == together.measures and result.diagnostics == together.diagnostics


def test_scoring_again_changes_nothing(plan: Plan) -> None:
    folder, result = go(plan)
    before = folder.scores_file.read_bytes()
    again = score_run(folder.path)
    assert folder.scores_file.read_bytes() == before
    assert again.measures == result.measures


def test_a_run_with_another_prompt_is_refused(plan: Plan, tmp_path: Path) -> None:
    go(plan)
    _, profile = load_profile(
        "python", {"function": f"{tmp_path / 'reader.py'}:read", "concurrency": 1, "prompts": {"*": "Read."}}
    )
    with pytest.raises(RunError, match="prompts: "):
        go(replace(plan, profile=profile))


def test_options_are_checked_against_the_benchmark(plan: Plan) -> None:
    _, result = go(replace(plan, options={"count": "3"}))
    assert result.total == 3 and "|opt:count=3|" in result.signature
    with pytest.raises(UsageError, match="did you mean 'count'"):
        go(replace(plan, options={"cuont": "3"}, name="b"))
    with pytest.raises(UsageError, match="option count=many"):
        go(replace(plan, options={"count": "many"}, name="c"))


def test_an_option_at_its_default_makes_no_other_run(plan: Plan) -> None:
    _, result = go(plan)
    _, again = go(replace(plan, options={"count": str(result.total)}))
    assert again.signature == result.signature and "opt:" not in result.signature


def test_scoring_again_refuses_other_references_and_other_samples(plan: Plan, tmp_path: Path) -> None:
    folder, _ = go(plan)
    for changed in (
        BENCHMARK.replace('truth=f"word', 'truth=f"wort'),
        BENCHMARK.replace("range(count)", "range(1, count)"),
    ):
        (tmp_path / "words.py").write_text(changed)
        get_benchmark(str(tmp_path / "words.py"))
        with pytest.raises(RunError, match="other samples or references"):
            score_run(folder.path)


def test_an_old_result_does_not_outlive_new_answers(plan: Plan, tmp_path: Path) -> None:
    folder, _ = go(plan)
    (tmp_path / "mended").touch()
    asyncio.run(infer_only(plan, Progress()))
    assert folder.stored_result() is None
    assert score_run(folder.path).outcomes["ok"] == 10


def test_asking_for_less_of_a_finished_run_keeps_the_whole_result(plan: Plan) -> None:
    go(plan)
    _, again = go(replace(plan, limit=2))
    assert again.total == 10


def test_an_engine_that_cannot_be_opened_leaves_no_run(plan: Plan, tmp_path: Path) -> None:
    label, profile = load_profile("python", {"function": f"{tmp_path / 'nothing.py'}:read"})
    with pytest.raises(LoupeError):
        go(replace(plan, label=label, profile=profile))
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").rglob("run.json"))


def test_a_folder_with_the_name_of_a_benchmark_does_not_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sample_pages").mkdir()
    monkeypatch.chdir(tmp_path)
    label, profile = load_profile("pdf_text")
    _, result = go(Plan(benchmark="sample_pages", label=label, profile=profile, limit=1, jobs=1))
    assert result.benchmark == "sample_pages" and result.total == 1


def test_two_samples_with_one_id_are_refused(plan: Plan, tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(BENCHMARK.replace('id=f"w/{number}"', 'id="same"'))
    with pytest.raises(DatasetError, match="two samples have the id 'same'"):
        go(plan)


def test_the_samples_of_a_run_can_be_opened_again(plan: Plan) -> None:
    folder, _ = go(replace(plan, limit=4))
    assert [sample.id for sample in open_samples(folder.info)] == [f"w/{number}" for number in range(4)]


def test_a_profile_says_how_many_timeouts_and_errors_are_too_many() -> None:
    _, profile = load_profile("pdf_text", {"max_timeouts": 7, "errors_before_check": 2, "retries": 1})
    policy = policy_of(profile)
    assert (policy.max_timeouts, policy.errors_before_check, policy.retries) == (7, 2, 1)
    assert not {"max_timeouts", "errors_before_check"} & profile.defining().keys()


def test_an_unchanged_run_is_not_scored_again(plan: Plan) -> None:
    folder, result = go(replace(plan, limit=3))
    before = folder.scores_file.stat().st_mtime_ns
    assert score_run(folder.path) == result
    assert folder.scores_file.stat().st_mtime_ns == before


@pytest.mark.parametrize("changed", ["predictions.jsonl", "scores.jsonl", "result.json", "words.py"])
def test_whatever_a_result_was_made_from_makes_it_anew_when_changed(plan: Plan, tmp_path: Path, changed: str) -> None:
    folder, _ = go(replace(plan, limit=3))
    file = tmp_path / changed if changed == "words.py" else folder.path / changed
    old, new = {
        "predictions.jsonl": ('"word 1"', '"wird 1"'),
        "scores.jsonl": ('"w/1"', '"w/x"'),
        "result.json": ('"total": 3', '"total": 4'),
        "words.py": ('"eo"', '"io"'),
    }[changed]
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    code = "import sys; from pathlib import Path; from loupe.benchmarks import get_benchmark; "
    code += "from loupe.pipeline import score_run; get_benchmark(sys.argv[1]); score_run(Path(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "words.py"), str(folder.path)], check=True)
    again = folder.stored_result()
    assert again is not None
    value = again.measures["cer"].value
    assert value == pytest.approx(1 / 18 if changed == "predictions.jsonl" else 0.0)
    assert again.total == 3
    assert set(again.slices["parity"]) == ({"i", "o"} if changed == "words.py" else {"e", "o"})


def test_a_run_whose_scorer_failed_is_scored_again(plan: Plan, tmp_path: Path) -> None:
    broken = BENCHMARK.replace("def score(sample, prediction):", "def score(sample, prediction):\n    assert MENDED")
    (tmp_path / "words.py").write_text(f"{broken}\nMENDED = Path({str(tmp_path / 'mended')!r}).exists()\n")
    folder, result = go(replace(plan, limit=3))
    assert [failure.outcome for failure in result.failures] == ["scorer"] * 3
    (tmp_path / "mended").touch()
    assert score_run(folder.path).failures == []
